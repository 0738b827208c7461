// Convolutions: a thread adds up an element of the result; of a weight's gradient, which is a sum over all examples, a
// block does. Straightforward: every element of x is read as often as windows hold it, mostly from the cache.
#pragma once
#include <parallel/device/cuda/body/map.hpp>
#include <parallel/device/sliding.hpp>

namespace parallel::internals::cuda {

template <class T>
struct Convolution {
  const T *x, *weight;
  T* out;
  Sliding s;

  PARALLEL_DEVICE void operator()(Index i) const {
    const Index place = i % s.places(), o = i / s.places() % s.out, n = i / s.places() / s.out,
                top = s.height.at(place / s.width.places, 0), left = s.width.at(place % s.width.places, 0);
    Wide<T> sum{0};
    for (Index c = 0; c < s.channels; ++c)
      for (Index h = 0; h < s.height.window; ++h) {
        if (!s.height.holds(top + h)) continue;
        const T* const line = x + ((n * s.channels + c) * s.height.extent + top + h) * s.width.extent;
        const T* const row = weight + ((o * s.channels + c) * s.height.window + h) * s.width.window;
        for (Index w = 0; w < s.width.window; ++w)
          if (s.width.holds(left + w)) sum += widen(line[left + w]) * widen(row[w]);
      }
    out[i] = narrow<T>(sum);
  }
};
/// (x, weight)
template <class T>
void convolution(const Call& call) {
  const View &x = call.operands[0], &weight = call.operands[1], &y = call.results[0];
  launch_each(gpu(call).stream(), y.elements(),
              Convolution<T>{x.as<const T>(), weight.as<const T>(), y.as<T>(), Sliding(x, weight, y, call.ints)});
}

template <class T>
struct TransposedConvolution {
  const T *y, *weight;
  T* out;
  Sliding s;

  PARALLEL_DEVICE void operator()(Index i) const {
    const Index at = i % s.plane(), c = i / s.plane() % s.channels, n = i / s.plane() / s.channels,
                bottom = at / s.width.extent + s.height.padding, right = at % s.width.extent + s.width.padding;
    Wide<T> sum{0};
    for (Index h = 0; h < s.height.window; ++h) {
      const Index row = (bottom - h) / s.height.stride;
      if (bottom < h || row * s.height.stride != bottom - h || row >= s.height.places) continue;
      for (Index w = 0; w < s.width.window; ++w) {
        const Index column = (right - w) / s.width.stride;
        if (right < w || column * s.width.stride != right - w || column >= s.width.places) continue;
        for (Index o = 0; o < s.out; ++o)
          sum += widen(y[(n * s.out + o) * s.places() + row * s.width.places + column]) *
                 widen(weight[((o * s.channels + c) * s.height.window + h) * s.width.window + w]);
      }
    }
    out[i] = narrow<T>(sum);
  }
};
/// (y, weight)
template <class T>
void transposed_convolution(const Call& call) {
  const View &y = call.operands[0], &weight = call.operands[1], &x = call.results[0];
  launch_each(
      gpu(call).stream(), x.elements(),
      TransposedConvolution<T>{y.as<const T>(), weight.as<const T>(), x.as<T>(), Sliding(x, weight, y, call.ints)});
}

template <class T>
struct ConvolutionWeight {
  static constexpr int threads = 128;
  const T *x, *y;
  T* out;
  Sliding s;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const Index w = block.index % s.width.window, h = block.index / s.width.window % s.height.window,
                c = block.index / s.window() % s.channels, o = block.index / s.window() / s.channels;
    const Wide<T> sum = block.template sum<Wide<T>>(s.batch * s.places(), [&](Index i) {
      const Index place = i % s.places(), n = i / s.places(), row = s.height.at(place / s.width.places, h),
                  column = s.width.at(place % s.width.places, w);
      if (!s.height.holds(row) || !s.width.holds(column)) return Wide<T>{0};
      return widen(x[((n * s.channels + c) * s.height.extent + row) * s.width.extent + column]) *
             widen(y[(n * s.out + o) * s.places() + place]);
    });
    block.each(1, [&](int) { out[block.index] = narrow<T>(sum); });
  }
};
/// (x, y)
template <class T>
void convolution_weight(const Call& call) {
  const View &x = call.operands[0], &y = call.operands[1], &weight = call.results[0];
  launch(gpu(call).stream(), weight.elements(),
         ConvolutionWeight<T>{x.as<const T>(), y.as<const T>(), weight.as<T>(), Sliding(x, weight, y, call.ints)});
}

}  // namespace parallel::internals::cuda
