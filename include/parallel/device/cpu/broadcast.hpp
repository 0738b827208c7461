// Functions of two or three tensors, element by element; operands repeat as in NumPy: sums, products, quotients, choices by a mask.
#pragma once
#include <parallel/device/cpu/walk.hpp>

namespace parallel::cpu {

/// out = function(x, y) where a row of x and of y is an array or one number.
template <class T, class Function>
void broadcast(const Call& call, Function function) {
  const View &x = call.operands[0], &y = call.operands[1], &out = call.results[0];
  const Steps<max_rank> from_x = repeated(x, out), from_y = repeated(y, out);
  Walk<2> walk;
  for (int d = 0; d < out.rank; ++d) walk.add(out.size[d], {from_x[d], from_y[d]});
  const Index n = walk.extent();
  const T *left = x.as<const T>(), *right = y.as<const T>();
  T* to = out.as<T>();
  const auto rows = [&](auto row) {
    walk.each([&](const Steps<2>& at) {
      row(left + at[0], right + at[1]);
      to += n;
    });
  };
  if (walk.step(0) != 0 && walk.step(1) != 0)
    rows([&](const T* a, const T* b) { array(to, n) = function(array(a, n), array(b, n)); });
  else if (walk.step(0) != 0)
    rows([&](const T* a, const T* b) { array(to, n) = function(array(a, n), *b); });
  else
    rows([&](const T* a, const T* b) { array(to, n) = function(*a, array(b, n)); });
}

template <class T>
void add(const Call& call) {
  broadcast<T>(call, [](const auto& x, const auto& y) { return x + y; });
}
template <class T>
void subtract(const Call& call) {
  broadcast<T>(call, [](const auto& x, const auto& y) { return x - y; });
}
template <class T>
void multiply(const Call& call) {
  broadcast<T>(call, [](const auto& x, const auto& y) { return x * y; });
}
template <class T>
void divide(const Call& call) {
  broadcast<T>(call, [](const auto& x, const auto& y) { return x / y; });
}

/// (sum, x): sum + x in the storage of sum.
template <class T>
void accumulate(const Call& call) {
  const Index n = call.results[0].elements();
  array(call.results[0].as<T>(), n) += array(call.operands[1].as<const T>(), n);
}

/// (mask, x, y): x where the mask is not zero, y elsewhere.
template <class T>
void where(const Call& call) {
  const View& out = call.results[0];
  Steps<max_rank> from[3];
  for (int i = 0; i < 3; ++i) from[i] = repeated(call.operands[i], out);
  Walk<3> walk;
  for (int d = 0; d < out.rank; ++d) walk.add(out.size[d], {from[0][d], from[1][d], from[2][d]});
  const Index n = walk.extent(), dm = walk.step(0), dx = walk.step(1), dy = walk.step(2);
  T* to = out.as<T>();
  walk.each([&](const Steps<3>& at) {
    const int* mask = call.operands[0].as<const int>() + at[0];
    const T* x = call.operands[1].as<const T>() + at[1];
    const T* y = call.operands[2].as<const T>() + at[2];
    fill(to, n, [=](Index i) {
      const T yes = x[i * dx], no = y[i * dy];
      return mask[i * dm] != 0 ? yes : no;
    });
    to += n;
  });
}

/// (mask, x): x where the mask is not zero (ints[0] = 1) or is zero (0), else 0.
template <class T>
void masked(const Call& call) {
  const View &mask = call.operands[0], &x = call.operands[1], &out = call.results[0];
  const Steps<max_rank> from_mask = repeated(mask, out), from_x = repeated(x, out);
  Walk<2> walk;
  for (int d = 0; d < out.rank; ++d) walk.add(out.size[d], {from_mask[d], from_x[d]});
  const Index n = walk.extent(), dm = walk.step(0), dx = walk.step(1);
  const bool kept = call.ints[0] != 0;
  T* to = out.as<T>();
  walk.each([&](const Steps<2>& at) {
    const int* m = mask.as<const int>() + at[0];
    const T* from = x.as<const T>() + at[1];
    fill(to, n, [=](Index i) {
      const T value = from[i * dx];
      return (m[i * dm] != 0) == kept ? value : T{0};
    });
    to += n;
  });
}

}  // namespace parallel::cpu
