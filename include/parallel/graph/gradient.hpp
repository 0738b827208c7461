// What an operation's gradient sees and does: the forward node, the gradients of its results, and a way to give
// gradients to its operands.
#pragma once
#include <string>
#include <type_traits>

#include <parallel/graph/lowering.hpp>
#include <parallel/meta/failure.hpp>

namespace parallel {

namespace internals {
/// Throws Failure.
[[noreturn]] inline void gradient_is_given_to_no_operand(const Node& of, int operand) {
  throw Failure("the gradient of " + std::string(of.operation->name) + " gives to operand " + std::to_string(operand) +
                    ", but the operation has " + std::to_string(of.operands.size()) + ", counted from 0",
                exit_code::internal);
}
}  // namespace internals

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
  constexpr void give(int i, int value) {
    if (!has(i)) return;
    if (value >= 0 && !internals::same_extents(trace.graph.values[value].type.layout, type(i).layout))
      return refuse(Reason::gradient_shape);
    given[i] = value;
  }

  /// Emits a node whose result is the gradient of operand i.
  constexpr void give(int i, const Operation& operation,
                      const internals::List<int, internals::max_node_operands>& operands, const Ints& ints = {},
                      double first = 0, double second = 0) {
    if (has(i) && wants(i)) give(i, emit(operation, operands, {conjugate(type(i))}, ints, first, second));
  }

  template <class Operand, class... More>
  requires(std::is_same_v<Operand, int>) constexpr void give(int, const Operation&, Operand, const More&...) {
    static_assert(sizeof...(More) > 99,
                  "parallel::Gradient: the operands of what a gradient is made by stand in braces; write g.give(0, "
                  "cap_derivative, {g.operand(0), g.cotangent()})");
  }

  /// What is wrong with it, as the plan says, by the line of the operation.
  constexpr void refuse(Reason reason) {
    trace.graph.values[node.result].differentiable = false;  // by which the node is found again
    trace.refuse(reason);
  }

 private:
  /// Whether there is such an operand. Where there is none the compiler refuses, and a run throws.
  constexpr bool has(int i) {
    if (i >= 0 && i < node.operands.size()) return true;
    if (!std::is_constant_evaluated()) internals::gradient_is_given_to_no_operand(node, i);
    refuse(Reason::gradient_operand);
    return false;
  }
};

}  // namespace parallel
