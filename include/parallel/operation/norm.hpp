// Layer norm and RMS norm over the last dimension, which may be split.
#pragma once
#include <parallel/operation/softmax.hpp>
#include <parallel/operation/source.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x         gain, shift   result
// S, other  B             S        the gradients of gain and shift are Partial
// S, last   S0            S        exchanges mean and variance; backward one or two values per row
// B         P             P        linear in gain and shift together
PARALLEL_AHEAD constexpr Shaped norm_shape(const Arguments& a) {
  const Shaped same = same_shape(a);
  if (a.rank(0) < 1) return {same.results, {Reason::wrong_rank, {a.rank(0), 1}}};
  for (int i = 1; i < a.types.size(); ++i) {
    if (a.rank(i) != 1) return {same.results, {Reason::wrong_rank, {a.rank(i), 1}}};
    if (a.size(i, 0) != a.size(0, a.rank(0) - 1))
      return {same.results, {Reason::shapes_differ, {a.size(0, a.rank(0) - 1), a.size(i, 0)}}};
  }
  return {same.results, one_element_type(a)};
}
PARALLEL_AHEAD constexpr Signatures norm_table(const Arguments& a) {
  const int operands = a.types.size(), last = a.rank(0) - 1;
  Signatures rows{uniform_row(operands, 1, Broadcast)};
  for (int d = 0; d <= last; ++d) {
    if (a.size(0, d) < 2) continue;
    Signature row = uniform_row(operands, 1, d == last ? split(0) : Broadcast);
    row.operands[0] = row.results[0] = split(d);
    row.communicates = d == last;
    rows.push_back(row);
  }
  Signature linear = uniform_row(operands, 1, Partial);
  linear.operands[0] = Broadcast;
  linear.joins = 4;  // the shift is added, the gain multiplies
  rows.push_back(linear);
  return rows;
}
PARALLEL_AHEAD constexpr void norm_lower(Lowering&);
PARALLEL_AHEAD constexpr void norm_gradient(Gradient&);
PARALLEL_AHEAD constexpr void norm_rows_gradient(Gradient&);
inline constexpr Operation layer_norm{
    .name = "layer_norm", .shape = norm_shape, .signatures = norm_table, .element_by_element = 6, .lower = norm_lower};
inline constexpr Operation rms_norm{
    .name = "rms_norm", .shape = norm_shape, .signatures = norm_table, .element_by_element = 2, .lower = norm_lower};

// Where a rank has whole rows: one operation forward and one backward, which read x once. The first number is one over
// the row's length, the second epsilon.
/// (x, gain, shift): the normalized rows, mean and variance; (x, gain): the normalized rows and the mean of squares.
inline constexpr Operation norm_rows{.name = "norm_rows", .gradient = norm_rows_gradient};
/// (g, x, variance, gain[, mean]): the gradients of x and, where there are results for them, of gain and shift.
inline constexpr Operation norm_rows_derivative{.name = "norm_rows_gradient"};
// Where rows are split: parts, between which the ranks exchange what they found.
/// x: the row's sum times the first number
inline constexpr Operation row_mean{.name = "row_mean", .flops = elements_of_operand};
/// (x, mean): the row's sum of (x - mean)^2 times the first number; without mean: of x^2
inline constexpr Operation row_variance{.name = "row_variance", .flops = elements_of_operand};
/// (x, mean, variance, gain, shift) or (x, variance, gain); the second number is epsilon.
inline constexpr Operation normalize{.name = "normalize", .gradient = norm_gradient};
/// (g, x, variance, gain[, mean]): row means of g gain and g gain xhat
inline constexpr Operation norm_products{.name = "norm_products", .flops = elements_of_operand};
inline constexpr Operation norm_derivative{.name = "norm_gradient"};
inline constexpr Operation norm_parameter_derivative{.name = "norm_parameter_gradient", .flops = elements_of_operand};

PARALLEL_AHEAD constexpr void norm_lower(Lowering& l) {
  const int x = l.operands[0];
  const Type type = l.type(0);
  const int last = type.layout.rank() - 1;
  const bool centered = l.operation == &layer_norm;
  const Type own = pending_on(statistic(type, {last}), l.exchanging);
  const double share = 1 / static_cast<double>(type.layout.dims[last].size);
  if (l.exchanging.empty()) {
    List<Type, max_results> types{l.results[0], own};
    if (centered) types.push_back(own);
    l.result = l.emit(norm_rows, nodes_operands(l.operands), types, {}, share, l.reals[0]);
  } else {
    List<int, max_node_operands> operands{x};
    const auto exchanged = [&](const Operation& operation) {
      return l.exchange(l.emit(operation, operands, {own}, {}, share), l.exchanging);
    };
    if (centered) operands.push_back(exchanged(row_mean));
    operands.push_back(exchanged(row_variance));
    for (int i = 1; i < l.operands.size(); ++i) operands.push_back(l.operands[i]);
    l.result = l.emit(normalize, operands, l.results, {}, share, l.reals[0]);
  }
}
/// Gives gradients to the gain, which is operand `gain`, and to the shift behind it, if they want them.
constexpr void norm_parameter_gradient(Gradient& g, int gain, const List<int, max_node_operands>& operands) {
  const int end = g.node.operands.size();
  if (!g.wants(gain) && !g.wants(end - 1)) return;
  List<Type, max_results> types;
  for (int i = gain; i < end; ++i) types.push_back(conjugate(g.type(i)));
  const int given = g.emit(norm_parameter_derivative, operands, types, {}, g.node.reals[0], g.node.reals[1]);
  for (int i = gain; i < end; ++i)
    if (g.wants(i)) g.give(i, given + i - gain);
}
PARALLEL_AHEAD constexpr void norm_gradient(Gradient& g) {
  const bool centered = g.node.operands.size() == 5;
  const int x = g.operand(0), variance = g.operand(centered ? 2 : 1), dy = g.cotangent();
  const int gain = centered ? 3 : 2, last = g.type(0).layout.rank() - 1;
  const double share = g.node.reals[0], epsilon = g.node.reals[1];
  if (g.wants(0)) {
    const AxisList exchanging = split_along(g.type(0).layout, {last});
    const Type own = pending_on(statistic(conjugate(g.type(0)), {last}), exchanging);
    List<int, max_node_operands> operands{dy, x, variance, g.operand(gain)};
    if (centered) operands.push_back(g.operand(1));
    const List<Type, max_results> types = centered ? List<Type, max_results>{own, own} : List<Type, max_results>{own};
    const int product = g.emit(norm_products, operands, types, {}, share, epsilon);
    operands.push_back(g.exchange(product, exchanging));
    if (centered) operands.push_back(g.exchange(product + 1, exchanging));
    g.give(0, norm_derivative, operands, {}, share, epsilon);
  }
  List<int, max_node_operands> operands{dy, x, variance};
  if (centered) operands.push_back(g.operand(1));
  norm_parameter_gradient(g, gain, operands);
}
PARALLEL_AHEAD constexpr void norm_rows_gradient(Gradient& g) {
  const int end = g.node.operands.size();
  const bool centered = end == 3;
  List<int, max_node_operands> operands{g.cotangent(), g.operand(0), g.result(centered ? 2 : 1)};
  if (g.wants(0)) operands.push_back(g.operand(1));
  if (centered) operands.push_back(g.result(1));
  if (!g.wants(0)) return norm_parameter_gradient(g, 1, operands);
  List<Type, max_results> types{conjugate(g.type(0))};
  for (int i = 1; i < end && (g.wants(1) || g.wants(end - 1)); ++i) types.push_back(conjugate(g.type(i)));
  const int given = g.emit(norm_rows_derivative, operands, types, {}, g.node.reals[0], g.node.reals[1]);
  for (int i = 0; i < types.size(); ++i)
    if (g.wants(i)) g.give(i, given + i);
}
}  // namespace operation

/// (x - mean) / sqrt(variance + epsilon) * gain + shift over the last dimension (Ba et al., 2016).
template <Distributed X, Distributed G, Distributed B>
constexpr auto layer_norm(const X& x, const G& gain, const B& shift, double epsilon = 1e-5, Here here = {}) {
  return Apply<operation::layer_norm>{epsilon}(here, x, gain, shift);
}
/// The same without a shift.
template <Distributed X, Distributed G>
constexpr auto layer_norm(const X& x, const G& gain, double epsilon = 1e-5, Here here = {}) {
  using T = typename internals::ElementOf<G::type.dtype>::type;
  return Apply<operation::layer_norm>{epsilon}(here, x, gain, constant<T, Shape<G::type.layout.dims[0].size>>(0));
}
/// x / sqrt(mean(x^2) + epsilon) * gain over the last dimension (Zhang and Sennrich, 2019).
template <Distributed X, Distributed G>
constexpr auto rms_norm(const X& x, const G& gain, double epsilon = 1e-5, Here here = {}) {
  return Apply<operation::rms_norm>{epsilon}(here, x, gain);
}

}  // namespace parallel
