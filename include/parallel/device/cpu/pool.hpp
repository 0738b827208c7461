// The largest and the mean of windows.
#pragma once
#include <parallel/device/cpu/array.hpp>
#include <parallel/device/sliding.hpp>

namespace parallel::internals::cpu {

/// Calls body(window, rows and columns of x that it has: first row, end, first column, end, where its plane begins).
template <class Body>
void each_window(const Sliding& s, Body body) {
  Index window = 0;
  for (Index plane = 0; plane < s.batch * s.channels; ++plane)
    for (Index y = 0; y < s.height.places; ++y)
      for (Index x = 0; x < s.width.places; ++x, ++window) {
        const Index top = s.height.at(y, 0), left = s.width.at(x, 0);
        body(window, std::max<Index>(top, 0), std::min(top + s.height.window, s.height.extent),
             std::max<Index>(left, 0), std::min(left + s.width.window, s.width.extent), plane * s.plane());
      }
}
/// Calls body(window, the place of its largest element), the first of equals; what is no number is the largest.
template <class T, class Body>
void each_largest(const Sliding& s, const T* x, Body body) {
  each_window(s, [&](Index window, Index top, Index bottom, Index left, Index right, Index plane) {
    Index largest = plane + top * s.width.extent + left;
    for (Index i = top; i < bottom; ++i)
      for (Index j = left; j < right; ++j) {
        const Index at = plane + i * s.width.extent + j;
        if (x[at] > x[largest] || std::isnan(x[at])) largest = at;
      }
    body(window, largest);
  });
}
template <class T>
void max_pool(const Call& call) {
  const T* const x = call.operands[0].as<const T>();
  T* const y = call.results[0].as<T>();
  each_largest(Sliding(call.operands[0], call.results[0], call.ints), x,
               [&](Index window, Index largest) { y[window] = x[largest]; });
}
/// (x, g)
template <class T>
void max_pool_gradient(const Call& call) {
  const View &g = call.operands[1], &to = call.results[0];
  set(to.as<T>(), to.elements(), T{0});
  const T* const given = g.as<const T>();
  T* const sum = to.as<T>();
  each_largest(Sliding(call.operands[0], g, call.ints), call.operands[0].as<const T>(),
               [&](Index window, Index largest) { sum[largest] += given[window]; });
}
template <class T>
void average_pool(const Call& call) {
  const Sliding s(call.operands[0], call.results[0], call.ints);
  const T* const x = call.operands[0].as<const T>();
  T* const to = call.results[0].as<T>();
  const T share = T{1} / static_cast<T>(s.window());
  each_window(s, [&](Index window, Index top, Index bottom, Index left, Index right, Index plane) {
    T sum{0};
    for (Index i = top; i < bottom; ++i)
      for (Index j = left; j < right; ++j) sum += x[plane + i * s.width.extent + j];
    to[window] = sum * share;
  });
}
/// g
template <class T>
void average_pool_gradient(const Call& call) {
  const View &g = call.operands[0], &to = call.results[0];
  const Sliding s(to, g, call.ints);
  set(to.as<T>(), to.elements(), T{0});
  const T* const given = g.as<const T>();
  T* const sum = to.as<T>();
  const T share = T{1} / static_cast<T>(s.window());
  each_window(s, [&](Index window, Index top, Index bottom, Index left, Index right, Index plane) {
    for (Index i = top; i < bottom; ++i)
      for (Index j = left; j < right; ++j) sum[plane + i * s.width.extent + j] += given[window] * share;
  });
}

}  // namespace parallel::internals::cpu
