// Along one dimension: where the largest and smallest elements stand, the k largest, sums up to each element. A warp or
// a block has a row, by its length alone.
#pragma once
#include <algorithm>
#include <limits>

#include <parallel/device/cuda/body/row.hpp>
#include <parallel/device/cuda/operation/elementwise.hpp>

namespace parallel::internals::cuda {

/// Whether a stands before b from the largest on, or the smallest: what is no number comes first.
struct LargestFirst {
  template <class W>
  PARALLEL_DEVICE static bool before(W a, W b) {
    return a > b || (a != a && b == b);
  }
};
struct SmallestFirst {
  template <class W>
  PARALLEL_DEVICE static bool before(W a, W b) {
    return a < b || (a != a && b == b);
  }
};
/// An element and its position, -1 of none. A sum of two is the one that comes first.
template <class W, class Order>
struct Placed {
  W value{};
  int at = -1;
  PARALLEL_DEVICE bool comes_before(const Placed& other) const {
    if (at < 0 || other.at < 0) return at >= 0;
    return Order::before(value, other.value) || (!Order::before(other.value, value) && at < other.at);
  }
  PARALLEL_DEVICE friend Placed operator+(const Placed& a, const Placed& b) { return a.comes_before(b) ? a : b; }
};
#if defined(__CUDACC__)
template <class W, class Order>
__device__ Placed<W, Order> of_lane(const Placed<W, Order>& own, int apart) {
  return {of_lane(own.value, apart), of_lane(own.at, apart)};
}
#endif

template <class T, class Order>
struct Position {
  static constexpr int threads = 512, n = 1;
  const T* x;
  int* out;
  Rows rows;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index, begin = rows.begin(r);
    const auto first = block.template sum<Placed<Wide<T>, Order>>(rows.length, [&](Index i) {
      return Placed<Wide<T>, Order>{widen(x[begin + i * rows.inner]), static_cast<int>(i)};
    });
    block.each(1, [&](Index) { out[r] = first.at; });
  }
};
template <class Order>
void position(const Call& call) {
  const View& x = call.operands[0];
  with_type(x.dtype, [&]<class T>(T) {
    launch_rows(call, Position<T, Order>{x.as<const T>(), call.results[0].as<int>(),
                                         Rows::of<1>(x, static_cast<int>(call.ints[0]))});
  });
}
/// At which position of dimension ints[0] the largest element stands, of equal ones the first. Reads every element
/// once.
inline void argmax(const Call& call) { position<LargestFirst>(call); }
inline void argmin(const Call& call) { position<SmallestFirst>(call); }

template <class T>
struct FirstEqual {
  static constexpr int threads = 512, n = 1;
  const T *x, *extreme;
  double* out;
  Rows rows;
  Index first;  ///< position of the part in the full tensor
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index, begin = rows.begin(r);
    const Wide<T> wanted = widen(extreme[r]);
    const double none = -std::numeric_limits<double>::infinity();
    const double found = block.maximum(rows.length, none, [&](Index i) {
      const Wide<T> value = widen(x[begin + i * rows.inner]);
      return value == wanted || (value != value && wanted != wanted) ? -static_cast<double>(first + i) : none;
    });
    block.each(1, [&](Index) { out[r] = found; });
  }
};
/// (x, extreme): minus the position in the full tensor of the first element that equals it, -infinity of none.
inline void first_equal(const Call& call) {
  const View& x = call.operands[0];
  const int dim = static_cast<int>(call.ints[0]);
  with_type(x.dtype, [&]<class T>(T) {
    launch_rows(call, FirstEqual<T>{x.as<const T>(), call.operands[1].as<const T>(), call.results[0].as<double>(),
                                    Rows::of<1>(x, dim), x.offset[dim]});
  });
}
struct PositionOf {
  const double* x;
  int* out;
  PARALLEL_DEVICE void operator()(Index i) const { out[i] = static_cast<int>(-x[i]); }
};
inline void position_of(const Call& call) {
  launch_each(gpu(call).stream(), call.results[0].elements(),
              PositionOf{call.operands[0].as<const double>(), call.results[0].as<int>()});
}

/// Each thread adds up a piece of the row; then it adds to it what is before.
template <class T>
struct CumulativeSum {
  static constexpr int threads = 512, n = 1;
  using Sum = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
  const T* x;
  T* out;
  Rows rows;
  bool from_end;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index begin = rows.begin(block.index), piece = blocks_of(rows.length, Block::threads);
    Sum* const sums = block.template shared<Sum>();
    const auto at = [&](Index i) { return begin + (from_end ? rows.length - 1 - i : i) * rows.inner; };
    const auto end_of = [&](Index t) { return (t + 1) * piece < rows.length ? (t + 1) * piece : rows.length; };
    block.each(Block::threads, [&](Index t) {
      Sum sum = 0;
      for (Index i = t * piece; i < end_of(t); ++i) sum += static_cast<Sum>(widen(x[at(i)]));
      sums[t] = sum;
    });
    block.sync();
    block.each(1, [&](Index) {
      Sum before = 0;
      for (int t = 0; t < Block::threads; ++t) {
        const Sum own = sums[t];
        sums[t] = before;
        before += own;
      }
    });
    block.sync();
    block.each(Block::threads, [&](Index t) {
      Sum sum = sums[t];
      for (Index i = t * piece; i < end_of(t); ++i) {
        sum += static_cast<Sum>(widen(x[at(i)]));
        out[at(i)] = narrow<T>(sum);
      }
    });
  }
};
/// Reads every element twice and writes each once.
template <class T>
void cumulative_sum(const Call& call) {
  using Body = CumulativeSum<T>;
  const View& x = call.operands[0];
  const Body body{x.as<const T>(), call.results[0].as<T>(), Rows::of<1>(x, static_cast<int>(call.ints[0])),
                  call.ints[1] != 0};
  const int threads = by_warp(body.rows.length) ? Warp::threads : Body::threads;
  launch_rows(call, body.rows.count, body.rows.length, body, static_cast<std::size_t>(threads) * sizeof(double));
}

/// One after the other: of those that come behind the one before, the first. The row stays in the caches.
template <class T>
struct TopK {
  static constexpr int threads = 512, n = 1;
  using Best = Placed<Wide<T>, LargestFirst>;
  const T* x;
  int* out;
  Rows rows;
  Index k;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index, begin = rows.begin(r);
    const Index to = r / rows.inner * k * rows.inner + r % rows.inner;
    Best last;
    for (Index found = 0; found < k; ++found) {
      const Best before = last;
      last = block.template sum<Best>(rows.length, [&](Index i) {
        const Best own{widen(x[begin + i * rows.inner]), static_cast<int>(i)};
        return before.at < 0 || before.comes_before(own) ? own : Best{};
      });
      const int position = last.at;
      block.each(1, [&](Index) { out[to + found * rows.inner] = position; });
    }
  }
};
/// The positions of the ints[1] largest along dimension ints[0], the largest first. Reads every element ints[1] times.
inline void top_k(const Call& call) {
  const View& x = call.operands[0];
  with_type(x.dtype, [&]<class T>(T) {
    launch_rows(call, TopK<T>{x.as<const T>(), call.results[0].as<int>(),
                              Rows::of<1>(x, static_cast<int>(call.ints[0])), call.ints[1]});
  });
}

/// Where the elements that were chosen lie: element i of the few in a row of many.
struct ChosenFrom {
  Index few, many, inner;  ///< elements of a row that are chosen, and all; how far apart they lie
  static ChosenFrom of(const View& some, const View& all, std::int64_t dim) {
    return {some.size[dim], all.size[dim], all.extent(static_cast<int>(dim) + 1, all.rank)};
  }
  PARALLEL_DEVICE Index at(Index i, int position) const {
    return (i / (few * inner) * many + position) * inner + i % inner;
  }
};
template <class T>
struct Chosen {
  const T* x;
  const int* positions;
  T* out;
  ChosenFrom from;
  PARALLEL_DEVICE void operator()(Index i) const { out[i] = x[from.at(i, positions[i])]; }
};
/// (x, positions): the elements at these positions of dimension ints[0].
template <class T>
void chosen(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  launch_each(
      gpu(call).stream(), out.elements(),
      Chosen<T>{x.as<const T>(), call.operands[1].as<const int>(), out.as<T>(), ChosenFrom::of(out, x, call.ints[0])});
}
template <class T>
struct ChosenGradient {
  const int* positions;
  const T* g;
  T* out;
  ChosenFrom from;
  PARALLEL_DEVICE void operator()(Index i) const { out[from.at(i, positions[i])] = g[i]; }
};
template <class T>
struct ZeroEach {
  T* out;
  PARALLEL_DEVICE void operator()(Index i) const { out[i] = narrow<T>(0.0f); }
};
/// (positions, g): g at these positions of dimension ints[0], no two of which are the same, and 0 elsewhere.
template <class T>
void chosen_gradient(const Call& call) {
  const View &g = call.operands[1], &out = call.results[0];
  launch_each(gpu(call).stream(), out.elements(), ZeroEach<T>{out.as<T>()});
  launch_each(gpu(call).stream(), g.elements(),
              ChosenGradient<T>{call.operands[0].as<const int>(), g.as<const T>(), out.as<T>(),
                                ChosenFrom::of(g, out, call.ints[0])});
}

}  // namespace parallel::internals::cuda
