// Sums, means, maxima and minima over dimensions: sum<0>(x), mean(x) over all of them.
#pragma once
#include <parallel/operation/unary.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x                 sum, mean   max, min
// S, summed over    P           I, by an exchange of the ranks' maxima or minima
// S, kept           S           S
// P                 P           refused: completed first

constexpr bool reduced(const Arguments& a, int dim) {
  if (a.ints.empty()) return true;
  for (const std::int64_t d : a.ints)
    if (d == dim) return true;
  return false;
}
constexpr Shaped reduce_shape(const Arguments& a, DType dtype) {
  Type result{dtype, {}};
  for (const std::int64_t d : a.ints)
    if (d < 0 || d >= a.rank(0)) return {{result}, {Reason::no_such_dimension, {d, a.rank(0)}}};
  for (int d = 0; d < a.rank(0); ++d)
    if (!reduced(a, d)) result.layout.dims.push_back(Dim(a.size(0, d)));
  return {{result}, {}};
}
PARALLEL_AHEAD constexpr Shaped sum_shape(const Arguments& a) {
  if (a.types[0].dtype == DType::i32) return {{a.types[0]}, {Reason::whole_sum, {bytes_of(DType::i32)}}};
  return reduce_shape(a, precise(a.types[0].dtype));
}
PARALLEL_AHEAD constexpr Shaped max_shape(const Arguments& a) { return reduce_shape(a, a.types[0].dtype); }
constexpr Signatures reduce_rows(const Arguments& a, bool linear) {
  Signatures rows{uniform_row(1, 1, Broadcast)};
  if (linear) rows.push_back(uniform_row(1, 1, Partial));
  int kept = 0;
  for (int d = 0; d < a.rank(0); ++d) {
    const bool gone = reduced(a, d);
    if (a.size(0, d) > 1) {
      if (!gone) rows.push_back({{split(d)}, {split(kept)}});
      if (gone && linear) rows.push_back({{split(d)}, {Partial}});
      if (gone && !linear) rows.push_back({{split(d)}, {Invariant}, true});
    }
    kept += gone ? 0 : 1;
  }
  return rows;
}
PARALLEL_AHEAD constexpr Signatures sum_over_table(const Arguments& a) { return reduce_rows(a, true); }
PARALLEL_AHEAD constexpr Signatures max_table(const Arguments& a) { return reduce_rows(a, false); }

/// Repeats a reduced tensor along the dimensions `ints` of the result, times the first number.
inline constexpr Operation expand{.name = "expand"};

PARALLEL_AHEAD constexpr void sum_gradient(Gradient& g) {
  g.give(0, expand, {g.cotangent()}, g.node.ints, g.node.reals[0]);
}
/// The sum over the dimensions `ints` (none: all), times the first number.
inline constexpr Operation sum{.name = "sum",
                               .shape = sum_shape,
                               .signatures = sum_over_table,
                               .gradient = sum_gradient,
                               .flops = elements_of_operand};

PARALLEL_AHEAD constexpr void max_lower(Lowering&);
PARALLEL_AHEAD constexpr void min_lower(Lowering&);
PARALLEL_AHEAD constexpr void max_gradient(Gradient&);
inline constexpr Operation max{.name = "max",
                               .shape = max_shape,
                               .signatures = max_table,
                               .lower = max_lower,
                               .gradient = max_gradient,
                               .flops = elements_of_operand};
inline constexpr Operation min{.name = "min",
                               .shape = max_shape,
                               .signatures = max_table,
                               .lower = min_lower,
                               .gradient = max_gradient,
                               .flops = elements_of_operand};
/// over the dimensions `ints` of a rank's part
inline constexpr Operation local_max{.name = "local_max", .flops = elements_of_operand};
inline constexpr Operation local_min{.name = "local_min", .flops = elements_of_operand};
/// (x, max): how many elements of a rank's part equal it
inline constexpr Operation count_maxima{.name = "count_maxima", .flops = elements_of_operand};
/// (x, max, count, g): g / count where x equals max
inline constexpr Operation max_derivative{.name = "max_gradient"};
/// Stands for the completed maximum or minimum in the graph, so that its gradient goes back to the elements and not to
/// the ranks' own.
inline constexpr Operation maximum_of{.name = "maximum_of", .gradient = max_gradient, .aliases = true};

/// The type that a statistic of a rank's own part has: pending on the axes that split what it is made of.
constexpr Type pending_on(Type type, const AxisList& axes) {
  for (const Axis* a : axes) type.layout = type.layout.with(a, Partial);
  return type;
}
/// The maximum of x over dimensions, exchanged where they are split.
constexpr int maximum(Emitter& e, int x, const Type& type, const AxisList& exchanging, const Ints& dims) {
  const int own = e.emit(local_max, {x}, {pending_on(type, exchanging)}, dims);
  return e.exchange(own, exchanging, true);
}
/// The minimum likewise: it is minus the largest of the ranks' minima, turned round.
constexpr int minimum(Emitter& e, int x, const Type& type, const AxisList& exchanging, const Ints& dims) {
  const Type own_type = pending_on(type, exchanging);
  const int own = e.emit(local_min, {x}, {own_type}, dims);
  if (exchanging.empty()) return own;
  const int largest = e.exchange(e.emit(scale, {own}, {own_type}, {}, -1), exchanging, true);
  return e.emit(scale, {largest}, {type}, {}, -1);
}
constexpr void complete_extreme(Lowering& l, int extreme) {
  const int x = l.operands[0];
  l.trace.graph.values[extreme].differentiable = false;
  l.result = l.emit(maximum_of, {extreme, x}, l.results, l.ints);
  l.trace.graph.values[l.result].differentiable = l.trace.graph.values[x].differentiable;
}
PARALLEL_AHEAD constexpr void max_lower(Lowering& l) {
  complete_extreme(l, maximum(l, l.operands[0], l.results[0], l.exchanging, l.ints));
}
PARALLEL_AHEAD constexpr void min_lower(Lowering& l) {
  complete_extreme(l, minimum(l, l.operands[0], l.results[0], l.exchanging, l.ints));
}
/// Equal maxima share the gradient equally, as PyTorch's amax does; minima, too.
PARALLEL_AHEAD constexpr void max_gradient(Gradient& g) {
  const int x = g.operand(1), all = g.operand(0);
  AxisList exchanging, axes;
  g.type(1).layout.collect(axes);
  for (const Axis* a : axes)
    if (g.type(1).layout.on(a).split() && !g.type(0).layout.on(a).split()) exchanging.push_back(a);
  const Type counted{precise(g.type(0).dtype), g.type(0).layout};
  int count = g.emit(count_maxima, {x, all}, {pending_on(counted, exchanging)}, g.node.ints);
  count = g.exchange(count, exchanging);
  g.give(1, max_derivative, {x, all, count, g.cotangent()}, g.node.ints);
}
}  // namespace operation

namespace internals {
/// A dimension in <>: no bool, as what keeps a dimension elsewhere is.
template <class T>
concept DimensionNumber = std::is_convertible_v<T, int> && !std::is_same_v<T, bool>;
}  // namespace internals

/// The sum over dimensions, of bf16 and f16 in f32, which the result no longer has; `sum(x)` is over all.
template <internals::DimensionNumber auto... dims, Distributed X>
constexpr auto sum(const X& x, Here here = {}) {
  return Apply<operation::sum, dims...>{1}(here, x);
}
/// The mean over dimensions: the sum divided by the global count, so that it is right for every split.
template <internals::DimensionNumber auto... dims, Distributed X>
constexpr auto mean(const X& x, Here here = {}) {
  double count = 1;
  for (int d = 0; d < X::type.layout.rank(); ++d)
    if (sizeof...(dims) == 0 || ((d == static_cast<int>(dims)) || ...))
      count *= static_cast<double>(X::type.layout.dims[d].size);
  return Apply<operation::sum, dims...>{1 / count}(here, x);
}
/// The maximum over dimensions; what is no number is the largest. `max(x)` is over all. The larger
/// of two tensors is `maximum`.
template <internals::DimensionNumber auto... dims, Distributed X>
constexpr auto max(const X& x, Here here = {}) {
  return Apply<operation::max, dims...>{}(here, x);
}
/// The minimum over dimensions; what is no number is the smallest, too.
template <internals::DimensionNumber auto... dims, Distributed X>
constexpr auto min(const X& x, Here here = {}) {
  return Apply<operation::min, dims...>{}(here, x);
}

}  // namespace parallel
