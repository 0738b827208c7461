// Rotary position embedding: pairs of elements turn by an angle that grows with the position, so that the product of a
// query and a key depends on how far apart they stand.
#pragma once
#include <parallel/operation/elementwise.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x[b, s, h, d]   position   result
// S, not last     B          S        a rank turns by the global coordinates of its part
// P               B          P
PARALLEL_AHEAD constexpr Shaped rotary_shape(const Arguments& a) {
  const Shaped same = same_shape(a);
  if (a.rank(0) != 4) return {same.results, {Reason::wrong_rank, {a.rank(0), 4}}};
  if (a.size(0, 3) % 2 != 0) return {same.results, {Reason::odd_size, {a.size(0, 3)}}};
  if (a.types.size() < 2) return same;
  if (a.rank(1) != 0) return {same.results, {Reason::wrong_rank, {a.rank(1), 0}}};
  return {same.results, whole_numbers(a, 1)};
}
PARALLEL_AHEAD constexpr Signatures rotary_table(const Arguments& a) {
  Signatures rows;
  List<Placement, 5> placements{Broadcast, Partial};
  for (int d = 0; d < 3; ++d)
    if (a.size(0, d) > 1) placements.push_back(split(d));
  for (const Placement p : placements) {
    Signature row{{p}, {p}};
    if (a.types.size() > 1) row.operands.push_back(Broadcast);
    rows.push_back(row);
  }
  return rows;
}
PARALLEL_AHEAD constexpr std::int64_t rotary_flops(const Arguments& a) { return 3 * a.types[0].layout.elements(); }
PARALLEL_AHEAD constexpr void rotary_gradient(Gradient&);
/// The first number is the base of the wavelengths, the second 1, or -1 to turn back.
inline constexpr Operation rotary{.name = "rotary",
                                  .shape = rotary_shape,
                                  .signatures = rotary_table,
                                  .gradient = rotary_gradient,
                                  .flops = rotary_flops};
PARALLEL_AHEAD constexpr void rotary_gradient(Gradient& g) {
  List<int, max_node_operands> operands = g.node.operands;
  operands[0] = g.cotangent();
  g.give(0, rotary, operands, {}, g.node.reals[0], -g.node.reals[1]);
}
}  // namespace operation

/// Turns x[batch, sequence, heads, size]: at position p elements i and i + size/2 turn by p / base^(2i/size) (Su et
/// al., 2021; the halves as in GPT-NeoX and Llama's published weights).
template <Distributed X>
constexpr auto rotary(const X& x, double base = 10000, Here here = {}) {
  return Apply<operation::rotary>{base, 1}(here, x);
}
/// The same where the sequence begins at `position`, a whole number: what is generated token by token.
template <Distributed X, Distributed P>
constexpr auto rotary(const X& x, const P& position, double base = 10000, Here here = {}) {
  return Apply<operation::rotary>{base, 1}(here, x, position);
}

}  // namespace parallel
