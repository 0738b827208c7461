// Elements picked along a dimension, and added up there: an element of a sum looks through the indices of its row, so
// that every run adds in the same order.
#pragma once
#include <limits>

#include <parallel/device/cuda/body/map.hpp>

namespace parallel::internals::cuda {

template <class T>
struct Gather {
  const int* index;
  const T* x;
  T* out;
  Index inner, along, first, own, whole;
  bool zeros;  ///< what an index outside picks, else no number

  PARALLEL_DEVICE void operator()(Index i) const {
    const Index at = index[i] - first;
    if (at >= 0 && at < own)
      out[i] = x[(i / inner / along * own + at) * inner + i % inner];
    else
      out[i] = narrow<T>(zeros || (index[i] >= 0 && index[i] < whole) ? Wide<T>{0}
                                                                      : std::numeric_limits<Wide<T>>::quiet_NaN());
  }
};
/// (index, x)
template <class T>
void gather(const Call& call) {
  const View &index = call.operands[0], &x = call.operands[1];
  const int dim = static_cast<int>(call.ints[0]);
  launch_each(
      gpu(call).stream(), index.elements(),
      Gather<T>{index.as<const int>(), x.as<const T>(), call.results[0].as<T>(), index.extent(dim + 1, index.rank),
                index.size[dim], x.offset[dim], x.size[dim], x.whole[dim], call.ints.size() > 1 && call.ints[1] != 0});
}

template <class T>
struct Scattered {
  const int* index;
  const T* source;
  T* out;
  Index inner, along, first, own;

  PARALLEL_DEVICE void operator()(Index i) const {
    const Index wanted = first + i / inner % own, begin = i / inner / own * along * inner + i % inner;
    Wide<T> sum{0};
    for (Index k = 0; k < along; ++k)
      if (index[begin + k * inner] == wanted) sum += widen(source[begin + k * inner]);
    out[i] = narrow<T>(sum);
  }
};
/// (index, source)
template <class T>
void scattered(const Call& call) {
  const View &index = call.operands[0], &out = call.results[0];
  const int dim = static_cast<int>(call.ints[0]);
  launch_each(gpu(call).stream(), out.elements(),
              Scattered<T>{index.as<const int>(), call.operands[1].as<const T>(), out.as<T>(),
                           index.extent(dim + 1, index.rank), index.size[dim], out.offset[dim], out.size[dim]});
}

}  // namespace parallel::internals::cuda
