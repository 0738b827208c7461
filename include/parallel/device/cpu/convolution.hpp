// Convolutions as matrix products: of an example some rows of windows' elements, unfolded for some places at a time,
// which stay in the cache.
#pragma once
#include <parallel/device/cpu/product.hpp>
#include <parallel/device/sliding.hpp>

namespace parallel::internals::cpu {

/// Calls body(row, y, from, to, x): the places from..to of row y of places that a rank asks of row `row` of the
/// unfolded matrix, whose first lies at x; the others of that row of places lie in the padding, x is then anything.
template <class Body>
void each_unfolded(const Sliding& s, Index first_row, Index rows, Index first, Index count, Body body) {
  for (Index row = first_row; row < first_row + rows; ++row) {
    const Index channel = row / s.window(), i = row / s.width.window % s.height.window, j = row % s.width.window;
    for (Index place = first; place < first + count;) {
      const Index y = place / s.width.places, begin = place - y * s.width.places,
                  end = std::min(s.width.places, begin + first + count - place), line = s.height.at(y, i);
      const bool inside = s.height.holds(line);
      const Index from = inside ? std::clamp(s.width.first(j), begin, end) : end,
                  to = inside ? std::clamp(s.width.last(j), from, end) : end;
      const Index x = (channel * s.height.extent + line) * s.width.extent + s.width.at(from, j);
      body((row - first_row) * count + place - first, end - begin, from - begin, to - begin, x);
      place += end - begin;
    }
  }
}
/// Rows of the matrix whose column is a place and whose row is an element of a window of x, one example.
template <class T>
void unfold(const Sliding& s, const T* x, Index first_row, Index rows, Index first, Index count, T* to) {
  each_unfolded(s, first_row, rows, first, count, [&](Index at, Index n, Index from, Index end, Index source) {
    T* const row = to + at;
    std::fill(row, row + from, T{0});
    if (s.width.stride == 1)
      std::copy_n(x + source, end - from, row + from);
    else
      for (Index p = from; p < end; ++p) row[p] = x[source + (p - from) * s.width.stride];
    std::fill(row + end, row + n, T{0});
  });
}
/// Adds such rows to what they are of.
template <class T>
void fold(const Sliding& s, const T* rows_of, Index first_row, Index rows, Index first, Index count, T* x) {
  each_unfolded(s, first_row, rows, first, count, [&](Index at, Index, Index from, Index end, Index target) {
    const T* const row = rows_of + at;
    for (Index p = from; p < end; ++p) x[target + (p - from) * s.width.stride] += row[p];
  });
}
/// Calls body(row, rows, place, places) for pieces of the unfolded matrix within the account.
template <class Body>
void each_piece(const Sliding& s, Body body) {
  in_chunks(
      s.channels * s.window(),
      [&](Index row, Index rows) {
        in_chunks(
            s.places(), [&](Index place, Index places) { body(row, rows, place, places); }, account::cpu::most_places);
      },
      account::cpu::most_unfolded);
}
template <class T>
T* unfolded_scratch(const Sliding& s) {
  return scratch<Purpose::unfolded, T>(
      static_cast<std::size_t>(std::min(s.channels * s.window(), account::cpu::most_unfolded) *
                               std::min(s.places(), account::cpu::most_places)));
}

/// (x, weight)
template <class T>
void convolution(const Call& call) {
  const View &x = call.operands[0], &weight = call.operands[1], &y = call.results[0];
  const Sliding s(x, weight, y, call.ints);
  T* const unfolded = unfolded_scratch<T>(s);
  const Index depth = s.channels * s.window();
  for (Index n = 0; n < s.batch; ++n)
    each_piece(s, [&](Index row, Index rows, Index place, Index places) {
      unfold(s, x.as<const T>() + n * s.channels * s.plane(), row, rows, place, places, unfolded);
      multiply<T>(s.out, places, rows, 1, {weight.as<const T>() + row, depth}, {unfolded, places},
                  {y.as<T>() + n * s.out * s.places() + place, s.places()}, row > 0);
    });
}
/// (y, weight)
template <class T>
void transposed_convolution(const Call& call) {
  const View &y = call.operands[0], &weight = call.operands[1], &x = call.results[0];
  const Sliding s(x, weight, y, call.ints);
  T* const unfolded = unfolded_scratch<T>(s);
  const Index depth = s.channels * s.window();
  set(x.as<T>(), x.elements(), T{0});
  for (Index n = 0; n < s.batch; ++n)
    each_piece(s, [&](Index row, Index rows, Index place, Index places) {
      multiply<T>(rows, places, s.out, 1, {weight.as<const T>() + row, depth, true},
                  {y.as<const T>() + n * s.out * s.places() + place, s.places()}, {unfolded, places});
      fold(s, unfolded, row, rows, place, places, x.as<T>() + n * s.channels * s.plane());
    });
}
/// (x, y)
template <class T>
void convolution_weight(const Call& call) {
  const View &x = call.operands[0], &y = call.operands[1], &weight = call.results[0];
  const Sliding s(x, weight, y, call.ints);
  T* const unfolded = unfolded_scratch<T>(s);
  const Index depth = s.channels * s.window();
  set(weight.as<T>(), weight.elements(), T{0});
  for (Index n = 0; n < s.batch; ++n)
    each_piece(s, [&](Index row, Index rows, Index place, Index places) {
      unfold(s, x.as<const T>() + n * s.channels * s.plane(), row, rows, place, places, unfolded);
      multiply<T>(s.out, rows, places, 1, {y.as<const T>() + n * s.out * s.places() + place, s.places()},
                  {unfolded, places, true}, {weight.as<T>() + row, depth}, true);
    });
}

}  // namespace parallel::internals::cpu
