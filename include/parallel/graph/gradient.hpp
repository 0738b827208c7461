// What an operation's gradient sees and does: the forward node, the gradients of its results, and a way to give
// gradients to its operands.
#pragma once
#include <parallel/graph/lowering.hpp>

namespace parallel {

/// Every node that a gradient emits computes from what the ranks already hold: an operation that needs no communication
/// forward needs none backward.
struct Gradient : Emitter {
  internals::Node node;                                        ///< the forward node
  internals::List<int, internals::max_results> from{};         ///< the gradient of each result, or -1
  internals::List<int, internals::max_node_operands> given{};  ///< the gradient given to each operand, or -1

  constexpr int operand(int i) const { return node.operands[i]; }
  constexpr int result(int r = 0) const { return node.result + r; }
  constexpr int cotangent(int r = 0) const { return from[r]; }
  /// Of operand i, and of result r; until the next emit.
  constexpr const Type& type(int i) const { return trace.graph.values[node.operands[i]].type; }
  constexpr const Type& result_type(int r = 0) const { return trace.graph.values[node.result + r].type; }
  constexpr bool wants(int i) const { return trace.graph.values[node.operands[i]].differentiable; }
  constexpr void give(int i, int value) { given[i] = value; }

  /// Emits a node whose result is the gradient of operand i.
  constexpr void give(int i, const Operation& operation,
                      const internals::List<int, internals::max_node_operands>& operands, const Ints& ints = {},
                      double first = 0, double second = 0) {
    if (wants(i)) give(i, emit(operation, operands, {conjugate(type(i))}, ints, first, second));
  }
};

}  // namespace parallel
