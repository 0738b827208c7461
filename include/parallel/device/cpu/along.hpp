// Along one dimension: where the largest and smallest elements stand, the k largest, sums up to each element.
#pragma once
#include <algorithm>
#include <limits>

#include <parallel/device/cpu/array.hpp>

namespace parallel::internals::cpu {

/// A part as rows along one dimension: elements of a row are `inner` apart, and so many rows lie in each other.
struct RowsAlong {
  Index outer, length, inner;
  RowsAlong(const View& x, std::int64_t dim)
      : outer(x.extent(0, static_cast<int>(dim))),
        length(x.size[dim]),
        inner(x.extent(static_cast<int>(dim) + 1, x.rank)) {}
  /// f(begin of a row, its number) for every row.
  template <class F>
  void each(F f) const {
    for (Index o = 0; o < outer; ++o)
      for (Index i = 0; i < inner; ++i) f(o * length * inner + i, o * inner + i);
  }
};
/// Calls f(T{}) for the C++ type T of an element type.
template <class F>
void with_real(DType dtype, F f) {
  if (dtype == DType::f64) return f(double{});
  if (dtype == DType::f32) return f(float{});
  f(int{});
}

/// At which position of dimension ints[0] the first element stands that no other is before.
template <class Before>
void position(const Call& call, Before before) {
  const View& x = call.operands[0];
  const RowsAlong rows(x, call.ints[0]);
  int* to = call.results[0].as<int>();
  with_real(x.dtype, [&]<class T>(T) {
    const T* from = x.as<const T>();
    rows.each([&](Index begin, Index row) {
      Index found = 0;
      T best = from[begin];
      for (Index i = 1; i < rows.length; ++i)
        if (const T value = from[begin + i * rows.inner]; before(value, best)) {
          best = value;
          found = i;
        }
      to[row] = static_cast<int>(found);
    });
  });
}
/// Whether a comes before b from the largest on: what is no number comes first.
struct LargestFirst {
  template <class T>
  bool operator()(T a, T b) const {
    return a > b || (a != a && b == b);
  }
};
struct SmallestFirst {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b || (a != a && b == b);
  }
};
inline void argmax(const Call& call) { position(call, LargestFirst{}); }
inline void argmin(const Call& call) { position(call, SmallestFirst{}); }

/// (x, extreme): minus the position in the full tensor of the first element that equals it, -infinity of none.
inline void first_equal(const Call& call) {
  const View& x = call.operands[0];
  const std::int64_t dim = call.ints[0];
  const RowsAlong rows(x, dim);
  double* to = call.results[0].as<double>();
  with_real(x.dtype, [&]<class T>(T) {
    const T *from = x.as<const T>(), *extreme = call.operands[1].as<const T>();
    rows.each([&](Index begin, Index row) {
      const T wanted = extreme[row];
      Index i = 0;
      while (i < rows.length) {
        const T value = from[begin + i * rows.inner];
        if (value == wanted || (value != value && wanted != wanted)) break;
        ++i;
      }
      to[row] = i < rows.length ? -static_cast<double>(x.offset[dim] + i) : -std::numeric_limits<double>::infinity();
    });
  });
}
inline void position_of(const Call& call) {
  const double* x = call.operands[0].as<const double>();
  fill(call.results[0].as<int>(), call.results[0].elements(), [=](Index i) { return static_cast<int>(-x[i]); });
}

/// Each element and all before it along dimension ints[0], or behind it (ints[1] = 1). Some rows that lie in each other
/// are taken at a time.
template <class T>
void cumulative_sum(const Call& call) {
  using Sum = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
  const RowsAlong rows(call.operands[0], call.ints[0]);
  const T* x = call.operands[0].as<const T>();
  T* out = call.results[0].as<T>();
  const Index step = call.ints[1] != 0 ? -rows.inner : rows.inner;
  for (Index o = 0; o < rows.outer; ++o) {
    const Index first = o * rows.length * rows.inner + (step < 0 ? (rows.length - 1) * rows.inner : 0);
    in_chunks(
        rows.inner,
        [&](Index begin, Index count) {
          const auto along = [&](auto many) {
            Sum sums[16]{};
            for (Index i = 0, at = first + begin; i < rows.length; ++i, at += step)
              for (Index j = 0; j < many; ++j) out[at + j] = static_cast<T>(sums[j] += static_cast<Sum>(x[at + j]));
          };
          constexpr std::integral_constant<Index, 1> one;
          constexpr std::integral_constant<Index, 16> sixteen;
          if (count == 1)
            along(one);
          else if (count == 16)
            along(sixteen);
          else
            along(count);
        },
        16);
  }
}

/// The positions of the ints[1] largest along dimension ints[0], the largest first, of equal ones the first.
inline void top_k(const Call& call) {
  const View& x = call.operands[0];
  const RowsAlong rows(x, call.ints[0]), chosen(call.results[0], call.ints[0]);
  int* to = call.results[0].as<int>();
  with_real(x.dtype, [&]<class T>(T) {
    const T* from = x.as<const T>();
    for (Index r = 0; r < rows.outer * rows.inner; ++r) {
      const Index o = r / rows.inner, i = r % rows.inner;
      const T* row = from + o * rows.length * rows.inner + i;
      int* best = to + o * chosen.length * chosen.inner + i;
      for (Index found = 0, n = 0; n < rows.length; ++n) {  // inserted where it belongs
        Index at = found;
        for (; at > 0; --at) {
          const int before = best[(at - 1) * chosen.inner];
          if (!LargestFirst{}(row[n * rows.inner], row[before * rows.inner])) break;
          if (at < chosen.length) best[at * chosen.inner] = before;
        }
        if (at < chosen.length) best[at * chosen.inner] = static_cast<int>(n);
        found = std::min(found + 1, chosen.length);
      }
    }
  });
}
/// (x, positions): the elements at these positions of dimension ints[0], each of which there is.
template <class T>
void chosen(const Call& call) {
  const RowsAlong rows(call.operands[0], call.ints[0]), few(call.results[0], call.ints[0]);
  const T* x = call.operands[0].as<const T>();
  const int* positions = call.operands[1].as<const int>();
  T* out = call.results[0].as<T>();
  for (Index i = 0; i < call.results[0].elements(); ++i) {
    const Index row = i / (few.length * few.inner) * rows.length * rows.inner + i % few.inner;
    out[i] = x[row + positions[i] * rows.inner];
  }
}
/// (positions, g): g at these positions of dimension ints[0], and 0 elsewhere.
template <class T>
void chosen_gradient(const Call& call) {
  const RowsAlong rows(call.results[0], call.ints[0]), few(call.operands[1], call.ints[0]);
  const int* positions = call.operands[0].as<const int>();
  const T* g = call.operands[1].as<const T>();
  T* out = call.results[0].as<T>();
  set(out, call.results[0].elements(), T{0});
  for (Index i = 0; i < call.operands[1].elements(); ++i) {
    const Index row = i / (few.length * few.inner) * rows.length * rows.inner + i % few.inner;
    out[row + positions[i] * rows.inner] += g[i];
  }
}

}  // namespace parallel::internals::cpu
