// Dropout whose mask depends on seed, step, call, layer, micro-batch and global coordinates only: every layout drops
// the same elements.
#pragma once
#include <parallel/operation/elementwise.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x   result
// S   S
// P   P       the same mask on every rank's term
PARALLEL_AHEAD constexpr void dropout_lower(Lowering&);
PARALLEL_AHEAD constexpr void dropout_gradient(Gradient&);
/// Operands (x, scalars); ints: positions of seed and step among the scalars, number of the call; the first number is
/// the probability.
inline constexpr Operation dropout{.name = "dropout",
                                   .shape = same_shape,
                                   .signatures = linear_table,
                                   .element_by_element = 1,
                                   .lower = dropout_lower,
                                   .gradient = dropout_gradient,
                                   .rate = Rate::functions};
PARALLEL_AHEAD constexpr void dropout_lower(Lowering& l) {
  const bool probable = l.reals[0] >= 0 && l.reals[0] < 1;
  if (!probable) l.trace.refuse(Reason::probability);
  if (probable && (!l.trace.training || l.reals[0] == 0)) {
    l.result = l.operands[0];
    return;
  }
  const std::int64_t seed = l.trace.scalar("seed"), step = l.trace.scalar("step");
  l.result =
      l.emit(dropout, {l.operands[0], l.trace.graph.scalar_value}, l.results, {seed, step, l.trace.draw()}, l.reals[0]);
}
/// The mask is computed again, never saved.
PARALLEL_AHEAD constexpr void dropout_gradient(Gradient& g) {
  g.give(0, dropout, {g.cotangent(), g.operand(1)}, g.node.ints, g.node.reals[0]);
}
}  // namespace operation

/// In training each element is zero with this probability, the others grow by 1 / (1 - probability); in evaluation x
/// itself.
template <Distributed X>
constexpr auto dropout(const X& x, double probability, Here here = {}) {
  return Apply<operation::dropout>{probability}(here, x);
}

}  // namespace parallel
