// The verb that moves a value to another placement.
#pragma once
#include <parallel/operation/source.hpp>

namespace parallel {
namespace internals {
namespace spelling {
/// A word of `to`: dimension d stands as another does.
template <int d, Dim as>
struct StandingAs {
  static constexpr const Axis* axis = nullptr;
  static constexpr Placement placement{};
};
template <class Word>
struct Said {
  static constexpr Layout of(const Layout& layout) { return layout.with(Word::axis, Word::placement); }
};
template <int d, Dim as>
struct Said<StandingAs<d, as>> {
  static constexpr Layout of(Layout layout) {
    layout.dims[d] = layout.dims[d].standing_as(as);
    return layout;
  }
};
template <class X, class... Placed>
struct Target {
  static constexpr Layout layout = [] {
    Layout l = X::type.layout;
    ((l = Said<Placed>::of(l)), ...);
    return l;
  }();
  static constexpr Refusal refusal = refused_annotation<Shape<>, Placed...>(X::type.layout.rank());
};
template <class X, Dim... dims, class... Placed>
struct Target<X, Shape<dims...>, Placed...> {
  static constexpr Layout layout = type_of<float, Shape<dims...>, Placed...>().layout;
  static constexpr Refusal refusal = refused_annotation<Shape<dims...>, Placed...>();
};
/// Why a value with this type cannot be brought to a layout.
constexpr Refusal refused_move(const Type& from, const Layout& to) {
  if (from.layout.rank() != to.rank()) return {Reason::wrong_rank, {from.layout.rank(), to.rank()}};
  for (int d = 0; d < to.rank(); ++d)
    if (from.layout.dims[d].size != to.dims[d].size)
      return {Reason::extents_stay, {from.layout.dims[d].size, to.dims[d].size}};
  for (int d = 0; d < to.rank(); ++d)
    if (const Dim& now = from.layout.dims[d], &then = to.dims[d];
        !now.ordered_as(then) && (now.ordered() || now.count > 0) && (then.ordered() || then.count > 0))
      return {Reason::orders_differ, {d, to.rank()}, now.ordered() ? now.ordered_for : then.ordered_for};
  AxisList axes;
  from.layout.collect(axes);
  for (const Axis* a : axes)
    if (from.layout.on(a) == Broadcast && to.on(a) == Invariant)
      return {Reason::never_invariant, {bytes_of(from.dtype)}, a};
  if (!route(standing_as(from.layout, to), to).arrives) return {Reason::nested_otherwise, {0, to.rank()}};
  return {};
}
template <class X, class... Placed>
struct Moving {
  static constexpr Inference value = [] {
    Inference v;
    Type moved = X::type;
    moved.layout = Target<X, Placed...>::layout;
    v.results.push_back(moved);
    if (is_source<X>) v.refusal = {Reason::only_sources, {1}};
    if (X::kind != Kind::refused && !v.refusal)
      v.refusal = Target<X, Placed...>::refusal ? Target<X, Placed...>::refusal : refused_move(X::type, moved.layout);
    v.kind = v.refusal ? Kind::refused : X::kind;
    return v;
  }();
};
}  // namespace spelling
}  // namespace internals

/// `to<On<tensor, Broadcast>>(x)` moves x on the named axes; `to<Shape<32 / data, 768>>(x)` to this layout, Invariant
/// on every other axis.
template <class... Placed, Distributed X>
constexpr auto to(const X& x, Here here = {}) {
  if constexpr ((internals::is_element_type<Placed> || ...)) {
    return internals::mistaken<Reason::no_placement, X>();
  } else {
    using Types = internals::spelling::Moving<X, Placed...>;
    using accepted [[maybe_unused]] = internals::checked<Types>;
    using Result = internals::traced_t<Types>;
    if constexpr (Types::value.kind == Kind::refused) {
      return Result{};
    } else {
      internals::Applications* program = x.program();
      if (!notes(program)) return Result{program, -1};
      return Result{program, program->add({.what = internals::Application::What::move,
                                           .operands = {x.enter(*program)},
                                           .type = &Types::value.results[0],
                                           .where = here})};
    }
  }
}

/// x with all its dimensions standing as their elements are counted. Those that stand in an order must be whole.
template <int from = 0, Distributed X>
constexpr auto in_order(const X& x, Here here = {}) {
  if constexpr (X::kind == Kind::refused || from >= X::type.layout.rank())
    return x;
  else if constexpr (X::type.layout.dims[from].ordered())
    return in_order<from + 1>(to<internals::spelling::StandingAs<from, Dim{}>>(x, here), here);
  else
    return in_order<from + 1>(x, here);
}

/// x, and the word that the backward pass is to compute it again instead of keeping it (Chen et al., 2016): from what
/// it is made of, which is kept unless it is marked too.
template <Distributed X>
constexpr auto recompute(const X& x) {
  if constexpr (X::kind != Kind::refused && !internals::is_source<X>) {  // a source is always made again
    if (!notes(x.program())) return x;
    auto& all = x.program()->all;
    if (const int number = x.enter(*x.program()); number < all.size()) all[number].again = true;  // else it has ended
  }
  return x;
}
/// f(x...), and the word that the backward pass is to compute again what f applies, but for its result: from x, and
/// from what collectives gave. `recompute<Repeat::collectives>(attention, x)`: collectives too are done again; words
/// are those of `Recompute`.
template <auto... word, class F, Distributed... X>
requires(!Distributed<F> && std::is_invocable_v<const F&, const X&...>)  //
    constexpr auto recompute(const F& f, const X&... x) {
  constexpr const internals::Recomputation& words = Recompute<word...>::value;
  constexpr bool fits = words.blocks == 1 && !words.whole && words.fits(1);
  using accepted [[maybe_unused]] = typename Refused<fits ? Reason::none : Reason::recompute_words, nullptr, 1>::type;
  internals::Applications* program = nullptr;
  ((program = program != nullptr ? program : x.program()), ...);
  const int from = notes(program) ? program->all.size() : 0;
  const auto result = f(x...);
  if constexpr (Distributed<decltype(result)>) {
    if (!notes(program)) return result;
    const int last = result.enter(*program);
    for (int i = from; i < program->all.size(); ++i)
      if (internals::Application& a = program->all[i]; i != last && a.recomputation == nullptr)
        a.recomputation = &words;
  }
  return result;
}

/// Refused: what is called stands first.
template <auto... word, Distributed X, class F, class... More>
requires(!Distributed<F>) constexpr auto recompute(const X& x, const F&, const More&...) {
  static_assert(sizeof...(More) > 99,
                "parallel: recompute takes what is called, then its arguments; write recompute(mlp, x)");
  return x;
}

}  // namespace parallel
