// The largest and the mean of windows: a thread has a window, backward an element, which looks at the windows that hold
// it.
#pragma once
#include <parallel/device/cuda/body/map.hpp>
#include <parallel/device/sliding.hpp>

namespace parallel::internals::cuda {

template <class T>
struct Pool {
  const T* x;
  Sliding s;

  /// f(place of an element) for each of a window, in the order of memory; `plane` is its batch and channel.
  template <class F>
  PARALLEL_DEVICE void each(Index plane, Index row, Index column, F f) const {
    for (Index h = 0; h < s.height.window; ++h)
      for (Index w = 0; w < s.width.window; ++w) {
        const Index at = s.height.at(row, h), beside = s.width.at(column, w);
        if (s.height.holds(at) && s.width.holds(beside)) f((plane * s.height.extent + at) * s.width.extent + beside);
      }
  }
  /// The first of the largest; what is no number is the largest.
  PARALLEL_DEVICE Index largest(Index plane, Index row, Index column) const {
    Index best = -1;
    each(plane, row, column, [&](Index at) {
      if (best < 0 || widen(x[at]) > widen(x[best]) || widen(x[at]) != widen(x[at])) best = at;
    });
    return best;
  }
  /// f(row, column) for every window that holds an element.
  template <class F>
  PARALLEL_DEVICE void each_holder(Index row, Index column, F f) const {
    for (Index h = 0; h < s.height.window; ++h) {
      const Index at = row + s.height.padding - h, y = at / s.height.stride;
      if (at < 0 || y * s.height.stride != at || y >= s.height.places) continue;
      for (Index w = 0; w < s.width.window; ++w) {
        const Index beside = column + s.width.padding - w, along = beside / s.width.stride;
        if (beside >= 0 && along * s.width.stride == beside && along < s.width.places) f(y, along);
      }
    }
  }
};

template <class T, bool largest>
struct PoolForward {
  Pool<T> of;
  T* out;
  PARALLEL_DEVICE void operator()(Index i) const {
    const Index plane = i / of.s.places(), row = i / of.s.width.places % of.s.height.places,
                column = i % of.s.width.places;
    if constexpr (largest) {
      out[i] = of.x[of.largest(plane, row, column)];
    } else {
      Wide<T> sum{0};
      of.each(plane, row, column, [&](Index at) { sum += widen(of.x[at]); });
      out[i] = narrow<T>(sum / static_cast<Wide<T>>(of.s.window()));
    }
  }
};
template <class T, bool largest>
void pool(const Call& call) {
  const View &x = call.operands[0], &y = call.results[0];
  launch_each(gpu(call).stream(), y.elements(),
              PoolForward<T, largest>{{x.as<const T>(), Sliding(x, y, call.ints)}, y.as<T>()});
}
template <class T>
void max_pool(const Call& call) {
  pool<T, true>(call);
}
template <class T>
void average_pool(const Call& call) {
  pool<T, false>(call);
}

template <class T, bool largest>
struct PoolBackward {
  Pool<T> of;
  const T* g;
  T* out;
  PARALLEL_DEVICE void operator()(Index i) const {
    const Index plane = i / of.s.plane(), row = i / of.s.width.extent % of.s.height.extent,
                column = i % of.s.width.extent;
    Wide<T> sum{0};
    of.each_holder(row, column, [&](Index y, Index beside) {
      if (!largest || of.largest(plane, y, beside) == i)
        sum += widen(g[plane * of.s.places() + y * of.s.width.places + beside]);
    });
    out[i] = narrow<T>(largest ? sum : sum / static_cast<Wide<T>>(of.s.window()));
  }
};
/// (x, g)
template <class T>
void max_pool_gradient(const Call& call) {
  const View &x = call.operands[0], &g = call.operands[1], &to = call.results[0];
  launch_each(gpu(call).stream(), to.elements(),
              PoolBackward<T, true>{{x.as<const T>(), Sliding(x, g, call.ints)}, g.as<const T>(), to.as<T>()});
}
/// g
template <class T>
void average_pool_gradient(const Call& call) {
  const View &g = call.operands[0], &to = call.results[0];
  launch_each(gpu(call).stream(), to.elements(),
              PoolBackward<T, false>{{nullptr, Sliding(to, g, call.ints)}, g.as<const T>(), to.as<T>()});
}

}  // namespace parallel::internals::cuda
