// Scaled dot-product attention over heads, causal or not; queries may have more heads than keys and values (grouped queries).
#pragma once
#include <parallel/operation/elementwise.hpp>

namespace parallel {
namespace operation {
// q[b, s, h, d]   k, v[b, s, g, d]   result
// S(batch)        S                  S
// S(heads)        S                  S          each rank has the keys of its heads
// S(heads)        B                  S          fewer key heads than ranks: chosen by global coordinate; their gradients are Partial
// S(sequence)     B                  S          the gradients of k and v are Partial
// B               B, v S(size)       S
// B               B, v P             P
constexpr Shaped attention_shape(const Arguments& a) {
  const Type type{a.types[0].dtype, a.types[0].layout.unplaced()};
  Type statistic = type;  // log of the sum of exponentials of a row of scores: [b, s, h]
  statistic.layout.dims.count = 3;
  Type result = type;
  Shaped wrong{{type, statistic}, {}};
  for (int i = 0; i < 3; ++i)
    if (a.rank(i) != 4) return {{type}, {Reason::wrong_rank, {a.rank(i), 4}}};
  for (int d = 0; d < 4; ++d) {
    if (a.size(1, d) != a.size(2, d) && d != 3) return {wrong.results, {Reason::shapes_differ, {a.size(1, d), a.size(2, d)}}};
    if (d != 1 && d != 2 && a.size(0, d) != a.size(1, d)) return {wrong.results, {Reason::shapes_differ, {a.size(0, d), a.size(1, d)}}};
  }
  if (a.size(0, 2) % a.size(1, 2) != 0) return {wrong.results, {Reason::heads_differ, {a.size(0, 2), a.size(1, 2)}}};
  result.layout.dims[3] = Dim(a.size(2, 3));
  const Axis* along = nullptr;
  AxisList axes;
  a.types[0].layout.collect(axes);
  for (const Axis* axis : axes) {
    bool all = true;
    for (const Type& t : a.types) all = all && t.layout.on(axis) == split(1);
    if (all) along = axis;
  }
  if (along != nullptr) return {wrong.results, {Reason::attention_sequence, {a.size(0, 1)}, along}};
  return {{result, statistic}, one_element_type(a)};
}
constexpr Signatures attention_table(const Arguments& a) {
  Signatures rows;
  rows.push_back(uniform_row(3, 2, Broadcast));
  if (a.size(0, 0) > 1) rows.push_back(uniform_row(3, 2, split(0)));
  if (a.size(1, 2) > 1) rows.push_back(uniform_row(3, 2, split(2)));
  if (a.size(0, 2) > 1) rows.push_back({{split(2), Broadcast, Broadcast}, {split(2), split(2)}});
  if (a.size(0, 1) > 1) rows.push_back({{split(1), Broadcast, Broadcast}, {split(1), split(1)}});
  if (a.size(2, 3) > 1) rows.push_back({{Broadcast, Broadcast, split(3)}, {split(3), Broadcast}});
  rows.push_back({{Broadcast, Broadcast, Partial}, {Partial, Broadcast}});
  return rows;
}
constexpr std::int64_t attention_flops(const Arguments& a) {  // two products of s x s scores, half of them where causal
  return (a.ints[0] != 0 ? 2 : 4) * a.types[0].layout.elements() * a.size(1, 1);
}
constexpr std::int64_t attention_gradient_flops(const Arguments& a) { return attention_flops(a) / 2 * 5; }  // scores again, and four products
inline constexpr Operation attention_derivative{.name = "attention_gradient", .flops = attention_gradient_flops};  ///< (q, k, v, result, statistic, g): the gradients of q, k and v
constexpr void attention_gradient(Gradient& g) {
  const int dq = g.trace.emit(attention_derivative, {g.operand(0), g.operand(1), g.operand(2), g.result(), g.result(1), g.cotangent()},
                              {conjugate(g.type(0)), conjugate(g.type(1)), conjugate(g.type(2))}, Kind::activation, g.node.ints, g.node.reals[0]);
  for (int i = 0; i < 3; ++i)
    if (g.wants(i)) g.give(i, dq + i);
}
/// ints: whether causal. The first number is the scale of the scores.
inline constexpr Operation attention{
    .name = "attention", .shape = attention_shape, .signatures = attention_table, .gradient = attention_gradient, .flops = attention_flops};
}  // namespace operation

/// softmax(q k^T / sqrt(size)) v for every head: q[batch, sequence, heads, size], k and v[batch, sequence, groups, size] (Vaswani et al., 2017;
/// grouped queries: Ainslie et al., 2023). `causal`: position i sees positions up to i.
template <bool causal = true, Distributed Q, Distributed K, Distributed V>
constexpr auto attention(const Q& q, const K& k, const V& v, Here here = {}) {
  double size = 1, root = 1;
  if constexpr (Q::type.layout.rank() == 4) size = static_cast<double>(Q::type.layout.dims[3].size);
  for (int i = 0; i < 60; ++i) root = (root + size / root) / 2;
  return Apply<operation::attention, causal>{1 / root}(here, q, k, v);
}

}  // namespace parallel
