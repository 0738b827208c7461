// How operations write nodes: what one that becomes several of them is lowered from, and what it emits them with.
#pragma once
#include <parallel/graph/trace.hpp>

namespace parallel {

/// What operations and their gradients write nodes with.
struct Emitter {
  internals::Trace& trace;

  /// Emits a node. Returns its first result; the others are behind it.
  constexpr int emit(const Operation& operation, const internals::List<int, internals::max_node_operands>& operands,
                     const internals::List<Type, internals::max_results>& types, const Ints& ints = {},
                     double first = 0, double second = 0) {
    return trace.emit(operation, operands, types, Kind::activation, ints, first, second);
  }
  /// Completes what each rank made of its own part and is pending on these axes: the sum, or the maximum. Without axes
  /// the value itself. Only an operation with a row that communicates emits one.
  constexpr int exchange(int value, const AxisList& axes, bool maximum = false) {
    return trace.exchange(value, axes, maximum);
  }
};

/// What an operation is lowered from: its operands after their moves, and the types of its results.
struct Lowering : Emitter {
  const Operation* operation = nullptr;
  internals::List<int, internals::max_operands> operands{};
  internals::List<Type, internals::max_results> results{};
  AxisList exchanging{};  ///< the axes on which a row was taken that communicates
  Ints ints{};
  double reals[2]{};
  int result = -1;  ///< set by lower(): the first result's value, the others behind it

  /// Of an operand; until the next emit.
  constexpr const Type& type(int operand) const { return trace.graph.values[operands[operand]].type; }
};

namespace internals {
constexpr List<int, max_node_operands> nodes_operands(const List<int, max_operands>& operands) {
  List<int, max_node_operands> result;
  for (const int o : operands) result.push_back(o);
  return result;
}

/// Applies an operation whose layouts have been inferred: moves the operands, then lowers it. Returns the first result.
constexpr int apply(Trace& trace, const Operation& operation, const List<int, max_operands>& operands,
                    const Inference& inferred, const Ints& ints, const Source& where, double first, double second) {
  const int applied =
      trace.from({&operation, operands, inferred.axes, inferred.rules, where, trace.graph.charged(operands)});
  Lowering l{{trace}, &operation, {}, inferred.results, inferred.exchanging, ints, {first, second}};
  for (int i = 0; i < operands.size(); ++i) l.operands.push_back(trace.enter(operands[i], inferred.to[i]));
  trace.member = trace.graph.origins[applied].member;
  if (operation.lower != nullptr)
    operation.lower(l);
  else
    l.result = trace.emit(operation, nodes_operands(l.operands), l.results, inferred.kind, ints, first, second);
  for (int r = 0; r < l.results.size(); ++r) trace.graph.values[l.result + r].kind = inferred.kind;
  trace.graph.origins[applied].result = l.result;
  trace.member = trace.origin = -1;
  return l.result;
}
}  // namespace internals

}  // namespace parallel
