// The same elements in the same order under other dimensions.
#pragma once
#include <parallel/operation/slice.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x                                         result S of the first dimension of a group       S of the first dimension
// of the group that it becomes P                                         P Groups: [a, b, c] -> [a b, c] has the groups
// {a, b} -> {a b} and {c} -> {c}. Slices of any other dimension would be strided.
PARALLEL_AHEAD constexpr Shaped reshape_shape(const Arguments& a) {
  Type result{a.types[0].dtype, {}};
  std::int64_t elements = 1;
  for (const std::int64_t n : a.ints) {
    elements *= n;
    if (result.layout.rank() < max_rank) result.layout.dims.push_back(Dim(n));
  }
  if (a.ints.size() > max_rank) return {{result}, {Reason::wrong_rank, {a.ints.size(), max_rank}}};
  if (elements != a.types[0].layout.elements())
    return {{result}, {Reason::elements_differ, {a.types[0].layout.elements(), elements}}};
  return {{result}, {}};
}
constexpr std::int64_t common_divisor(std::int64_t a, std::int64_t b) {
  while (b != 0) {
    const std::int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
/// A split of x passes where as many elements stand before the dimension as before one of the result, and a degree can
/// divide both.
PARALLEL_AHEAD constexpr Signatures reshape_table(const Arguments& a) {
  Signatures rows{uniform_row(1, 1, Broadcast), uniform_row(1, 1, Partial)};
  std::int64_t before = 1;
  for (int d = 0; d < a.rank(0); before *= a.size(0, d), ++d) {
    if (a.size(0, d) == 1) continue;
    std::int64_t before_result = 1;
    for (int e = 0; e < a.ints.size(); before_result *= a.ints[e], ++e)
      if (before == before_result && common_divisor(a.size(0, d), a.ints[e]) > 1)
        rows.push_back({{split(d)}, {split(e)}});
  }
  return rows;
}
PARALLEL_AHEAD constexpr void reshape_gradient(Gradient& g);
inline constexpr Operation reshape{.name = "reshape",
                                   .shape = reshape_shape,
                                   .signatures = reshape_table,
                                   .gradient = reshape_gradient,
                                   .flops = no_flops,
                                   .view = true,
                                   .aliases = true};
PARALLEL_AHEAD constexpr void reshape_gradient(Gradient& g) {
  Ints sizes;
  for (const Dim& d : g.type(0).layout.dims) sizes.push_back(d.size);
  g.give(0, reshape, {g.cotangent()}, sizes);
}
}  // namespace operation

/// reshape<4, 6>(x): as [4, 6].
template <std::int64_t... sizes, Distributed X>
constexpr auto reshape(const X& x, Here here = {}) {
  return Apply<operation::reshape, sizes...>{}(here, x);
}

namespace internals {
/// reshape<8 / data, 64>(x): refused.
template <auto... extent, Distributed X>
requires(std::is_same_v<std::remove_const_t<decltype(extent)>, Dim> || ...) constexpr auto reshape(const X&,
                                                                                                   Here = {}) {
  return mistaken<Reason::reshaped_axes, X, static_cast<int>(sizeof...(extent))>();
}
namespace spelling {
/// The sizes of X without dimension `dim`, as arguments of reshape.
template <int dim, class X, int... d>
constexpr auto without_dimension(const X& x, Here here, std::integer_sequence<int, d...>) {
  return reshape<X::type.layout.dims[d < dim ? d : d + 1].size...>(x, here);
}
}  // namespace spelling
}  // namespace internals

/// take<2, 1>(x): x at position 1 of dimension 2, which it no longer has.
template <int dim, std::int64_t position, Distributed X>
constexpr auto take(const X& x, Here here = {}) {
  constexpr int left = X::type.layout.rank() > 0 ? X::type.layout.rank() - 1 : 0;  // of what is refused, too
  const auto one = slice<dim, position, position + 1>(x, here);
  return internals::spelling::without_dimension<dim>(one, here, std::make_integer_sequence<int, left>{});
}

}  // namespace parallel
