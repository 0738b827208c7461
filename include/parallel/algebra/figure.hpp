// The figures of a refusal as types whose names a compiler prints: `left_extent<5>`, `first<Split<0>>`,
// `axis<&tensor>`.
#pragma once
#include <cstdint>
#include <utility>

#include <parallel/algebra/axis.hpp>
#include <parallel/algebra/placement.hpp>

namespace parallel {
namespace internals {
/// A placement as one number, so that it can stand among figures: a split's dimension, or a number below zero.
constexpr std::int64_t as_figure(Placement p) {
  return p.flat ? -64 : p.split() ? p.dim : -1 - static_cast<std::int64_t>(p.kind);
}
}  // namespace internals

namespace figure {
// clang-format off
template <std::int64_t> struct after;
template <std::int64_t> struct annotations;
template <std::int64_t> struct argument;
template <std::int64_t> struct arguments;
template <std::int64_t> struct axes;
template <std::int64_t> struct before;
template <std::int64_t> struct begin;
template <std::int64_t> struct budget;
template <std::int64_t> struct bytes;
template <std::int64_t> struct channels;
template <std::int64_t> struct chunks;
template <std::int64_t> struct classes;
template <std::int64_t> struct coordinate;
template <std::int64_t> struct dimension;
template <std::int64_t> struct dimensions;
template <std::int64_t> struct end;
template <std::int64_t> struct extent;
template <std::int64_t> struct extent_returned;
template <std::int64_t> struct extent_taken;
template <std::int64_t> struct group;
template <std::int64_t> struct inputs;
template <std::int64_t> struct key_axes;
template <std::int64_t> struct key_heads;
template <std::int64_t> struct layers;
template <std::int64_t> struct left_bytes;
template <std::int64_t> struct left_extent;
template <std::int64_t> struct length;
template <std::int64_t> struct line;
template <std::int64_t> struct member;
template <std::int64_t> struct members;
template <std::int64_t> struct micro_batches;
template <std::int64_t> struct needed;
template <std::int64_t> struct operand;
template <std::int64_t> struct operands;
template <std::int64_t> struct operations;
template <std::int64_t> struct padding;
template <std::int64_t> struct position;
template <std::int64_t> struct query_axes;
template <std::int64_t> struct query_heads;
template <std::int64_t> struct ranks;
template <std::int64_t> struct results;
template <std::int64_t> struct right_bytes;
template <std::int64_t> struct right_extent;
template <std::int64_t> struct slices;
template <std::int64_t> struct stages;
template <std::int64_t> struct steps;
template <std::int64_t> struct stride;
template <std::int64_t> struct taken;
template <std::int64_t> struct tensors;
template <std::int64_t> struct times;
template <std::int64_t> struct valid_above;
template <std::int64_t> struct valid_below;
template <std::int64_t> struct window;

template <char...> struct nearest;  // names, letter by letter
template <char...> struct said;

template <std::int64_t dim> struct Split;  // placements, as they are written
struct SplitFlat;
struct Invariant;
struct Broadcast;
struct Partial;
struct At;
struct OnHost;
// clang-format on
template <const Axis*>
struct axis;

template <std::int64_t number>
struct PlacementOf {
  using type = Split<number>;
};
template <>
struct PlacementOf<internals::as_figure(parallel::internals::SplitFlat)> {
  using type = SplitFlat;
};
template <>
struct PlacementOf<internals::as_figure(parallel::Invariant)> {
  using type = Invariant;
};
template <>
struct PlacementOf<internals::as_figure(parallel::Broadcast)> {
  using type = Broadcast;
};
template <>
struct PlacementOf<internals::as_figure(parallel::Partial)> {
  using type = Partial;
};
template <>
struct PlacementOf<-1 - static_cast<std::int64_t>(PlacementKind::at)> {
  using type = At;
};
template <>
struct PlacementOf<internals::as_figure(parallel::internals::OnHost)> {
  using type = OnHost;
};
// clang-format off
template <class> struct first_lies;
template <class> struct second_lies;
template <class> struct it_lies;
template <class> struct moved_from;
template <class> struct moved_to;
template <std::int64_t number> using first = first_lies<typename PlacementOf<number>::type>;
template <std::int64_t number> using second = second_lies<typename PlacementOf<number>::type>;
template <std::int64_t number> using lies = it_lies<typename PlacementOf<number>::type>;
template <std::int64_t number> using from = moved_from<typename PlacementOf<number>::type>;
template <std::int64_t number> using to = moved_to<typename PlacementOf<number>::type>;
// clang-format on

/// Names of figures, in order.
template <template <std::int64_t> class... Name>
struct Names;
template <std::int64_t... number>
struct Numbers {
  static constexpr std::int64_t at(std::size_t i) {
    const std::int64_t all[] = {number...};
    return all[i];
  }
};
/// `Why` with the first numbers under their names, and with the axis if there is one.
template <template <class...> class Why, const Axis* on, class Numbers, class Index,
          template <std::int64_t> class... Name>
struct Filled;
template <template <class...> class Why, const Axis* on, class Numbers, std::size_t... i,
          template <std::int64_t> class... Name>
struct Filled<Why, on, Numbers, std::index_sequence<i...>, Name...> {
  using type = Why<axis<on>, Name<Numbers::at(i)>...>;
};
template <template <class...> class Why, class Numbers, std::size_t... i, template <std::int64_t> class... Name>
struct Filled<Why, nullptr, Numbers, std::index_sequence<i...>, Name...> {
  using type = Why<Name<Numbers::at(i)>...>;
};
template <template <class...> class Why, const Axis* on, class Names, std::int64_t... number>
struct Named;
template <template <class...> class Why, const Axis* on, template <std::int64_t> class... Name, std::int64_t... number>
struct Named<Why, on, Names<Name...>, number...>
    : Filled<Why, on, Numbers<number...>, std::make_index_sequence<sizeof...(Name)>, Name...> {};
}  // namespace figure

}  // namespace parallel
