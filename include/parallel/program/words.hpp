// What a program says: a model, what it is called with, what is done with its result, and the words around it.
#pragma once
#include <initializer_list>
#include <type_traits>

#include <parallel/graph/grouping.hpp>
#include <parallel/graph/write.hpp>
#include <parallel/model/module.hpp>
#include <parallel/model/optimizer.hpp>
#include <parallel/schedule/schedule.hpp>

namespace parallel {
/// Trains `Model`, which returns a scalar loss for `Input...`, with `Optimizer`: forward, backward, update.
template <class Model_, class Optimizer_, class... Input>
struct Training {
  using Model = Model_;
  using Optimizer = Optimizer_;
  using Inputs = internals::Types<Input...>;
  static constexpr int micro_batches = 1;
};
/// Runs `Model` forward only, in evaluation mode: dropout passes everything.
template <class Model_, class... Input>
struct Evaluation {
  using Model = Model_;
  using Optimizer = void;
  using Inputs = internals::Types<Input...>;
  static constexpr int micro_batches = 1;
};
/// A training whose step takes m micro-batches, each of the program's Input shapes: gradients add up, still pending,
/// and are reduced once.
template <int m, class Program>
struct Accumulate : Program {
  static constexpr int micro_batches = m;
};
/// A program whose `Layers<n / stage, Block>` run by a schedule: `Pipelined<schedules::gpipe, Accumulate<8, Step>>`.
/// Without it the schedule is 1F1B.
template <const Schedule& schedule_, class Program>
struct Pipelined : Program {
  static constexpr const Schedule* schedule = &schedule_;
};
/// A program whose layers are cut so that the stages have as equal work as they can, by FLOPs: where they do not
/// divide, or where what stands before or behind them weighs as much as layers do.
template <class Program>
struct Balanced : Program {
  static constexpr bool balanced = true;
};
/// A program whose parameters all lie as the annotations say: `AllStored<Step, Stored<data>>`. What a parameter says of
/// an axis itself goes before, and where it says another `Zero` or `Gathered`, nothing else is said of it.
template <class Program, class... StoredOn>
struct AllStored : Program {
  static constexpr auto stored = [] {
    internals::List<internals::StoredOn, 2 * internals::max_axes> all;
    if constexpr (requires { Program::stored; })
      for (const internals::StoredOn& s : Program::stored) all.push_back(s);
    (all.push_back(internals::stored_on<StoredOn>()), ...);
    return all;
  }();
};
/// A training that begins its backward pass with a number beside the loss, the scalar `loss_scale`, so that small
/// gradients are no zeros in float16 (Micikevicius et al., 2018). The update and all that is given out take it out
/// again. It is a power of two, which changes no bits where nothing overflows. A step whose gradients overflow is
/// skipped on all ranks and halves it; 2000 steps without double it (`Trainer::loss_scale`).
template <class Program>
struct LossScaled : Program {
  static constexpr bool loss_scaled = true;
};
/// A program whose sums are taken in the element types that the words say: `SumsIn<Step, Reduced<bfloat16>>`. Without
/// them all are as precise as can be: float, where terms are half of one.
template <class Program, class... Words>
struct SumsIn : Program {
  static constexpr auto sums = [] {
    internals::Sums all;
    if constexpr (requires { Program::sums; }) all = Program::sums;
    (all.hear<Words>(), ...);
    return all;
  }();
};
/// A word of `Grouped`: members that have these names in their paths, one behind the other, are not trained. They have
/// neither gradient nor state: `Frozen<"base">`, `Frozen<"blocks.*.attention">`.
template <internals::MemberName... names>
struct Frozen {
  static constexpr internals::List<internals::MembersCalled, 16> said{{names, {}, true}...};
};
/// A word of `Grouped`: members with these names read numbers of their own: of `Group<"head", "out", "out_bias">` the
/// optimizer reads `head.learning_rate`, `head.weight_decay` and so on.
template <internals::MemberName group, internals::MemberName... names>
struct Group {
  static constexpr internals::List<internals::MembersCalled, 16> said{{names, group, false}...};
};
/// A training of which groups of members are trained otherwise: `Grouped<Step, Frozen<"base">, Group<"head", "out">>`.
/// Of several words that mean a member the last holds.
template <class Program, class... Word>
struct Grouped : Program {
  static constexpr auto grouping = [] {
    internals::Grouping all;
    if constexpr (requires { Program::grouping; }) all = Program::grouping;
    [[maybe_unused]] const auto hear = [&]<class W>(const W*) {
      if constexpr (requires { W::said[0].names; })
        all.hear(W::said);
      else
        all.fits = false;
    };
    (hear(static_cast<const Word*>(nullptr)), ...);
    all.fits = all.fits && sizeof...(Word) > 0;
    return all;
  }();
};
/// An input whose gradient is an output of the program: `Wanted<float, Shape<4 / data, 16>>`.
template <class T, class S, class... Annotation>
struct Wanted : Tensor<T, S, Annotation...> {
  static_assert(!std::is_same_v<T, int>,
                "parallel: whole numbers have no gradient that can be wanted; name them as Tensor<int, Shape<...>>");
};

namespace internals {
template <class Program>
constexpr const Schedule* schedule_of() {
  if constexpr (requires { Program::schedule; })
    return Program::schedule;
  else
    return &schedules::one_forward_one_backward;
}
template <class Program>
inline constexpr bool is_trained = !std::is_void_v<typename Program::Optimizer>;

/// What has a word of programs in it, as LossScaled<AdamW>.
template <class X>
concept SaidOfProgram = requires {
  X::micro_batches;
}
|| requires { X::balanced; }
|| requires { X::stored; }
|| requires { X::loss_scaled; }
|| requires { X::sums; }
|| requires { X::grouping; }
|| requires { X::demands; }
|| requires(const Schedule*& s) { s = X::schedule; };

template <class X>
concept IsProgram = requires {
  typename X::Model;
  typename X::Optimizer;
  typename X::Inputs;
};

namespace building {
/// Whether a word of programs stands about something, as in Training<Accumulate<2, Model>, AdamW>. (A model's own
/// members may be called like those of the words.)
template <class X>
inline constexpr bool has_word = false;
template <int m, class X>
inline constexpr bool has_word<Accumulate<m, X>> = true;
template <const Schedule& schedule, class X>
inline constexpr bool has_word<Pipelined<schedule, X>> = true;
template <class X>
inline constexpr bool has_word<Balanced<X>> = true;
template <class X, class... StoredOn>
inline constexpr bool has_word<AllStored<X, StoredOn...>> = true;
template <class X>
inline constexpr bool has_word<LossScaled<X>> = true;
template <class X, class... Words>
inline constexpr bool has_word<SumsIn<X, Words...>> = true;
template <class X, class... Words>
inline constexpr bool has_word<Grouped<X, Words...>> = true;

/// The position of the first argument that does not fit, counted from `first`, or 0.
constexpr int first_misplaced(int first, std::initializer_list<bool> fit) {
  for (const bool fits : fit)
    if (!fits)
      return first;
    else
      ++first;
  return 0;
}
/// The same of the words behind a program, or of those that it already has.
template <class Program>
constexpr int misplaced_word(std::initializer_list<bool> fit) {
  if constexpr (requires { Program::misplaced; }) {
    if (Program::misplaced > 0) return Program::misplaced;
  }
  return first_misplaced(2, fit);
}

template <class X>
inline constexpr Kind kind_of_input = Kind::data;
template <class T, class S, class... A>
inline constexpr Kind kind_of_input<Wanted<T, S, A...>> = Kind::activation;
template <class Input>
using Entering = typename Symbolic<Input, kind_of_input<Input>>::type;
}  // namespace building
}  // namespace internals
}  // namespace parallel
