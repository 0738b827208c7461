// Layer norm and RMS norm of whole rows in one kernel forward and one backward, behind which a small one adds up the
// blocks' sums. A row is read once, to shared memory; one too long for that is read again. Sums have the order of those
// of the parts.
#pragma once
#include <parallel/device/cuda/operation/norm.hpp>

namespace parallel::internals::cuda {

template <class T, bool kept>
struct NormRows {
  static constexpr int threads = 256, n = pack_elements<T>;
  using W = Wide<T>;
  const T* x;
  Reals<W> gain, shift;
  T* out;
  W *mean, *variance;  // mean: or none
  Rows rows;
  W share, epsilon;
  template <class Group>
  PARALLEL_DEVICE void operator()(const Group& group) const {
    const Index r = group.index, begin = rows.begin(r);
    Row<T> row{x + begin};
    if constexpr (kept) {
      Copies copies;
      row = copied_row<n>(group, copies, rows, row, group.template shared<T>());
      copies.wait();
    }
    const auto mean_of = [&](auto f) { return share * sum_along<W, n>(group, rows, rows.length, f, row); };
    const W center = mean != nullptr ? mean_of([](W a) { return a; }) : W{0};
    const W squares = mean_of([=](W a) { return (a - center) * (a - center); }),
            inverse = W{1} / std::sqrt(squares + epsilon);
    group.each(1, [&](Index) {
      if (mean != nullptr) mean[r] = center;
      variance[r] = squares;
    });
    normalize_row<n>(group, rows, out + begin, row, center, inverse, gain, shift);
  }
};

/// bytes that a block has on every GPU with tensor cores for bf16
inline constexpr std::size_t most_shared = 96 << 10;
/// Runs make(kept), a body that copies so many rows for each one to shared memory or, where they do not fit, reads them
/// again.
template <class T, class Make>
void launch_kept_rows(const Call& call, const Rows& rows, int copies, Make make) {
  const Index packs = rows.packs<pack_elements<T>>();
  const auto bytes = static_cast<std::size_t>(copies * packs * 16);
  if (by_warp(packs) || bytes <= most_shared)
    launch_rows(call, rows.count, packs, make(std::true_type{}), bytes);
  else
    launch(gpu(call).stream(), rows.count, make(std::false_type{}));
}

/// (x, gain, shift): the normalized rows, mean and variance; (x, gain): the normalized rows and the mean of squares.
/// Floor: 2 + 2 bytes.
template <class T>
void norm_rows(const Call& call) {
  const bool centered = call.operands.size() == 3;
  const View &x = call.operands[0], &gain = call.operands[1], &shift = call.operands[centered ? 2 : 1];
  using W = Wide<T>;
  const Rows rows = Rows::of<pack_elements<T>>(x, x.rank - 1, gain, shift, call.results[0]);
  launch_kept_rows<T>(call, rows, 1, [&]<bool kept>(std::bool_constant<kept>) {
    return NormRows<T, kept>{x.as<const T>(),
                             Reals<W>::of(gain),
                             centered ? Reals<W>::of(shift) : Reals<W>{},
                             call.results[0].as<T>(),
                             centered ? call.results[1].as<W>() : nullptr,
                             call.results[centered ? 2 : 1].as<W>(),
                             rows,
                             static_cast<W>(call.reals[0]),
                             static_cast<W>(call.reals[1])};
  });
}

template <class T, bool kept>
struct NormRowsGradient {
  static constexpr int threads = 256, n = pack_elements<T>;
  using W = Wide<T>;
  const T *g, *x;
  Moments<W> moments;
  Reals<W> gain;
  T* out;
  Rows rows;
  W share;
  template <class Group>
  PARALLEL_DEVICE void operator()(const Group& group) const {
    row(group, group.index, [](Index, W, W) {});
  }
  /// One row; take(column, g, xhat) is called for all of it, and for what is missing in its last pack, always by the
  /// same thread for a column.
  template <class Group, class Take>
  PARALLEL_DEVICE void row(const Group& group, Index r, Take take) const {
    const Index begin = rows.begin(r);
    const W center = moments.center(r), inverse = moments.inverse(r);
    Row<T> of_g{g + begin}, of_x{x + begin};
    if constexpr (kept) {
      T* const room = group.template shared<T>();
      Copies copies;
      of_g = copied_row<n>(group, copies, rows, of_g, room);
      of_x = copied_row<n>(group, copies, rows, of_x, room + rows.packs<n>() * n);
      copies.wait();
    }
    const auto sums = sum_along<Several<W, 2>, n>(
        group, rows, rows.length,
        [=](W a, W b, W c) {
          return Several<W, 2>{{a * b, a * b * (c - center)}};
        },
        of_g, gain, of_x);
    const W plain = moments.mean.data != nullptr ? share * sums.of[0] : W{0},
            slope = share * inverse * sums.of[1] * inverse;
    map_along<n>(
        group, rows, out + begin,
        [=](Index i, W a, W b, W c) {
          take(i, a, (c - center) * inverse);
          return (a * b - plain - (c - center) * slope) * inverse;
        },
        of_g, gain, of_x);
  }
};

/// A slice of the rows, with the sums of its columns, of g xhat and of g, in shared memory. `warps`: each warp has rows
/// and sums of its own.
template <class T, bool warps>
struct NormSlice {
  static constexpr int threads = 256, n = pack_elements<T>, sums = 2, teams = warps ? threads / Warp::threads : 1;
  using W = Wide<T>;
  NormRowsGradient<T, true> norm;
  Index of_slice, slices;
  W* partial;  ///< [sum][slice][column]

  /// Of a team's shared memory: a row of g, one of x, and [sum][column of a pack][pack], so that neighbours meet
  /// neighbouring sums.
  PARALLEL_DEVICE static std::size_t bytes_of_rows(Index packs) { return static_cast<std::size_t>(packs * 2 * 16); }
  PARALLEL_DEVICE static std::size_t bytes(Index packs) {
    return bytes_of_rows(packs) + static_cast<std::size_t>(packs * sums * n) * sizeof(W);
  }
  static bool fits(Index packs) { return (!warps || by_warp(packs)) && teams * bytes(packs) <= most_shared; }

  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Rows& rows = norm.rows;
    const Index packs = rows.packs<n>(), begin = block.index * of_slice,
                end = begin + of_slice < rows.count ? begin + of_slice : rows.count;
    const auto go = [&](const auto& group, Index team) {
      W* const found = group.template shared<W>(bytes_of_rows(packs));
      group.each(packs, [&](Index p) {
        for (int i = 0; i < sums * n; ++i) found[i * packs + p] = 0;
      });
      for (Index r = begin + team; r < end; r += teams)
        norm.row(group, r, [=](Index i, W a, W xhat) {
          const Index at = i % n * packs + i / n;
          found[at] += a * xhat;
          found[n * packs + at] += a;
        });
    };
    if constexpr (warps)
      block.each_warp([&](const Warp& warp) { go(warp, warp.index % teams); }, bytes(packs));
    else
      go(block, 0);
    block.sync();
    block.each(rows.length, [&](Index i) {
      for (int k = 0; k < sums; ++k) {
        W all = 0;
        for (std::size_t team = 0; team < teams; ++team)
          all += block.template shared<W>(team * bytes(packs) + bytes_of_rows(packs))[(k * n + i % n) * packs + i / n];
        partial[(k * slices + block.index) * rows.length + i] = all;
      }
    });
  }
};

/// (g, x, variance, gain[, mean]): the gradients of x and, where there are results for them, of gain and shift. Floor:
/// 2 + 2 + 2 bytes.
template <class T>
void norm_rows_gradient(const Call& call) {
  const bool centered = call.operands.size() == 5;
  const View &g = call.operands[0], &x = call.operands[1], &gain = call.operands[3];
  using W = Wide<T>;
  constexpr int n = pack_elements<T>;
  const Rows rows = Rows::of<n>(x, x.rank - 1, g, gain, call.results[0]);
  const auto moments = Moments<W>::of(call, 2, centered ? 4 : -1);
  const auto make = [&]<bool kept>(std::bool_constant<kept>) {
    return NormRowsGradient<T, kept>{g.as<const T>(),
                                     x.as<const T>(),
                                     moments,
                                     Reals<W>::of(gain),
                                     call.results[0].as<T>(),
                                     rows,
                                     static_cast<W>(call.reals[0])};
  };
  if (call.results.size() == 1) return launch_kept_rows<T>(call, rows, 2, make);
  T* const to[]{call.results[1].as<T>(), centered ? call.results[2].as<T>() : nullptr};
  const auto with_sums = [&]<bool warps>(std::bool_constant<warps>) {
    using Body = NormSlice<T, warps>;
    if (!Body::fits(rows.packs<n>())) return false;
    constexpr Index least = 16, most_slices = 512;
    const Slices slices = Slices::of<W>(rows.count, rows.length, Body::sums, least, most_slices);
    W* const partial = static_cast<W*>(gpu(call).workspace());
    launch(gpu(call).stream(), slices.count, Body{make(std::true_type{}), slices.rows, slices.count, partial},
           Body::teams * Body::bytes(rows.packs<n>()));
    add_slices(gpu(call), partial, slices.count, rows.length, to);
    return true;
  };
  if (with_sums(std::true_type{}) || with_sums(std::false_type{})) return;
  launch_kept_rows<T>(call, rows, 2, make);
  sum_columns(gpu(call), ParameterTerms<T>{g.as<const T>(), x.as<const T>(), moments, rows.length}, rows.count,
              rows.length, rows.packed, to);
}

}  // namespace parallel::internals::cuda
