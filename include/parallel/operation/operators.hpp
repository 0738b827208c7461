// x + y, x - y, x * y, x / y and comparisons on distributed values and numbers, each with the line where it was
// written.
#pragma once
#include <parallel/operation/add.hpp>
#include <parallel/operation/compare.hpp>
#include <parallel/operation/missing.hpp>
#include <parallel/operation/multiply.hpp>

namespace parallel::internals {

/// The left operand of an operator. An operator cannot have a defaulted parameter for its line; the conversion of its
/// operand can.
template <class X>
struct Met {
  const X& value;
  Source source;
  constexpr Met(const X& x, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : value(x), source{file, line} {}
};

/// Gives a distributed type its operators; found by argument-dependent look-up.
template <class X>
struct Arithmetic : Methods {
  template <Distributed Y>
  friend constexpr auto operator+(Met<X> x, const Y& y) {
    return Apply<operation::add>{}(x.source, x.value, y);
  }
  template <Distributed Y>
  friend constexpr auto operator-(Met<X> x, const Y& y) {
    return Apply<operation::subtract>{}(x.source, x.value, y);
  }
  template <Distributed Y>
  friend constexpr auto operator*(Met<X> x, const Y& y) {
    return Apply<operation::multiply>{}(x.source, x.value, y);
  }
  template <Distributed Y>
  friend constexpr auto operator/(Met<X> x, const Y& y) {
    return Apply<operation::divide>{}(x.source, x.value, y);
  }
  friend constexpr auto operator*(double factor, Met<X> x) {
    return Apply<operation::scale>{factor}(x.source, x.value);
  }
  friend constexpr auto operator*(Met<X> x, double factor) {
    return Apply<operation::scale>{factor}(x.source, x.value);
  }
  friend constexpr auto operator/(Met<X> x, double divisor) {
    return Apply<operation::scale>{1 / divisor}(x.source, x.value);
  }
  friend constexpr auto operator-(Met<X> x) { return Apply<operation::scale>{-1}(x.source, x.value); }

  friend constexpr auto operator+(Met<X> x, double term) {
    return Apply<operation::add>{}(x.source, x.value, number(term));
  }
  friend constexpr auto operator+(double term, Met<X> x) {
    return Apply<operation::add>{}(x.source, x.value, number(term));
  }
  friend constexpr auto operator-(Met<X> x, double term) {
    return Apply<operation::subtract>{}(x.source, x.value, number(term));
  }
  friend constexpr auto operator-(double from, Met<X> x) {
    return Apply<operation::subtract>{}(x.source, number(from), x.value);
  }
  friend constexpr auto operator/(double dividend, Met<X> x) {
    return Apply<operation::divide>{}(x.source, number(dividend), x.value);
  }

// Masks. `==` and `!=` of a tensor and a number are here, of two tensors below.
#define PARALLEL_COMPARISON(comparison, name)                   \
  template <Number Y>                                           \
  friend constexpr auto operator comparison(Met<X> x, Y y) {    \
    return apply_beside<operation::name>(x.source, x.value, y); \
  }                                                             \
  template <Number Y>                                           \
  friend constexpr auto operator comparison(Y y, Met<X> x) {    \
    return apply_beside<operation::name>(x.source, y, x.value); \
  }
#define PARALLEL_ORDER(comparison, name)                            \
  PARALLEL_COMPARISON(comparison, name)                             \
  template <Distributed Y>                                          \
  friend constexpr auto operator comparison(Met<X> x, const Y& y) { \
    return apply_beside<operation::name>(x.source, x.value, y);     \
  }
  PARALLEL_COMPARISON(==, equal)
  PARALLEL_COMPARISON(!=, not_equal)
  PARALLEL_ORDER(<, less)
  PARALLEL_ORDER(<=, less_equal)
  PARALLEL_ORDER(>, greater)
  PARALLEL_ORDER(>=, greater_equal)
#undef PARALLEL_ORDER
#undef PARALLEL_COMPARISON
  template <Distributed Y>
  friend constexpr auto operator&&(Met<X> m, const Y& n) {
    return logical_and(m.value, n, Here(m.source.file, m.source.line));
  }
  template <Distributed Y>
  friend constexpr auto operator||(Met<X> m, const Y& n) {
    return logical_or(m.value, n, Here(m.source.file, m.source.line));
  }

  /// `if (x)`, `x ? y : z`: refused, by what is asked first of a function that is called, before its body.
  constexpr explicit operator bool() const noexcept(noexcept(mistaken<Reason::no_condition, X>())) {
    if (Applications* program = static_cast<const X&>(*this).program(); program != nullptr) program->mistaken = true;
    return false;
  }

  /// `x[3]`: refused.
  template <class Index>
  constexpr auto operator[](const Index&) const {
    return mistaken<Reason::no_subscript, X>();
  }

 private:
  static constexpr auto number(double n) { return constant<typename ElementOf<X::type.dtype>::type>(n); }
};

// C++ may turn the operands of `==` round, and `!` may convert its own to bool: it finds the two ways equally good
// where an operand is converted to tell its line. So these have none.
template <Distributed X, Distributed Y>
constexpr auto operator==(const X& x, const Y& y) {
  return Apply<operation::equal>{}(Source{}, x, y);
}
template <Distributed X, Distributed Y>
constexpr auto operator!=(const X& x, const Y& y) {
  return Apply<operation::not_equal>{}(Source{}, x, y);
}
template <Distributed X>
constexpr auto operator!(const X& mask) {
  return logical_not(mask, Here("", 0));
}

}  // namespace parallel::internals
