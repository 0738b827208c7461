// Values made from nothing: constants, and coordinates of the full tensor. Each element is written once.
#pragma once
#include <parallel/device/cuda/body/map.hpp>

namespace parallel::internals::cuda {

/// out[i] = value(i), n elements at a time.
template <int n, class T, class Value>
struct Make {
  Value value;
  T* out;

  PARALLEL_DEVICE void operator()(Index pack) const {
    Pack<T, n> made;
    for (int i = 0; i < n; ++i) made.of[i] = narrow<T>(value(pack * n + i));
    *reinterpret_cast<Pack<T, n>*>(out + pack * n) = made;
  }
};
template <class T, class Value>
void make(const Call& call, const Value& value) {
  const View& out = call.results[0];
  const auto run = [&]<int n>(std::integral_constant<int, n>) {
    launch_each(gpu(call).stream(), out.elements() / n, Make<n, T, Value>{value, out.as<T>()});
  };
  constexpr std::integral_constant<int, pack_elements<T>> packed;
  out.elements() % packed() == 0 && lies_at(out.data, 16) ? run(packed) : run(std::integral_constant<int, 1>{});
}

template <class T>
struct Constant {
  Wide<T> number;
  PARALLEL_DEVICE Wide<T> operator()(Index) const { return number; }
};
/// Every element is the first number.
template <class T>
void constant(const Call& call) {
  make<T>(call, Constant<T>{static_cast<Wide<T>>(call.reals[0])});
}

struct Coordinate {
  Divisor inner, extent;
  Index first;
  Standing standing;
  PARALLEL_DEVICE int operator()(Index i) const {
    Index outer = inner.quotient(i);
    return static_cast<int>(standing.element(first + extent.divide(outer)));
  }
};
/// An element is its coordinate in dimension ints[0] of the full tensor.
template <class T>
void iota(const Call& call) {
  const View& out = call.results[0];
  const int dim = static_cast<int>(call.ints[0]);
  make<T>(call, Coordinate{Divisor(out.extent(dim + 1, out.rank)), Divisor(out.size[dim]), out.offset[dim],
                           out.standing(dim)});
}

}  // namespace parallel::internals::cuda
