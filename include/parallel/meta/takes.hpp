// Whether a function object takes operands, asked of overload resolution alone: a call would also look into the
// function, where it deduces its type.
#pragma once
#include <type_traits>
#include <utility>

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

}  // namespace parallel::internals::meta
