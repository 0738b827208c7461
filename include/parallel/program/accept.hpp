// Whether the types of a program refuse it, and how large it is: its model and an update are run for nothing.
#pragma once
#include <parallel/meta/takes.hpp>
#include <parallel/operation/matmul.hpp>
#include <parallel/program/results.hpp>
#include <parallel/program/ungrouped.hpp>
#include <parallel/program/words.hpp>

namespace parallel {
namespace internals::building {
/// Why a result cannot be the loss of a training.
constexpr Refusal refused_loss(const Type& type) {
  if (type.layout.rank() != 0) return {Reason::not_scalar, {type.layout.rank()}};
  AxisList axes;
  type.layout.collect(axes);
  for (const Axis* a : axes)
    if (type.layout.on(a) == Broadcast) return {Reason::loss_broadcast, {axes.size()}, a};
  return {};
}

/// The position of an argument of a program that is no model, no optimizer, no input or no budget, counted
/// from 1, or 0.
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

/// Whether `Stale` is said of an optimizer, and nowhere else, and nothing else has old weights.
template <class Program>
constexpr bool sound_staleness() {
  if constexpr (requires { Program::staleness; })
    return false;
  else if constexpr (requires { Program::Optimizer::staleness; })
    return Program::Optimizer::staleness >= 0 && !schedule_of<Program>()->asynchronous;
  else
    return true;
}

/// The position, counted from 1, of what groups of a program say that means none of the model's members; 0 where all
/// is well, -1 where it is not said so, or not of a training, -2 where nothing is left that has a gradient, -3 where a
/// group has the name of a member that it does not mean.
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
    for (const MembersCalled& s : Program::grouping.said)
      for (const Member& m : trace.graph.members) {
        const std::string_view name = trace.graph.text(m.path);
        bool means = s.group.view().empty() || !has_names(name, s.group.view());
        for (const MembersCalled& other : Program::grouping.said)
          means = means || (other.group.view() == s.group.view() && has_names(name, other.names.view()));
        if (!means) return -3;
      }
  }
  return 0;
}

/// Whether what a program says of all its parameters is a flat split, or on the host, by one stage.
template <class Program>
constexpr bool stored_alike() {
  if constexpr (requires { Program::stored; }) {
    const auto& all = Program::stored;
    for (int i = 0; i < all.size(); ++i) {
      const Placement& at_rest = all[i].placement;
      if (!all[i].fits || !(at_rest.flat || at_rest.kind == PlacementKind::at || at_rest == OnHost) ||
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

/// Tells a trace how a program stores all its parameters.
template <class Program>
constexpr void say_stored(Trace& trace) {
  if constexpr (requires { Program::stored; })
    for (const StoredOn& s : Program::stored) trace.stored.push_back(s);
}

/// Writes the update of a model's first matrix, or of its first parameter where it has none, for nothing. How many
/// nodes the updates of all its parameters have, were they all like this one.
template <class Program>
constexpr int update_dry() {
  if constexpr (is_trained<Program>) {
    typename Program::Model model{};
    Trace trace;
    say_stored<Program>(trace);
    Applications program;
    Vector<char> path;
    declare(model, trace, program, path);
    const auto& members = trace.graph.members;
    if (members.empty()) return 0;
    const auto type = [&](int m) { return trace.graph.values[members[m].value].type; };
    const auto is_matrix = [&](int m) {
      return type(m).layout.rank() == (trace.graph.values[members[m].value].stack > 0 ? 3 : 2);
    };
    int one = 0;
    while (one < members.size() && !is_matrix(one)) ++one;
    if (one == members.size()) one = 0;
    const auto like = [&](const Type& t) { return trace.emit(operation::constant, {}, {t}, Kind::constant); };
    const int gradient = like(type(one)), factor = like({DType::f64, {}});
    if (is_matrix(one)) {  // by which optimizers know one
      const int read = members[one].value;
      const Type product = type(one);
      trace.emit(operation::matmul, {read, read}, {product}, Kind::activation, operation::Product(1, 1, 0, 0));
    }
    const int before = trace.graph.nodes.size();
    optimizing::update_as_it_lies<typename Program::Optimizer>(trace, one, gradient, factor);
    return (trace.graph.nodes.size() - before) * members.size();
  }
  return 0;
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
                            : !sound_staleness<Program>()              ? Reason::staleness
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
  } else if constexpr (!requires { typename std::bool_constant<(update_dry<Program>() >= 0)>; }) {
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
/// How many operations the model of a program that is not refused and the updates of its parameters apply.
template <class Program>
inline constexpr int applied = []<class... Input>(Types<Input...>) {
  return run_dry<typename Program::Model, Input...>() + update_dry<Program>();
}(typename Program::Inputs{});
}  // namespace internals::building

/// Runs a model's functions as the compiler runs them for a plan. Where it cannot, its error names the function; false
/// where the model is mistaken otherwise, as its plan then says:
///
///     static_assert(run_as_constant<Model, Tensor<float, Shape<4 / data, 8>>>());
template <class Model, class... Input>
constexpr bool run_as_constant() {
  return internals::building::run_dry<Model, Input...>() >= 0;
}

}  // namespace parallel
