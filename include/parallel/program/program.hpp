// A program: a model, what it is called with and what is done with its result. Building it runs the model once on
// symbolic values, and writes what that applied into the graph.
#pragma once
#include <initializer_list>

#include <parallel/graph/grouping.hpp>
#include <parallel/graph/write.hpp>
#include <parallel/meta/takes.hpp>
#include <parallel/model/module.hpp>
#include <parallel/model/optimizer.hpp>
#include <parallel/operation/reduce.hpp>
#include <parallel/program/asynchronous.hpp>
#include <parallel/program/bucket.hpp>
#include <parallel/program/differentiate.hpp>
#include <parallel/program/fuse.hpp>
#include <parallel/program/recompute.hpp>
#include <parallel/program/results.hpp>
#include <parallel/program/tried.hpp>
#include <parallel/program/ungrouped.hpp>
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
struct Wanted : Tensor<T, S, Annotation...> {};

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

/// Several micro-batches lie one behind the other.
template <class Input>
constexpr int declare_input(Trace& trace, int position, int micro_batches) {
  Member member;
  member.role = Role::input;
  const char digit = static_cast<char>('0' + position);
  member.path = trace.graph.name({}, {"input.", std::string_view(&digit, 1)});
  member.type = Input::type;
  if (micro_batches > 1) {
    member.type.layout = with_leading(member.type.layout, Dim(micro_batches));
    member.layers = micro_batches;
  }
  return trace.declare(operation::input, member, kind_of_input<Input>, kind_of_input<Input> == Kind::activation);
}

/// Why a result cannot be the loss of a training.
constexpr Refusal refused_loss(const Type& type) {
  if (type.layout.rank() != 0) return {Reason::not_scalar, {type.layout.rank()}};
  AxisList axes;
  type.layout.collect(axes);
  for (const Axis* a : axes)
    if (type.layout.on(a) == Broadcast) return {Reason::loss_broadcast, {axes.size()}, a};
  return {};
}

/// Results of a program: a sum is completed to Invariant, a Broadcast is masked and completed, so that every rank
/// returns the same bits.
constexpr int summed(Trace& trace, int value) {
  Layout layout = trace.graph.values[value].type.layout;
  AxisList axes;
  layout.collect(axes);
  trace.from({&operation::returned,
              {value},
              {},
              {},
              trace.graph.source(trace.graph.maker(value)),
              trace.graph.values[value].member});
  for (const Axis* a : axes)
    if (layout.on(a) == Broadcast) value = trace.enter(value, layout = layout.with(a, Partial));
  for (const Axis* a : axes)
    if (layout.on(a) == Partial) layout = layout.with(a, Invariant);
  return trace.enter(value, layout);
}
/// And what only some stages have goes to all.
constexpr int on_every_stage(Trace& trace, int value) {
  const std::uint8_t home = trace.graph.values[value].home;
  return home == staging::all
             ? value
             : staging::moved(trace, value, Collective::broadcast, staging::placement(home), Invariant, staging::all);
}
constexpr int complete(Trace& trace, int value) { return on_every_stage(trace, summed(trace, value)); }

/// Adds the update of every parameter that a gradient reaches. The loss is the first output.
template <class Optimizer>
constexpr void optimize(Trace& trace, const Differentiation& gradients) {
  Vector<int> members, of;
  for (int i = 0; i < trace.graph.members.size(); ++i) {
    const Member& member = trace.graph.members[i];
    if (member.role != Role::parameter || gradients.of(member.value) < 0) continue;
    members.push_back(i);
    of.push_back(gradients.of(member.value));
  }
  if (members.empty()) {  // the norm of nothing
    trace.phase = Phase::optimizer;
    trace.output(trace.graph.name({}, {"gradient_norm"}),
                 trace.emit(operation::constant, {}, {{DType::f64, {}}}, Kind::constant));
    return;
  }
  complete_together(trace, of);
  trace.phase = Phase::optimizer;
  trace.from({&operation::clip});
  const optimizing::Norm norm = optimizing::clip_by_global_norm(trace, of, trace.graph.outputs[0].value);
  trace.output(trace.graph.name({}, {"gradient_norm"}), norm.norm);
  trace.graph.commit = norm.finite;
  for (int i = 0; i < members.size(); ++i) {
    optimizing::update_as_it_lies<Optimizer>(trace, members[i], of[i], norm.factor);
  }
  trace.member = -1;
}

/// The position of an argument of a program that is no model, no optimizer, no input or no budget, counted from 1, or 0.
template <class Program, class... Input>
constexpr int misplaced() {
  if constexpr (requires { Program::misplaced; }) {
    if (Program::misplaced > 0) return Program::misplaced;
  }
  if (has_word<typename Program::Model> || IsProgram<typename Program::Model>) return 1;
  if constexpr (is_trained<Program>) {
    if (!Updates<typename Program::Optimizer> || SaidOfProgram<typename Program::Optimizer>) return 2;
  }
  return first_misplaced(is_trained<Program> ? 3 : 2, {Interface<Input>...});
}

/// Whether what stands in an optimizer's place is one by the look of it, but has no update that can be called.
template <class Program>
constexpr bool lacks_update() {
  if constexpr (is_trained<Program>) {
    using Optimizer = typename Program::Optimizer;
    return std::is_class_v<Optimizer> && !Updates<Optimizer> && !Interface<Optimizer> && !IsProgram<Optimizer> &&
           !SaidOfProgram<Optimizer> && !Updates<typename Program::Model>;
  }
  return false;
}

/// Whether a program is loss scaled that cannot be: nothing is scaled forward, and a schedule that updates without
/// waiting does not know whether another stage's gradients have overflowed.
template <class Program>
constexpr bool scaled_in_vain() {
  if constexpr (requires { Program::loss_scaled; })
    return !is_trained<Program> || schedule_of<Program>()->asynchronous;
  else
    return false;
}

template <class Program>
constexpr bool sound_sums() {
  if constexpr (requires { Program::sums; })
    return Program::sums.sound(is_trained<Program>);
  else
    return true;
}

/// Whether `StatesIn` is said of an optimizer, and nowhere else.
template <class Program>
constexpr bool sound_states() {
  if constexpr (requires { Program::states_fit; })
    return Program::states_fit;
  else if constexpr (requires { Program::Optimizer::states_fit; })
    return Program::Optimizer::states_fit;
  else
    return true;
}

/// The position, counted from 1, of what groups of a program say that means none of the model's members; 0 where all
/// is well, -1 where it is not said so, or not of a training, -2 where nothing is left that has a gradient.
template <class Program>
constexpr int ungrouped() {
  if constexpr (requires { Program::grouping; }) {
    if (!Program::grouping.fits || !is_trained<Program>) return -1;
    typename Program::Model model{};
    Trace trace;
    Applications program;
    Vector<char> path;
    declare(model, trace, program, path);
    for (int i = 0; i < Program::grouping.said.size(); ++i) {
      bool any = false;
      for (const Member& m : trace.graph.members)
        any = any || has_names(trace.graph.text(m.path), Program::grouping.said[i].names.view());
      if (!any) return i + 1;
    }
    bool trained = []<class... Input>(Types<Input...>) {
      return ((kind_of_input<Input> == Kind::activation) || ...);
    }(typename Program::Inputs{});
    for (const Member& m : trace.graph.members) {
      const MembersCalled* const said = Program::grouping.of(trace.graph.text(m.path));
      trained = trained || said == nullptr || !said->frozen;
    }
    if (!trained) return -2;
  }
  return 0;
}

/// Whether what a program says of all its parameters is a flat split, or on the host, by one stage.
template <class Program>
constexpr bool stored_alike() {
  if constexpr (requires { Program::stored; }) {
    const auto& all = Program::stored;
    for (int i = 0; i < all.size(); ++i) {
      if (!all[i].fits || !(all[i].placement.flat || all[i].placement == OnHost) ||
          !all[i].alike(all[0].stage, all[0].gathered))
        return false;
      for (int j = 0; j < i; ++j)
        if (all[j].axis == all[i].axis) return false;
    }
  }
  return true;
}

template <class Model, class... Input>
using Returned = std::remove_cvref_t<decltype(std::declval<const Model&>()(std::declval<Entering<Input>>()...))>;
/// A model that takes its inputs and yet cannot be called has an error within, which the compiler has told. If it has
/// not, this does not link.
template <class Model>
extern const int operator_call_is_ambiguous;
template <class Model>
[[gnu::used]] inline constexpr const int* unlinked = &operator_call_is_ambiguous<Model>;
/// Runs the user's functions and notes nothing. How many operations they applied, or -1 where a mistake was met of
/// which the types know nothing.
template <class Model, class... Input>
constexpr int run_dry() {
  const Model model{};
  Applications program;
  program.dry = true;
  static_cast<void>(model(Entering<Input>(&program, -1)...));
  return program.mistaken ? -1 : program.applied;
}

/// Writes the update of a model's first parameter, for nothing.
template <class Program>
constexpr bool update_dry() {
  if constexpr (is_trained<Program>) {
    typename Program::Model model{};
    Trace trace;
    Applications program;
    Vector<char> path;
    declare(model, trace, program, path);
    if (trace.graph.members.empty()) return true;
    const auto like = [&](const Type& type) { return trace.emit(operation::constant, {}, {type}, Kind::constant); };
    const int first = trace.graph.members[0].value, gradient = like(trace.graph.values[first].type);
    optimizing::update_as_it_lies<typename Program::Optimizer>(trace, 0, gradient, like({DType::f64, {}}));
  }
  return true;
}

/// Whether the types of a program refuse it. Asking is then the one error, and the program has no graph.
template <class Program, class... Input>
constexpr bool refused(Types<Input...>) {
  using Model = typename Program::Model;
  constexpr int m = Program::micro_batches;
  constexpr std::int64_t inputs = sizeof...(Input);
  constexpr int wrong = misplaced<Program, Input...>();
  constexpr Reason reason = wrong == 2 && lacks_update<Program>()      ? Reason::no_update
                            : wrong > 0                                ? Reason::not_a_program
                            : m < 1 || (m > 1 && !is_trained<Program>) ? Reason::accumulation
                            : inputs > 8                               ? Reason::too_many_inputs
                            : !stored_alike<Program>()                 ? Reason::stored_words
                            : scaled_in_vain<Program>()                ? Reason::loss_scaling
                            : !sound_sums<Program>()                   ? Reason::sums_words
                            : !sound_states<Program>()                 ? Reason::states_in_bf16
                                                                       : Reason::none;
  using counted [[maybe_unused]] =
      typename Refused<reason, nullptr,
                       (reason == Reason::not_a_program || reason == Reason::no_update     ? wrong
                        : reason == Reason::accumulation || reason == Reason::loss_scaling ? m
                                                                                           : inputs)>::type;
  if constexpr (reason != Reason::none) {
    return true;
  } else if constexpr (!accept<Model>() || !(accept_annotations<Input>() && ...)) {
    return true;
  } else if constexpr (constexpr int lost = ungrouped<Program>(); lost != 0) {
    using grouped [[maybe_unused]] = typename Ungrouped<Program, lost>::type;
    return true;
  } else if constexpr (constexpr bool takes = meta::takes<Model, Entering<Input>...>();
                       !requires { typename Returned<Model, Input...>; }) {
    using callable [[maybe_unused]] =
        typename Refused<takes ? Reason::none : Reason::inputs_differ, nullptr, inputs>::type;
    if constexpr (takes) [[maybe_unused]]
      constexpr auto& told = unlinked<Model>;
    return true;
    // clang knows of an error within the model from the second question on
  } else if constexpr (!requires { typename Returned<Model, Input...>; }) {
    return true;
  } else if constexpr (constexpr int given = Results<Returned<Model, Input...>>::count;
                       given == 0 || (is_trained<Program> && !Distributed<Returned<Model, Input...>>)) {
    using returns [[maybe_unused]] = typename Refused<given == 0 ? Reason::no_tensor : Reason::loss_alone, nullptr,
                                                      given == 0 ? inputs : std::int64_t{given}>::type;
    return true;
  } else if constexpr (Results<Returned<Model, Input...>>::mistaken) {
    return true;
  } else if constexpr (!requires { typename std::bool_constant<(run_dry<Model, Input...>() >= 0)>; }) {
    using runs [[maybe_unused]] = typename Refused<Reason::not_constant, nullptr, inputs>::type;
    return true;
  } else if constexpr (!requires { typename std::bool_constant<update_dry<Program>()>; }) {
    using updates [[maybe_unused]] = typename Refused<Reason::not_constant, nullptr, inputs>::type;
    return true;
  } else {
    constexpr bool sound = run_dry<Model, Input...>() >= 0;
    constexpr Refusal refusal = [] {
      if constexpr (sound && is_trained<Program>) return refused_loss(Returned<Model, Input...>::type);
      return Refusal{};
    }();
    using accepted [[maybe_unused]] = typename Refused<refusal.reason, refusal.axis, refusal.figures[0]>::type;
    return refusal || !sound;
  }
}

template <class Program, class... Input>
constexpr void build(Trace& trace, Types<Input...>) {
  typename Program::Model model{};
  trace.training = is_trained<Program>;
  trace.loss_scaled = requires { Program::loss_scaled; };
  if (trace.loss_scaled) trace.scalar("loss_scale");
  if constexpr (requires { Program::sums; }) trace.sums = Program::sums;
  if constexpr (requires { Program::grouping; }) trace.grouping = Program::grouping;
  trace.graph.schedule = schedule_of<Program>();
  trace.graph.chunks = trace.graph.schedule->chunks;
  trace.graph.balanced = requires { Program::balanced; };
  if constexpr (requires { Program::stored; })
    for (const StoredOn& s : Program::stored) trace.stored.push_back(s);
  if constexpr (trying::tries && is_trained<Program>) (trying::store(trace, Input::type.layout), ...);
  Applications program;
  Vector<char> path;
  declare(model, trace, program, path);
  constexpr int m = Program::micro_batches;
  List<int, 8> inputs;
  (inputs.push_back(declare_input<Input>(trace, inputs.size(), m)), ...);
  int total = -1;
  // stages take even one micro-batch in parts, forward and backward
  const bool loop = m > 1 || trace.graph.stages != nullptr;
  if (loop) {
    if (is_trained<Program>) total = trace.emit(operation::constant, {}, {Type{}}, Kind::constant);
    trace.begin(RegionKind::micro_batches, m);
    if (is_trained<Program>) total = trace.carry(total);
    // also a loss that needs no layer counts once
    if (is_trained<Program> && trace.graph.stages != nullptr) trace.graph.values[total].home = staging::last;
  }
  const bool stashed = trace.graph.stashed =
      is_trained<Program> && trace.graph.stages != nullptr && trace.graph.schedule->asynchronous;
  if (stashed) asynchronous::stash(model, trace, program);
  const int first_input = program.all.size();
  for (const int input : inputs)
    program.add({.what = Application::What::given, .value = input, .region = m > 1 ? trace.region : -1});
  const auto returned = [&]<int... i>(std::integer_sequence<int, i...>) {
    return model(Entering<Input>(&program, first_input + i)...);
  }
  (std::make_integer_sequence<int, sizeof...(Input)>{});
  List<int, meta::max_members> last;
  each_result(returned, [&](const auto& tensor, std::string_view) { last.push_back(tensor.enter(program)); });
  if constexpr (trying::tries)
    for (Application& a : program.all)
      if (a.what == Application::What::loop) trying::keep(a);
  Writing writing(trace, program);
  const auto results = writing.program(last);
  writing.mark_recomputed();
  if constexpr (is_trained<Program>) {
    for (int i = 0; i < inputs.size(); ++i)
      if (!writing.needs(first_input + i)) trace.refuse(Reason::input_unread, trace.graph.maker(inputs[i]).ints[0]);
    const int result = results[0];
    if (loop) {  // the mean of the micro-batches' losses, pending as they are
      const Type scalar = trace.graph.values[result].type;
      trace.graph.values[trace.graph.maker(total).operands[0]].type = trace.graph.values[total].type = scalar;
      const int share = trace.emit(operation::scale, {result}, {scalar}, Kind::data, {}, 1.0 / m);
      trace.hand_on(total, trace.emit(operation::accumulate, {total, share}, {scalar}, Kind::data));
    }
    staging::settle(trace);
    Differentiation gradients(trace);
    if (stashed)
      asynchronous::back<typename Program::Optimizer>(trace, gradients, result);
    else
      gradients.run(result, 1.0 / m);
    trace.phase = Phase::forward;
    trace.output(trace.graph.name({}, {"loss"}), complete(trace, loop ? trace.result_of(total) : result));
    if (stashed)
      asynchronous::finish(trace);
    else
      optimize<typename Program::Optimizer>(trace, gradients);
    for (const Member& member : trace.graph.members)
      if (const int gradient = member.role == Role::input ? gradients.of(member.value) : -1; gradient >= 0)
        trace.output(trace.graph.name(member.path, {".gradient"}),
                     optimizing::unscaled(trace, complete(trace, gradient)));
  } else {
    staging::settle(trace);
    List<int, meta::max_members> whole;
    for (const int result : results) whole.push_back(summed(trace, result));
    if (loop) trace.end();
    int i = 0;
    each_result(returned, [&](const auto&, std::string_view name) {
      trace.output(trace.graph.name({}, {name}), on_every_stage(trace, whole[i++]));
    });
  }
  staging::place(trace.graph);
}
/// Whether a type is no program, or is refused.
template <class Program>
constexpr bool refused() {
  constexpr bool fits = IsProgram<Program>;
  using program [[maybe_unused]] = typename Refused<fits ? Reason::none : Reason::not_a_program, nullptr, 1>::type;
  if constexpr (fits)
    return refused<Program>(typename Program::Inputs{});
  else
    return true;
}
/// How many operations the model of a program that is not refused applies.
template <class Program>
constexpr int applied() {
  return []<class... Input>(Types<Input...>) {
    return run_dry<typename Program::Model, Input...>();
  }(typename Program::Inputs{});
}
}  // namespace building

/// The graph of a program, each operation a node: forward, and for a training backward and optimizer. Outputs: the
/// result; of a training the loss, the gradient norm, what the optimizer gives out, and gradients of wanted inputs.
template <class Program>
constexpr Graph build_unfused() {
  Trace trace;
  if constexpr (!building::refused<Program>()) building::build<Program>(trace, typename Program::Inputs{});
  recompute_marked(trace.graph);
  for (Node& node : trace.graph.nodes) node.flops = trace.graph.flops(node);
  return static_cast<Graph&&>(trace.graph);
}
/// The graph of a program as it is planned: operations that stand one behind the other are fused.
template <class Program>
constexpr Graph build() {
  return fuse(build_unfused<Program>());
}
}  // namespace internals

/// Runs a model's functions as the compiler runs them for a plan. Where it cannot, its error names the function; false
/// where the model is mistaken otherwise, as its plan then says:
///
///
///     static_assert(run_as_constant<Model, Tensor<float, Shape<4 / data, 8>>>());
template <class Model, class... Input>
constexpr bool run_as_constant() {
  return internals::building::run_dry<Model, Input...>() >= 0;
}

}  // namespace parallel
