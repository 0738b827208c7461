// What an operation that becomes several nodes is given to emit them.
#pragma once
#include <parallel/graph/graph.hpp>

namespace parallel {

/// What an operation is lowered from: its operands after their moves, and the types of its results.
struct Lowering {
  const Operation* operation = nullptr;
  internals::List<int, internals::max_operands> operands{};
  internals::List<Type, internals::max_results> results{};
  AxisList exchanging{};
  Ints ints{};
  double reals[2]{};
  int result = -1;  ///< set by lower(): the first result's value, the others behind it
};

}  // namespace parallel
