// Which operations are computed together: a fusion is nodes one behind the other, for which a device is asked for one
// kernel, so that what is between need not go through memory. A device that has none computes them one by one.
#pragma once
#include <parallel/operation/add.hpp>
#include <parallel/operation/matmul.hpp>
#include <parallel/operation/unary.hpp>

namespace parallel::internals {

/// Operations that stand one behind the other, each of which reads the result of the one before.
struct Chain {
  List<const Operation*, longest_fusion> operations{};
  int operand = -1;  ///< of the last, which is the result of the one before; -1: any
};
inline constexpr Chain chains[] = {
    {{&operation::matmul, &operation::add}},
    {{&operation::matmul, &operation::add, &operation::gelu}},
    {{&operation::matmul, &operation::gelu_derivative}, 1},
};
// And any operations that go element by element (fuse.hpp).

}  // namespace parallel::internals
