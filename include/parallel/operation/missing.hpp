// What looks natural on a tensor and does not exist: each is one refusal instead of a compiler's search through
// overloads.
#pragma once
#include <parallel/operation/operators.hpp>

namespace parallel::internals {

// A result is another value, mostly of another type.
#define PARALLEL_MISSING(assignment)                          \
  template <Distributed X, class Y>                           \
  constexpr auto& operator assignment(X& x, const Y&) {       \
    static_cast<void>(mistaken<Reason::rebound, X>());        \
    if (x.program() != nullptr) x.program()->mistaken = true; \
    return x;                                                 \
  }
PARALLEL_MISSING(+=)
PARALLEL_MISSING(-=)
PARALLEL_MISSING(*=)
PARALLEL_MISSING(/=)
#undef PARALLEL_MISSING

// A function of one's own with such a name goes before these: it has no pack.
#define PARALLEL_MISSING(function)                    \
  template <Distributed X, class... More>             \
  constexpr auto function(const X&, const More&...) { \
    return mistaken<Reason::no_operation, X>();       \
  }
PARALLEL_MISSING(fabs)
PARALLEL_MISSING(tan)
PARALLEL_MISSING(erf)
PARALLEL_MISSING(log1p)
PARALLEL_MISSING(expm1)
PARALLEL_MISSING(floor)
PARALLEL_MISSING(ceil)
PARALLEL_MISSING(round)
PARALLEL_MISSING(fmin)
PARALLEL_MISSING(fmax)
PARALLEL_MISSING(max)
PARALLEL_MISSING(min)
#undef PARALLEL_MISSING

}  // namespace parallel::internals
