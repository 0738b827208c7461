// A value, and the word that what others are made of is started before it is used.
#pragma once
#include <parallel/operation/elementwise.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
PARALLEL_AHEAD constexpr void beside_gradient(Gradient& g) { g.give(0, g.cotangent()); }
/// (x, others...): x. What is computed of x stands behind what the others are made of, whose collectives then go on
/// under it.
inline constexpr Operation beside{.name = "beside", .gradient = beside_gradient, .flops = no_flops, .aliases = true};
}  // namespace operation

namespace internals {
/// x, of which something is computed while what makes the others goes on.
template <Distributed X, Distributed... Others>
constexpr auto beside(const X& x, Here here, const Others&... others) {
  if constexpr (sizeof...(Others) == 0 || X::kind == Kind::refused || ((Others::kind == Kind::refused) || ...)) {
    return x;
  } else {
    Applications* const program = x.program();
    if (!notes(program)) return x;
    return X{program, program->add({.what = Application::What::beside,
                                    .operation = &operation::beside,
                                    .operands = {x.enter(*program), others.enter(*program)...},
                                    .where = here})};
  }
}
}  // namespace internals

}  // namespace parallel
