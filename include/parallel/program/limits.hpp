// The limits of a compiler on the evaluation of one constant, which a program of some hundred operations meets.
#pragma once
#include <type_traits>

namespace parallel::internals::limits {

/// How many operations a model and its updates apply before it is asked whether the compiler gets through its program:
/// asking runs a pass once more, if the compiler does not remember it. By default clang 14 (-fconstexpr-steps) gets
/// through some 340 of a recurrent network's training, g++ 12 (-fconstexpr-ops-limit) through some 570.
#ifdef __clang__
inline constexpr int asked_from = 128;
#else
inline constexpr int asked_from = 256;
#endif

/// Whether the compiler gets through `make()` within its limits.
template <auto make>
concept Computable = requires {
  typename std::bool_constant<(static_cast<void>(make()), true)>;
};

}  // namespace parallel::internals::limits
