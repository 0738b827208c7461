// The parts of a softmax over dimension ints[0], given the maximum: sums of exponentials, the quotient, and its
// gradient. Floors are bytes per element in bf16; over a dimension that is not the last, elements are read one by one.
#pragma once
#include <cmath>

#include <parallel/device/cuda/body/row.hpp>

namespace parallel::internals::cuda {

template <class S, class T>
struct SumOfExponentials {
  static constexpr int threads = 512, n = pack_elements<T>;
  using W = Wide<T>;
  const T* x;
  Reals<W> largest;
  S* sum;
  Rows rows;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index;
    const W most = largest[r];
    const W all = sum_along<W, n>(
        block, rows, rows.length, [=](W a) { return std::exp(a - most); }, Row<T>{x + rows.begin(r), rows.inner});
    block.each(1, [&](Index) { sum[r] = narrow<S>(all); });
  }
};
/// (x, max): the sum of exp(x - max). Floor: 2 bytes.
template <class S>
void sum_of_exponentials(const Call& call) {
  const View& x = call.operands[0];
  with_element<S>(x.dtype, [&]<class T>(T) {
    using Body = SumOfExponentials<S, T>;
    const Rows rows = Rows::of<Body::n>(x, static_cast<int>(call.ints[0]));
    launch_rows(call, Body{x.as<const T>(), Reals<Wide<T>>::of(call.operands[1]), call.results[0].as<S>(), rows});
  });
}

template <class T>
struct NormalizedExponential {
  static constexpr int threads = 512, n = pack_elements<T>;
  using W = Wide<T>;
  const T* x;
  Reals<W> largest, sum;
  T* out;
  Rows rows;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index, begin = rows.begin(r);
    const W most = largest[r], share = W{1} / sum[r];
    map_along<n>(
        block, rows, out + begin, [=](Index, W a) { return std::exp(a - most) * share; },
        Row<T>{x + begin, rows.inner});
  }
};
/// (x, max, sum): exp(x - max) / sum. Floor: 2 + 2 bytes.
template <class T>
void normalized_exponential(const Call& call) {
  const View& x = call.operands[0];
  using W = Wide<T>;
  using Body = NormalizedExponential<T>;
  const Rows rows = Rows::of<Body::n>(x, static_cast<int>(call.ints[0]), call.results[0]);
  launch_rows(call, Body{x.as<const T>(), Reals<W>::of(call.operands[1]), Reals<W>::of(call.operands[2]),
                         call.results[0].as<T>(), rows});
}

template <class S, class T>
struct RowProduct {
  static constexpr int threads = 512, n = pack_elements<T>;
  using W = Wide<T>;
  const T *y, *g;
  S* product;
  Rows rows;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index, begin = rows.begin(r);
    const W sum = sum_along<W, n>(
        block, rows, rows.length, [](W a, W b) { return a * b; }, Row<T>{y + begin, rows.inner},
        Row<T>{g + begin, rows.inner});
    block.each(1, [&](Index) { product[r] = narrow<S>(sum); });
  }
};
/// (y, g): the sum of y g. Floor: 2 + 2 bytes.
template <class S>
void row_product(const Call& call) {
  const View &y = call.operands[0], &g = call.operands[1];
  with_element<S>(y.dtype, [&]<class T>(T) {
    using Body = RowProduct<S, T>;
    const Rows rows = Rows::of<Body::n>(y, static_cast<int>(call.ints[0]), g);
    launch_rows(call, Body{y.as<const T>(), g.as<const T>(), call.results[0].as<S>(), rows});
  });
}

template <class T>
struct SoftmaxGradient {
  static constexpr int threads = 512, n = pack_elements<T>;
  using W = Wide<T>;
  const T *y, *g;
  Reals<W> product;
  T* out;
  Rows rows;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index, begin = rows.begin(r);
    const W inner = product[r];
    map_along<n>(
        block, rows, out + begin, [=](Index, W a, W b) { return a * (b - inner); }, Row<T>{y + begin, rows.inner},
        Row<T>{g + begin, rows.inner});
  }
};
/// (y, g, product): y (g - product). Floor: 2 + 2 + 2 bytes.
template <class T>
void softmax_gradient(const Call& call) {
  const View &y = call.operands[0], &g = call.operands[1];
  using Body = SoftmaxGradient<T>;
  const Rows rows = Rows::of<Body::n>(y, static_cast<int>(call.ints[0]), g, call.results[0]);
  launch_rows(call, Body{y.as<const T>(), g.as<const T>(), Reals<Wide<T>>::of(call.operands[2]),
                         call.results[0].as<T>(), rows});
}

template <class T>
struct NormalizedLogarithm {
  static constexpr int threads = 512, n = pack_elements<T>;
  using W = Wide<T>;
  const T* x;
  Reals<W> largest, sum;
  T* out;
  Rows rows;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index, begin = rows.begin(r);
    const W most = largest[r], logarithm = std::log(sum[r]);
    map_along<n>(
        block, rows, out + begin, [=](Index, W a) { return (a - most) - logarithm; }, Row<T>{x + begin, rows.inner});
  }
};
/// (x, max, sum): x - max - log sum. Floor: 2 + 2 bytes.
template <class T>
void normalized_logarithm(const Call& call) {
  const View& x = call.operands[0];
  using W = Wide<T>;
  using Body = NormalizedLogarithm<T>;
  const Rows rows = Rows::of<Body::n>(x, static_cast<int>(call.ints[0]), call.results[0]);
  launch_rows(call, Body{x.as<const T>(), Reals<W>::of(call.operands[1]), Reals<W>::of(call.operands[2]),
                         call.results[0].as<T>(), rows});
}

template <class T>
struct LogSoftmaxGradient {
  static constexpr int threads = 512, n = pack_elements<T>;
  using W = Wide<T>;
  const T *y, *g;
  Reals<W> sum;
  T* out;
  Rows rows;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index, begin = rows.begin(r);
    const W total = sum[r];
    map_along<n>(
        block, rows, out + begin, [=](Index, W a, W b) { return b - std::exp(a) * total; },
        Row<T>{y + begin, rows.inner}, Row<T>{g + begin, rows.inner});
  }
};
/// (y, g, sum of g): g - exp(y) sum. Floor: 2 + 2 + 2 bytes.
template <class T>
void log_softmax_gradient(const Call& call) {
  const View &y = call.operands[0], &g = call.operands[1];
  using Body = LogSoftmaxGradient<T>;
  const Rows rows = Rows::of<Body::n>(y, static_cast<int>(call.ints[0]), g, call.results[0]);
  launch_rows(call, Body{y.as<const T>(), g.as<const T>(), Reals<Wide<T>>::of(call.operands[2]),
                         call.results[0].as<T>(), rows});
}

}  // namespace parallel::internals::cuda
