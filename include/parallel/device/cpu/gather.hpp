// Elements picked along a dimension, and added up there. A rank may hold some of what is picked from: others are zeros,
// and are skipped backward.
#pragma once
#include <limits>

#include <parallel/device/cpu/array.hpp>

namespace parallel::internals::cpu {

/// Calls body(element of index, where in the rank's part of `from` it points, or -1, the number) for every element, row
/// of elements by row.
template <class Body>
void each_picked(const View& index, const View& from, int dim, Body body) {
  const Index inner = index.extent(dim + 1, index.rank), along = index.size[dim], own = from.size[dim];
  const int* const indices = index.as<const int>();
  for (Index i = 0; i < index.elements(); ++i) {
    const Index outer = i / inner / along, at = indices[i] - from.offset[dim];
    body(i, at >= 0 && at < own ? (outer * own + at) * inner + i % inner : -1, indices[i]);
  }
}
/// What an index outside picks.
template <class T>
T outside(const Ints& ints) {  // no number is what the loss shows
  return ints.size() > 1 && ints[1] != 0 ? T{0} : std::numeric_limits<T>::quiet_NaN();
}
/// (index, x)
template <class T>
void gather(const Call& call) {
  const View& x = call.operands[1];
  const T none = outside<T>(call.ints);
  const int dim = static_cast<int>(call.ints[0]);
  const T* const from = x.as<const T>();
  T* const to = call.results[0].as<T>();
  each_picked(call.operands[0], x, dim, [&](Index i, Index at, int index) {
    to[i] = at >= 0 ? from[at] : index >= 0 && index < x.whole[dim] ? T{0} : none;
  });
}
/// (index, source): in the order of the elements
template <class T>
void scattered(const Call& call) {
  const View& out = call.results[0];
  T* const sum = out.as<T>();
  const T* const source = call.operands[1].as<const T>();
  set(sum, out.elements(), T{0});
  each_picked(call.operands[0], out, static_cast<int>(call.ints[0]), [&](Index i, Index at, int) {
    if (at >= 0) sum[at] += source[i];
  });
}

}  // namespace parallel::internals::cpu
