// A range of one dimension, and tensors one behind the other along one dimension.
#pragma once
#include <parallel/operation/elementwise.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// slice: x       result        concatenate: all operands   result S, other       S             S, other
// S P              P             P                            P A slice of the split dimension itself is never derived,
// and tensors split along the dimension that joins them would interleave.
PARALLEL_AHEAD constexpr Shaped slice_shape(const Arguments& a) {
  Shaped same = same_shape(a);
  if (a.ints[0] < 0 || a.ints[0] >= a.rank(0))
    return {same.results, {Reason::no_such_dimension, {a.ints[0], a.rank(0)}}};
  const int dim = static_cast<int>(a.ints[0]);
  if (a.ints[1] < 0 || a.ints[2] <= a.ints[1] || a.ints[2] > a.size(0, dim))
    return {same.results, {Reason::slice_range, {a.ints[1], a.ints[2], a.size(0, dim)}}};
  same.results[0].layout.dims[dim] = Dim(a.ints[2] - a.ints[1]);
  return same;
}
constexpr Signatures other_dimensions(const Arguments& a, int dim) {
  Signatures rows{uniform_row(a.types.size(), 1, Broadcast), uniform_row(a.types.size(), 1, Partial)};
  for (int d = 0; d < a.rank(0); ++d)
    if (d != dim && a.size(0, d) > 1) rows.push_back(uniform_row(a.types.size(), 1, split(d)));
  return rows;
}
PARALLEL_AHEAD constexpr Signatures slice_table(const Arguments& a) {
  return other_dimensions(a, static_cast<int>(a.ints[0]));
}

/// x at `ints[1]` of dimension `ints[0]`, zeros around it
inline constexpr Operation pad{.name = "pad", .flops = no_flops};
/// (sum, x): sum and x, at `ints[1]` of dimension `ints[0]`, in the storage of sum, which is not touched elsewhere
inline constexpr Operation accumulate_slice{.name = "accumulate_slice", .updates = true, .reads_part_of = 0};
PARALLEL_AHEAD constexpr void slice_gradient(Gradient& g) { g.give(0, pad, {g.cotangent()}, g.node.ints); }
inline constexpr Operation slice{.name = "slice",
                                 .shape = slice_shape,
                                 .signatures = slice_table,
                                 .gradient = slice_gradient,
                                 .flops = no_flops,
                                 .reads_part_of = 0};

PARALLEL_AHEAD constexpr Shaped concatenate_shape(const Arguments& a) {
  Shaped joined = same_shape(a);
  if (a.ints[0] < 0 || a.ints[0] >= a.rank(0))
    return {joined.results, {Reason::no_such_dimension, {a.ints[0], a.rank(0)}}};
  const int dim = static_cast<int>(a.ints[0]);
  std::int64_t size = 0;
  for (int i = 0; i < a.types.size(); ++i) {
    if (a.rank(i) != a.rank(0)) return {joined.results, {Reason::wrong_rank, {a.rank(i), a.rank(0)}}};
    if (a.types[i].dtype != a.types[0].dtype)
      return {joined.results, {Reason::element_types, {bytes_of(a.types[0].dtype), bytes_of(a.types[i].dtype)}}};
    for (int d = 0; d < a.rank(0); ++d)
      if (d != dim && a.size(i, d) != a.size(0, d))
        return {joined.results, {Reason::shapes_differ, {a.size(0, d), a.size(i, d)}}};
    size += a.size(i, dim);
  }
  joined.results[0].layout.dims[dim] = Dim(size);
  return joined;
}
PARALLEL_AHEAD constexpr Signatures concatenate_table(const Arguments& a) {
  return other_dimensions(a, static_cast<int>(a.ints[0]));
}
PARALLEL_AHEAD constexpr void concatenate_gradient(Gradient& g) {
  const int dim = static_cast<int>(g.node.ints[0]);
  std::int64_t begin = 0;
  for (int i = 0; i < g.node.operands.size(); ++i) {
    const std::int64_t end = begin + g.type(i).layout.dims[dim].size;
    g.give(i, slice, {g.cotangent()}, {dim, begin, end});
    begin = end;
  }
}
inline constexpr Operation concatenate{.name = "concatenate",
                                       .shape = concatenate_shape,
                                       .signatures = concatenate_table,
                                       .element_by_element = 255,
                                       .gradient = concatenate_gradient,
                                       .flops = no_flops};
}  // namespace operation

/// slice<1, 0, 8>(x): positions 0 to 7 of dimension 1, which must not be split.
template <int dim, std::int64_t begin, std::int64_t end, Distributed X>
constexpr auto slice(const X& x, Here here = {}) {
  return Apply<operation::slice, dim, begin, end>{}(here, x);
}
/// concatenate<1>(a, b): b behind a along dimension 1; up to eight tensors.
template <int dim, Distributed X, Distributed Y>
constexpr auto concatenate(const X& x, const Y& y, Here here = {}) {
  return Apply<operation::concatenate, dim>{}(here, x, y);
}
template <int dim, Distributed X, Distributed Y, Distributed Z>
constexpr auto concatenate(const X& x, const Y& y, const Z& z, Here here = {}) {
  return Apply<operation::concatenate, dim>{}(here, x, y, z);
}
template <int dim, Distributed... X>
requires(sizeof...(X) > 3 && sizeof...(X) <= internals::max_operands) constexpr auto concatenate(const X&... x) {
  return Apply<operation::concatenate, dim>{}(internals::Source{}, x...);
}
namespace internals {
/// Tensors in braces.
struct InBraces {
  template <Distributed... X>
  requires(sizeof...(X) > 1) constexpr InBraces(const X&...) {
    static_assert(sizeof...(X) > 99,
                  "parallel: tensors that are put together stand without braces, behind the dimension along which they "
                  "do; write concatenate<1>(x, y)");
  }
};
}  // namespace internals
template <int dim = 0, class None = void>
constexpr auto concatenate(const internals::InBraces&, int = dim) {
  return typename internals::NoResult<None>::type{};
}

}  // namespace parallel
