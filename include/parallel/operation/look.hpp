// The verb that shows a value where a model is run eagerly.
#pragma once
#include <parallel/operation/distributed.hpp>

namespace parallel {

/// x. Where the model is run eagerly its numbers are printed, and how they lie, with this name; all ranks together. For
/// a plan it is nothing at all, so it can stay in the model:
///
///
///     const auto h = look(gelu(matmul(x, up)), "hidden");
template <Distributed X>
constexpr X look(const X& x, std::string_view name = {}) {
  if (internals::Applications* const program = x.program(); program != nullptr && program->out != nullptr)
    program->out->look(x.enter(*program), name);
  return x;
}
template <Distributed X>
constexpr X look(std::string_view, const X& x) {
  static_assert(sizeof(X) == 0, "parallel: look takes the tensor, then its name; write look(x, \"hidden\")");
  return x;
}

}  // namespace parallel
