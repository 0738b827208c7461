// Values made from nothing: constants, and coordinates of the full tensor.
#pragma once
#include <parallel/device/cpu/array.hpp>

namespace parallel::internals::cpu {

/// Every element is the first number.
template <class T>
void constant(const Call& call) {
  set(call.results[0].as<T>(), call.results[0].elements(), static_cast<T>(call.reals[0]));
}
/// An element is its coordinate in dimension ints[0] of the full tensor.
template <class T>
void iota(const Call& call) {
  const View& out = call.results[0];
  const int dim = static_cast<int>(call.ints[0]);
  const Index outer = out.extent(0, dim), n = out.size[dim], inner = out.extent(dim + 1, out.rank);
  T* to = out.as<T>();
  for (Index o = 0; o < outer; ++o)
    for (Index i = 0; i < n; ++i, to += inner) set(to, inner, static_cast<T>(out.at(dim, i)));
}

}  // namespace parallel::internals::cpu
