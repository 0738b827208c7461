// What an operation's gradient sees and does: the forward node, the gradients of its results, and a way to give
// gradients to its operands.
#pragma once
#include <parallel/graph/trace.hpp>

namespace parallel {

/// Every node that a gradient emits computes from what the ranks already hold: an operation that needs no communication
/// forward needs none backward.
struct Gradient {
  internals::Trace& trace;
  internals::Node node;                                        ///< the forward node
  internals::List<int, internals::max_results> from{};         ///< the gradient of each result, or -1
  internals::List<int, internals::max_node_operands> given{};  ///< the gradient given to each operand, or -1

  constexpr int operand(int i) const { return node.operands[i]; }
  constexpr int result(int r = 0) const { return node.result + r; }
  constexpr int cotangent(int r = 0) const { return from[r]; }
  constexpr const Type& type(int i) const { return trace.graph.values[node.operands[i]].type; }
  constexpr const Type& result_type(int r = 0) const { return trace.graph.values[node.result + r].type; }
  constexpr bool wants(int i) const { return trace.graph.values[node.operands[i]].differentiable; }
  constexpr void give(int i, int value) { given[i] = value; }

  constexpr int emit(const Operation& operation, const internals::List<int, internals::max_node_operands>& operands,
                     const Type& type, const Ints& ints = {}, double first = 0, double second = 0) {
    return trace.emit(operation, operands, {type}, Kind::activation, ints, first, second);
  }
  /// Emits a node whose result is the gradient of operand i.
  constexpr void give(int i, const Operation& operation,
                      const internals::List<int, internals::max_node_operands>& operands, const Ints& ints = {},
                      double first = 0, double second = 0) {
    if (wants(i)) give(i, emit(operation, operands, conjugate(type(i)), ints, first, second));
  }
};

}  // namespace parallel
