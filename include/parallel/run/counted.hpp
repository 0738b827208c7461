// A number that counts what is computed with it, to measure what an operation costs.
#pragma once
#include <cstdint>
#include <type_traits>

namespace parallel::internals {

/// A double that counts: each sum, difference, product, quotient and comparison, and each function of it, is one
/// operation of `Counted::operations`. A kernel that is a template of its element type can be made for it.
class Counted {
 public:
  static inline thread_local std::int64_t operations = 0;

  Counted() = default;
  template <class N>
  requires std::is_arithmetic_v<N>
  constexpr Counted(N number) : value_(static_cast<double>(number)) {}
  /// To a function of the standard library, as std::exp.
  operator double() const {
    ++operations;
    return value_;
  }

#define PARALLEL_COUNTED(Result, sign)                                                               \
  friend Result operator sign(Counted a, Counted b) { return ++operations, a.value_ sign b.value_; } \
  template <class N>                                                                                 \
  requires std::is_arithmetic_v<N>                                                                   \
  friend Result operator sign(Counted a, N b) { return a sign Counted(b); }                          \
  template <class N>                                                                                 \
  requires std::is_arithmetic_v<N>                                                                   \
  friend Result operator sign(N a, Counted b) { return Counted(a) sign b; }
  PARALLEL_COUNTED(Counted, +)
  PARALLEL_COUNTED(Counted, -)
  PARALLEL_COUNTED(Counted, *)
  PARALLEL_COUNTED(Counted, /)
  PARALLEL_COUNTED(bool, <)
  PARALLEL_COUNTED(bool, >)
  PARALLEL_COUNTED(bool, <=)
  PARALLEL_COUNTED(bool, >=)
  PARALLEL_COUNTED(bool, ==)
  PARALLEL_COUNTED(bool, !=)
#undef PARALLEL_COUNTED
  Counted operator-() const {
    ++operations;
    return -value_;
  }
  Counted operator+() const { return *this; }
  Counted& operator+=(Counted b) { return *this = *this + b; }
  Counted& operator-=(Counted b) { return *this = *this - b; }
  Counted& operator*=(Counted b) { return *this = *this * b; }
  Counted& operator/=(Counted b) { return *this = *this / b; }

 private:
  double value_ = 0;
};
static_assert(sizeof(Counted) == sizeof(double));  // a kernel takes a view of f64 for it

}  // namespace parallel::internals

namespace parallel {
using internals::Counted;
}  // namespace parallel
