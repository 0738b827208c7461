// Functions of two or three tensors, element by element; operands repeat as in NumPy: sums, products, quotients,
// comparisons, choices by a mask, powers.
#pragma once
#include <functional>

#include <parallel/device/cpu/array.hpp>
#include <parallel/device/cpu/team.hpp>

namespace parallel::internals::cpu {

/// out = Function{}(x, y) along a row.
template <class T, class Function>
[[gnu::flatten]] void row(const T* x, const T* y, T* out, Index n) {
  by_lanes(
      n, [](T* to, const T* a, const T* b) { lanes(to) = Function{}(lanes(a), lanes(b)); }, out, x, y);
}
template <class T, class Function>
[[gnu::flatten]] void row_and_number(const T* x, const T* y, T* out, Index n) {
  by_lanes(
      n, [number = *y](T* to, const T* a) { lanes(to) = Function{}(lanes(a), number); }, out, x);
}
template <class T, class Function>
[[gnu::flatten]] void number_and_row(const T* x, const T* y, T* out, Index n) {
  by_lanes(
      n, [number = *x](T* to, const T* b) { lanes(to) = Function{}(number, lanes(b)); }, out, y);
}
template <class T>
using RowFunction = void (*)(const T* x, const T* y, T* out, Index n);

/// Calls `both` for rows of x and y, `right` for rows of x and one number of y, `left` for one number of x and rows of
/// y.
template <class T>
void broadcast(const Call& call, RowFunction<T> both, RowFunction<T> right, RowFunction<T> left) {
  const View &x = call.operands[0], &y = call.operands[1], &out = call.results[0];
  const Walk<3> walk = through(out, {repeated(x, out), repeated(y, out), strides(out)});
  const RowFunction<T> function = walk.step(0) == 0 ? left : walk.step(1) == 0 ? right : both;
  each_part(team_for_elements(call, out.elements()), walk, [&](const Walk<3>& some) {
    for (auto at = some.rows(); at; ++at)
      function(x.as<const T>() + at[0], y.as<const T>() + at[1], out.as<T>() + at[2], some.extent());
  });
}

/// (x, y): Function{}(x, y)
template <class T, class Function>
void binary(const Call& call) {
  broadcast<T>(call, row<T, Function>, row_and_number<T, Function>, number_and_row<T, Function>);
}
using Add = std::plus<>;
using Subtract = std::minus<>;
using Multiply = std::multiplies<>;
using Divide = std::divides<>;
inline void add_scalars(const Call& call) { binary<double, Add>(call); }

/// (sum, x): sum + x in the storage of sum.
template <class T>
void accumulate(const Call& call) {
  add_to(call.results[0].as<T>(), call.operands[1].as<const T>(), call.results[0].elements());
}

/// Calls body(steps, ...) with constants where all steps are 1, so that the usual loops are vectorised.
template <class Body>
void with_steps(Index first, Index second, Index third, Body body) {
  constexpr std::integral_constant<Index, 1> one;
  constexpr std::integral_constant<Index, 0> zero;
  if (first == 1 && second == 1 && third == 1)
    body(one, one, one);
  else if (first == 1 && second == 1 && third == 0)
    body(one, one, zero);
  else
    body(first, second, third);
}
/// (mask, x, y): x where the mask is not zero, y elsewhere.
template <class T>
void where(const Call& call) {
  const View& out = call.results[0];
  const Walk<3> walk =
      through(out, {repeated(call.operands[0], out), repeated(call.operands[1], out), repeated(call.operands[2], out)});
  const Index n = walk.extent();
  T* to = out.as<T>();
  for (auto at = walk.rows(); at; ++at, to += n) {
    const int* mask = call.operands[0].as<const int>() + at[0];
    const T* x = call.operands[1].as<const T>() + at[1];
    const T* y = call.operands[2].as<const T>() + at[2];
    with_steps(walk.step(0), walk.step(1), walk.step(2), [=](auto of_mask, auto of_x, auto of_y) {
      fill(to, n, [=](Index i) {
        const T yes = x[i * of_x], no = y[i * of_y];
        return mask[i * of_mask] != 0 ? yes : no;
      });
    });
  }
}

/// (x, y): value(x, y), where there is no expression of lanes for it.
template <class Out, class T, class Value>
void of_two(const Call& call, Value value) {
  const View &x = call.operands[0], &y = call.operands[1], &out = call.results[0];
  const Walk<2> walk = through(out, {repeated(x, out), repeated(y, out)});
  const Index n = walk.extent();
  Out* to = out.as<Out>();
  for (auto at = walk.rows(); at; ++at, to += n) {
    const T *left = x.as<const T>() + at[0], *right = y.as<const T>() + at[1];
    with_steps(walk.step(0), walk.step(1), 0, [=](auto of_x, auto of_y, auto) {
      fill(to, n, [=](Index i) { return static_cast<Out>(value(left[i * of_x], right[i * of_y])); });
    });
  }
}
/// (x, y, g): value(x, y, g)
template <class T, class Value>
void of_three(const Call& call, Value value) {
  const View &x = call.operands[0], &y = call.operands[1], &z = call.operands[2], &out = call.results[0];
  const Walk<3> walk = through(out, {repeated(x, out), repeated(y, out), repeated(z, out)});
  const Index n = walk.extent();
  T* to = out.as<T>();
  for (auto at = walk.rows(); at; ++at, to += n) {
    const T *first = x.as<const T>() + at[0], *second = y.as<const T>() + at[1], *third = z.as<const T>() + at[2];
    with_steps(walk.step(0), walk.step(1), walk.step(2), [=](auto of_x, auto of_y, auto of_z) {
      fill(to, n, [=](Index i) { return value(first[i * of_x], second[i * of_y], third[i * of_z]); });
    });
  }
}

/// (x, y): 1 where a comparison holds, else 0.
template <class Comparison>
void compare(const Call& call) {
  switch (call.operands[0].dtype) {
    case DType::f32: return of_two<int, float>(call, Comparison{});
    case DType::f64: return of_two<int, double>(call, Comparison{});
    default: return of_two<int, int>(call, Comparison{});
  }
}
using Equal = std::equal_to<>;
using NotEqual = std::not_equal_to<>;
using Less = std::less<>;
using LessEqual = std::less_equal<>;
using Greater = std::greater<>;
using GreaterEqual = std::greater_equal<>;

/// The larger and the smaller of two; what is no number is either.
template <class T>
void larger(const Call& call) {
  of_two<T, T>(call, [](T x, T y) { return x >= y || x != x ? x : y; });
}
template <class T>
void smaller(const Call& call) {
  of_two<T, T>(call, [](T x, T y) { return x <= y || x != x ? x : y; });
}
/// (x, y, g): what of g goes to x.
template <class T>
void larger_gradient(const Call& call) {
  of_three<T>(call, [](T x, T y, T g) { return x == y ? g / 2 : x < y ? T{0} : g; });
}
template <class T>
void smaller_gradient(const Call& call) {
  of_three<T>(call, [](T x, T y, T g) { return x == y ? g / 2 : x > y ? T{0} : g; });
}
/// x^y; a square, and what its gradient asks for, at once.
template <class T>
T power(T x, T y) {
  return y == 2 ? x * x : y == 1 ? x : std::pow(x, y);
}
template <class T>
void pow(const Call& call) {
  of_two<T, T>(call, power<T>);
}
template <class T>
void pow_gradient(const Call& call) {
  of_three<T>(call, [](T x, T y, T g) { return y == 0 ? T{0} : g * (y * power(x, y - 1)); });
}
template <class T>
void pow_exponent_gradient(const Call& call) {
  of_three<T>(call, [](T x, T y, T g) { return x == 0 && y >= 0 ? T{0} : g * (power(x, y) * std::log(x)); });
}
/// (logits, targets): z (1 - t) above zero and -z t below, and log(1 + exp(-|z|)); 0 times infinity is 0.
template <class T>
struct BinaryCrossEntropy {
  Lanes<T> operator()(const auto& logits, const auto& targets) const {
    const Lanes<T> z = some(logits), t = some(targets), rest = exponential(-z.abs());
    const Lanes<T> share = (z > T{0}).select(T{1} - t, -t);
    return (share == T{0}).select(T{0}, z * share) + rest.log1p();
  }

 private:
  static Lanes<T> some(T number) { return Lanes<T>::Constant(number); }
  static Lanes<T> some(const Eigen::Map<const Lanes<T>>& row) { return row; }
};
template <class T>
void binary_cross_entropy(const Call& call) {
  binary<T, BinaryCrossEntropy<T>>(call);
}
/// (logits, targets, g)
template <class T>
void binary_cross_entropy_gradient(const Call& call) {
  of_three<T>(call, [](T z, T t, T g) { return g * (1 / (1 + std::exp(-z)) - t); });
}

/// (mask, x): x where the mask is not zero (ints[0] = 1) or is zero (0), else 0.
template <class T>
void masked(const Call& call) {
  const View &mask = call.operands[0], &x = call.operands[1], &out = call.results[0];
  const Walk<2> walk = through(out, {repeated(mask, out), repeated(x, out)});
  const Index n = walk.extent();
  const int kept = call.ints[0] != 0 ? 1 : 0;
  T* to = out.as<T>();
  for (auto at = walk.rows(); at; ++at, to += n) {
    const int* m = mask.as<const int>() + at[0];
    const T* from = x.as<const T>() + at[1];
    with_steps(walk.step(0), walk.step(1), 0, [=](auto of_mask, auto of_x, auto) {
      fill(to, n, [=](Index i) {
        const T value = from[i * of_x];
        const int set = m[i * of_mask] != 0 ? 1 : 0;
        return set == kept ? value : T{0};
      });
    });
  }
}

}  // namespace parallel::internals::cpu
