// Whether a function object takes operands, asked of overload resolution alone: a call would also look into the
// function, where it deduces its type.
#pragma once
#include <type_traits>
#include <utility>

#include <parallel/meta/letters.hpp>

namespace parallel::internals::meta {

struct Call {
  void operator()();
};
template <class F>
struct Named : F, Call {};  ///< its operator() is ambiguous where F has one
template <class F>
struct Beside : F {
  using F::operator();
  /// takes everything; it suits the object better than a const operator(), the operands worse, so a call is ambiguous
  void operator()(...);
};

template <class F, class... X>
constexpr bool takes() {
  if constexpr (std::is_final_v<F>)
    return false;
  else if constexpr (requires { &Named<F>::operator(); })
    return false;
  else
    return !requires(Beside<F> f) { f(std::declval<X>()...); };
}
/// The same of a block of a model; nvcc has no answer to the question above, and none to one for an alias of a member.
template <class Block, class... X>
constexpr bool can_take() {
  return std::is_invocable_v<const Block&, const X&...> || takes<Block, const X&...>();
}

}  // namespace parallel::internals::meta
