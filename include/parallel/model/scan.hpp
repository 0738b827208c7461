// A loop over time: one cell with one set of parameters, applied step by step to the slices of a sequence.
#pragma once
#include <parallel/meta/takes.hpp>
#include <parallel/operation/to.hpp>

namespace parallel {
namespace internals {
/// Why what an iteration returns cannot be what the next one takes.
constexpr Refusal carried_otherwise(const Type& taken, const Type& returned, Kind kind) {
  if (kind == Kind::refused) return {};
  if (!same_extents(taken.layout, returned.layout)) {
    const auto extent = [](const Layout& l, int d) { return d < l.rank() ? l.dims[d].size : 0; };
    int d = 0;
    while (d < max_rank && extent(taken.layout, d) == extent(returned.layout, d)) ++d;
    return {Reason::carried_differs, {extent(taken.layout, d), extent(returned.layout, d)}};
  }
  if (taken.dtype != returned.dtype) return {Reason::carried_type, {bytes_of(taken.dtype), bytes_of(returned.dtype)}};
  return spelling::refused_move(returned, taken.layout);
}

namespace scanning {
/// One step of a sequence.
template <class X>
struct Slice {
  static constexpr Inference value = [] {
    Inference v;
    v.results.push_back(Type{X::type.dtype, without_leading(X::type.layout)});
    v.kind = X::kind == Kind::parameter ? Kind::activation : X::kind;
    return v;
  }();
};
/// What so many steps give, one behind the other.
template <class X, Dim steps>
struct Stack {
  static constexpr Inference value = [] {
    Inference v;
    v.results.push_back(Type{X::type.dtype, with_leading(X::type.layout, steps)});
    v.kind = Kind::activation;
    return v;
  }();
};

/// What a cell returns: a state, or a pair of a state and what the step gives beside it.
template <class Returned>
struct Parts {
  using State = Returned;
  using Given = Returned;
  static constexpr bool paired = false;
};
template <class First, class Second>
struct Parts<std::pair<First, Second>> {
  using State = First;
  using Given = Second;
  static constexpr bool paired = true;
};

/// Why a sequence cannot be taken in so many steps.
constexpr Refusal refused_sequence(const Layout& x, const Dim& steps) {
  if (x.rank() == 0) return {Reason::wrong_rank, {0, 1}};
  if (x.dims[0].size != steps.size) return {Reason::steps_differ, {x.dims[0].size, steps.size}};
  if (x.dims[0].ordered()) return {Reason::order_unknown, {0, x.rank()}, x.dims[0].ordered_for};
  if (x.dims[0].count > 0) return {Reason::steps_split, {steps.size}, x.dims[0].axes[0]};
  return {};
}
/// Whether what stands for the state is the sequence, which stands for none.
template <class State, class X>
constexpr bool swapped(const Dim& steps) {
  const bool sequence = !refused_sequence(State::type.layout, steps);
  const Reason refused = refused_sequence(X::type.layout, steps).reason;
  return sequence && (is_source<X> || refused == Reason::wrong_rank || refused == Reason::steps_differ);
}
/// What a Scan is called with otherwise.
template <class... Given>
constexpr auto refused_call() {
  using refused [[maybe_unused]] =
      typename Refused<Reason::scan_arguments, nullptr, static_cast<std::int64_t>(sizeof...(Given))>::type;
  return typename NoResult<Given...>::type{};
}
/// A tensor that is given to a function of this name.
struct Given {
  template <Distributed X>
  constexpr Given(const X&) {}
};
}  // namespace scanning
}  // namespace internals

/// What a Scan gives: the state that its last step returned, and what every step gave, one behind the other.
template <class Last, class Each>
struct Scanned : internals::Arithmetic<Scanned<Last, Each>> {
  Last last;
  Each each;
  constexpr Scanned() = default;
  constexpr Scanned(const Last& of_last, const Each& of_each) : last(of_last), each(of_each) {}

  // As a tensor it is a mistake, which whoever takes it for one asks of its kind.
  static constexpr Type type = Last::type;
  static constexpr Kind kind = internals::mistaken<Reason::scan_result, std::remove_const_t<Last>>().kind;
  constexpr internals::Applications* program() const { return last.program(); }
  constexpr int enter(internals::Applications&) const { return -1; }
};

/// `Scan<512, Gru> gru; const auto [last, each] = gru(initial, x);`: 512 steps, each of which takes the state that the
/// one before returned and its slice of x[512, ...], all with the same parameters. The cell, `cell(state, x)`, is
/// traced once and returns the new state, or std::pair(state, output). `last` is the last state, `each` the outputs of
/// all steps, [512, ...]; where the cell returns no output, the states. The backward pass goes through the steps in
/// reverse; gradients of parameters add up over them, and are reduced once.
///
/// `Scan<512, Gru, Recompute<>>`: what of a step the backward pass computes again; `KeepOnHost`: where the rest is
/// kept. An evaluation takes no notice.
template <Dim steps, class Cell, class... Word>
struct Scan {
  Cell cell{};

  /// Every step takes the state and its slice of the sequence x, and the same further operands. The state may begin as
  /// a constant that says how it lies: `constant<float, Shape<64 / data, 128>>(0)`.
  template <Distributed State, Distributed X, Distributed... More>
  constexpr auto operator()(const State& initial, const X& x, const More&... more) const {
    if constexpr (State::kind == Kind::refused || X::kind == Kind::refused) {
      return refused<State, X>();
    } else if constexpr (internals::scanning::swapped<State, X>(steps) ||
                         (internals::is_source<X> && sizeof...(More) > 0)) {
      return static_cast<void>(internals::scanning::refused_call<State, X, More...>()), refused<State, X>();
    } else if constexpr (internals::is_source<X>) {
      return static_cast<void>(internals::mistaken<Reason::only_sources, X, 2>()), refused<State, X>();
    } else if constexpr (constexpr Refusal sequence = internals::scanning::refused_sequence(X::type.layout, steps);
                         sequence) {
      using accepted [[maybe_unused]] =
          typename Refused<sequence.reason, sequence.axis, sequence.figures[0], sequence.figures[1]>::type;
      return refused<State, X>();
    } else {
      return applied(initial, x, more...);
    }
  }
  /// Without a state or a sequence, or with a number for one: refused.
  template <class... Other>
  constexpr auto operator()(const Other&...) const {
    using Nothing = decltype(internals::scanning::refused_call<Other...>());
    return Scanned<Nothing, Nothing>{};
  }
  /// One step: refused.
  template <class Index>
  constexpr auto operator[](const Index&) const {
    using refused [[maybe_unused]] = typename Refused<Reason::no_iteration, nullptr,
                                                      steps.size + 0 * static_cast<std::int64_t>(sizeof(Index))>::type;
    using Nothing = typename internals::NoResult<Index>::type;
    return [](const auto&...) { return Nothing{}; };
  }

 private:
  template <Distributed State, Distributed X>
  static constexpr auto refused() {
    using Last = typename internals::Symbolic<State, Kind::refused>::type;
    return Scanned<Last, typename internals::Symbolic<X, Kind::refused>::type>{};
  }

  template <class... X>
  using Stepped = std::remove_cvref_t<decltype(cell(std::declval<const X&>()...))>;

  template <class State, class X, class... More>
  constexpr auto applied(const State& initial, const X& x, const More&... more) const {
    using Carried = typename internals::Symbolic<State, Kind::activation>::type;
    using OneStep = internals::traced_t<internals::scanning::Slice<X>>;
    if constexpr (!internals::meta::can_take<Cell, Carried, OneStep, More...>()) {
      return static_cast<void>(
                 internals::mistaken<Reason::called_otherwise, X, 2 + static_cast<int>(sizeof...(More))>()),
             refused<State, X>();
    } else {
      return looped<Carried, OneStep>(initial, x, more...);
    }
  }
  template <class Carried, class OneStep, class State, class X, class... More>
  constexpr auto looped(const State& initial, const X& x, const More&... more) const {
    using Parts = internals::scanning::Parts<Stepped<Carried, OneStep, More...>>;
    using Returned = typename Parts::State;
    using Given = typename Parts::Given;
    if constexpr (!Distributed<Returned> || !Distributed<Given>) {
      return static_cast<void>(internals::mistaken<Reason::no_tensor, X, 2 + static_cast<int>(sizeof...(More))>()),
             refused<State, X>();
    } else {
      constexpr Refusal refusal = internals::carried_otherwise(State::type, Returned::type, Returned::kind);
      using accepted [[maybe_unused]] =
          typename Refused<refusal.reason, refusal.axis, refusal.figures[0], refusal.figures[1]>::type;
      if constexpr (refusal || Returned::kind == Kind::refused || Given::kind == Kind::refused) {
        return refused<State, X>();
      } else if constexpr (internals::is_source<Given>) {
        return static_cast<void>(internals::mistaken<Reason::only_sources, X, 1>()), refused<State, X>();
      } else {
        using Output = std::conditional_t<Parts::paired, Given, Carried>;
        using Each = internals::traced_t<internals::scanning::Stack<Output, steps>>;
        internals::Applications* program = x.program();
        const auto called = [&](const Carried& state, const OneStep& step) { return cell(state, step, more...); };
        if (!notes(program)) {
          static_cast<void>(called(Carried(program, -1), OneStep(program, -1)));
          return Scanned<Carried, Each>{Carried(program, -1), Each(program, -1)};
        }
        using What = internals::Application::What;
        const int from = initial.enter(*program), outside = program->loop;
        const int sequence = program->add({.what = What::sequence, .operands = {x.enter(*program)}});
        const int carried = program->add({.what = What::carried});
        program->all[carried].loop = program->loop = carried;
        const auto body = [&] {
          const int step = program->add({.what = What::step, .operands = {sequence}});
          return noted(*program, called(Carried(program, carried), OneStep(program, step)));
        };
        const auto [returned, given] = program->iterate(from, carried, State::type, static_cast<int>(steps.size), body);
        program->loop = outside;
        const int loop = program->add({.what = What::loop,
                                       .operands = {from},
                                       .type = &State::type,
                                       .recomputation = internals::recomputation_of<Word...>(),
                                       .keeps_on_host = (std::is_same_v<Word, KeepOnHost> || ...),
                                       .carried = carried,
                                       .returned = returned,
                                       .given = given,
                                       .count = static_cast<int>(steps.size)});
        return Scanned<Carried, Each>{Carried(program, loop),
                                      Each(program, program->add({.what = What::each, .operands = {loop}}))};
      }
    }
  }

  /// What a cell returned, among a program's applications.
  template <class Returned>
  static constexpr internals::Returned noted(internals::Applications& program, const Returned& returned) {
    if constexpr (internals::scanning::Parts<Returned>::paired) {
      const int state = returned.first.enter(program);
      return {state, returned.second.enter(program)};
    } else {
      const int state = returned.enter(program);
      return {state, state};
    }
  }
};

namespace internals {
// As a function: refused. One of the user's own with this name goes before that.
template <auto... numbers, class... More>
constexpr auto scan(const scanning::Given&, const More&...) {
  using Nothing = decltype(scanning::refused_call<scanning::Given, More...>());
  return Scanned<Nothing, Nothing>{};
}
template <auto... numbers, class Cell, class... More>
requires(!Distributed<Cell>) constexpr auto scan(const Cell&, const scanning::Given&, const More&...) {
  using Nothing = decltype(scanning::refused_call<Cell, scanning::Given, More...>());
  return Scanned<Nothing, Nothing>{};
}

template <class X>
inline constexpr bool is_scan = false;
template <Dim steps, class Cell, class... Word>
inline constexpr bool is_scan<Scan<steps, Cell, Word...>> = true;
template <class X>
inline constexpr bool has_words_of_scan = true;
template <Dim steps, class Cell, class... Word>
inline constexpr bool has_words_of_scan<Scan<steps, Cell, Word...>> = keeps_once<Word...> &&
                                                                      (is_of_keeping<Word> && ...);
template <class X>
inline constexpr Dim steps_of{};
template <Dim steps, class Cell, class... Word>
inline constexpr Dim steps_of<Scan<steps, Cell, Word...>> = steps;
template <class X>
inline constexpr const Recomputation* recomputed_over = nullptr;
template <Dim steps, class Cell, class... Word>
inline constexpr const Recomputation* recomputed_over<Scan<steps, Cell, Word...>> = recomputation_of<Word...>();
}  // namespace internals

}  // namespace parallel
