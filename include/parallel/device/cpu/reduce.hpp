// Sums, maxima and repetition over dimensions.
#pragma once
#include <parallel/device/cpu/array.hpp>
#include <parallel/device/cpu/team.hpp>

namespace parallel::internals::cpu {

/// out[n] += the sum of `rows` rows of n numbers. Sixty-four rows at a time, so that long sums lose little.
template <class T>
[[gnu::flatten]] void add_rows(const T* x, Index rows, Index stride, T* out, Index n) {
  in_chunks(
      rows,
      [=](Index first, Index count) {
        const T* from = x + first * stride;
        Index j = 0;
        for (; j + 16 <= n; j += 16) {
          Lanes<T> sum = Lanes<T>::Zero();
          for (Index r = 0; r < count; ++r) sum += lanes(from + r * stride + j);
          lanes(out + j) += sum;
        }
        for (; j < n; ++j) {
          T sum = 0;
          for (Index r = 0; r < count; ++r) sum += from[r * stride + j];
          out[j] += sum;
        }
      },
      64);
}

/// out = factor * the sum of x over the dimensions along which `steps`, the result's, is 0.
template <class T>
void sum_over(Team* team, const View& x, const View& out, const Steps<max_rank>& steps, T factor) {
  const Walk<2> walk = together(x, steps);
  const T* from = x.as<const T>();
  T* to = out.as<T>();
  const Index n = walk.extent();
  set(to, out.elements(), T{0});
  if (walk.step(1) == 0)
    each_part(walk.outermost_step(1) != 0 ? team : nullptr, walk, [&](const Walk<2>& some) {
      for (auto at = some.rows(); at; ++at) to[at[1]] += static_cast<T>(total(from + at[0], some.extent()));
    });
  else  // what encloses a dimension that stays is one that goes
    each_part(team, n, 64, [&](Index begin, Index end) {
      for (auto at = walk.planes(); at; ++at)
        add_rows(from + at[0] + begin, walk.extent(1), n, to + at[1] + begin, end - begin);
    });
  if (factor != T{1}) multiply_by(to, factor, out.elements());
}
/// The sum over the dimensions `ints` (none: all), times the first number.
template <class T>
void sum(const Call& call) {
  const View& x = call.operands[0];
  sum_over<T>(team_for_elements(call, x.elements()), x, call.results[0], reduced(x, call.ints),
              static_cast<T>(call.reals[0]));
}
/// The sum over the dimensions along which the result would be repeated.
template <class T>
void sum_to(const Call& call) {
  const View& x = call.operands[0];
  sum_over<T>(team_for_elements(call, x.elements()), x, call.results[0], repeated(call.results[0], x), T{1});
}

template <class T>
[[gnu::noinline, gnu::flatten]] void expand_rows(const Walk<2>& walk, const T* x, T* out, T factor) {
  const Index n = walk.extent();
  for (auto at = walk.rows(); at; ++at) {
    if (walk.step(1) == 0)
      set(out + at[0], n, factor * x[at[1]]);
    else
      by_lanes(
          n, [=](T* y, const T* some) { lanes(y) = factor * lanes(some); }, out + at[0], x + at[1]);
  }
}
/// Repeats x along the dimensions `ints` of the result (none: all), times the first number.
template <class T>
void expand(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  const Walk<2> walk = together(out, reduced(out, call.ints));
  each_part(team_for_elements(call, out.elements()), walk, [&](const Walk<2>& some) {
    expand_rows(some, x.as<const T>(), out.as<T>(), static_cast<T>(call.reals[0]));
  });
}

/// An extreme over the dimensions `ints` (none: all) of the rank's part: of_row(row, n) along rows, chosen(a, b) of
/// two.
template <class T, class OfRow, class Chosen>
void local_extreme(const Call& call, T none, OfRow of_row, Chosen chosen) {
  const View &x = call.operands[0], &out = call.results[0];
  const Walk<2> walk = together(x, reduced(x, call.ints));
  set(out.as<T>(), out.elements(), none);
  Team* const team = walk.outermost_step(1) != 0 ? team_for_elements(call, x.elements()) : nullptr;
  each_part(team, walk, [&](const Walk<2>& some) {
    const Index n = some.extent();
    for (auto at = some.rows(); at; ++at) {
      const T* row = x.as<const T>() + at[0];
      T* to = out.as<T>() + at[1];
      if (some.step(1) == 0)
        *to = chosen(*to, of_row(row, n));
      else
        fill(to, n, [=](Index i) { return chosen(to[i], row[i]); });
    }
  });
}
/// The maximum of the rank's part. What is no number is the maximum.
template <class T>
void local_max(const Call& call) {
  local_extreme<T>(call, -std::numeric_limits<T>::infinity(), largest_of<T>,
                   [](T a, T b) { return a > b || a != a ? a : b; });
}
/// The minimum, which what is no number is, too.
template <class T>
void local_min(const Call& call) {
  local_extreme<T>(call, std::numeric_limits<T>::infinity(), smallest_of<T>,
                   [](T a, T b) { return a < b || a != a ? a : b; });
}
/// (x, max): how many elements of the rank's part equal the maximum.
template <class T>
void count_maxima(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  const Walk<2> walk = together(x, reduced(x, call.ints));
  const Index n = walk.extent(), step = walk.step(1);
  set(out.as<T>(), out.elements(), T{0});
  for (auto at = walk.rows(); at; ++at) {
    const T* row = x.as<const T>() + at[0];
    const T* largest = call.operands[1].as<const T>() + at[1];
    T* count = out.as<T>() + at[1];
    for (Index i = 0; i < n; ++i) count[i * step] += static_cast<T>(row[i] == largest[i * step]);
  }
}
/// (x, max, count, g): g / count where x equals max.
template <class T>
void max_gradient(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  const Walk<2> walk = together(x, reduced(x, call.ints));
  const Index n = walk.extent(), step = walk.step(1);
  for (auto at = walk.rows(); at; ++at) {
    const T* row = x.as<const T>() + at[0];
    const T *largest = call.operands[1].as<const T>() + at[1], *count = call.operands[2].as<const T>() + at[1],
            *g = call.operands[3].as<const T>() + at[1];
    fill(out.as<T>() + at[0], n, [=](Index i) {
      const T share = g[i * step] / count[i * step];
      return row[i] == largest[i * step] ? share : T{0};
    });
  }
}

}  // namespace parallel::internals::cpu
