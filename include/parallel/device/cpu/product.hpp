// One matrix product: Eigen's packing and its inner kernel, inside loops and memory of our own, or another library's.
//
// Eigen's own loops ask for new memory at every product and pack a whole wide matrix before they use it. Here rows are
// few at once, and several depths of them are packed, so that results are added to again soon, and what is packed next
// is fetched while the kernel multiplies. 256 x 50257 x 768 ran at 62 % of the FMA peak by Eigen's loops and at 79 %
// here (one core of Zen 4, with depths of 384 and before it was fetched from within the kernel), now at 86 % (Zen 5).
#pragma once
#include <parallel/device/cpu/ahead.hpp>
#include <parallel/device/cpu/packed.hpp>
#include <parallel/device/cpu/product_elsewhere.hpp>
#include <parallel/device/cpu/scratch.hpp>
#if EIGEN_VERSION_AT_LEAST(3, 4, 90)  // whose kernels for AVX-512 write past the Results below
#error "parallel: products on a CPU are made with the inner kernel of Eigen 3.4; this Eigen is newer"
#endif

namespace parallel::internals::cpu {

/// A part of a matrix: its first row and column, its extents, and the distance of rows.
struct Tile {
  Index row, column, rows, columns, stride;
};
/// What is done with every tile of a product as soon as it is complete, while it is in the cache.
struct Finish {
  void (*tile)(const Call& call, const Tile& tile) = nullptr;
  const Call* call = nullptr;
  Index row = 0, column = 0;  ///< where the product begins in what is finished

  explicit operator bool() const { return tile != nullptr; }
  void operator()(Tile done) const {
    done.row += row;
    done.column += column;
    tile(*call, done);
  }
};

/// How a product is cut, within the CPU's account; a part of it is cut as the whole is.
template <class T>
struct Tiles {
  using Traits = Eigen::internal::gebp_traits<T, T>;
  Index depth, packed_depth, columns, rows;
  Tiles(Index m, Index n, Index k)
      : depth(account::cpu::even(k, account::cpu::most_depth, account::cpu::depth_unit)),
        packed_depth(account::cpu::packed_depth(depth)),
        columns(account::cpu::even(n, account::cpu::most_columns(sizeof(T)), Traits::mr)),
        rows(account::cpu::even(m, account::cpu::most_rows(sizeof(T)), Traits::nr)) {
    static_assert(
        account::cpu::column_unit(sizeof(T)) % Traits::mr == 0 && account::cpu::row_unit % Traits::nr == 0,
        "parallel: Eigen has other registers on this machine than account/cpu.hpp allows for; enlarge its units");
  }
};

/// What Eigen's kernel adds its sums to. The first sums of a result are added to zero, whatever stands there, so
/// nothing is set before; and whenever the kernel begins a few columns of results, some of what comes next is fetched.
template <class T>
struct Results {
  struct Sum {
    T* to;
    bool first;
    EIGEN_ALWAYS_INLINE void operator+=(T x) const { *to = (first ? T{0} : *to) + x; }
  };
  struct LinearMapper {
    T* to;
    bool first;
    Ahead* ahead;
    EIGEN_ALWAYS_INLINE void prefetch(Index i) const {
      Eigen::internal::prefetch(to + i);
      ahead->fetch();
    }
    template <class Packet>
    EIGEN_ALWAYS_INLINE Packet loadPacket(Index i) const {
      return first ? Eigen::internal::pset1<Packet>(T{0}) : Eigen::internal::ploadu<Packet>(to + i);
    }
    template <class Packet>
    EIGEN_ALWAYS_INLINE void storePacket(Index i, const Packet& p) const {
      Eigen::internal::pstoreu(to + i, p);
    }
  };
  T* to;
  Index stride;
  bool first;
  Ahead* ahead;

  EIGEN_ALWAYS_INLINE T* at(Index i, Index j) const { return to + i + j * stride; }
  EIGEN_ALWAYS_INLINE LinearMapper getLinearMapper(Index i, Index j) const { return {at(i, j), first, ahead}; }
  EIGEN_ALWAYS_INLINE Sum operator()(Index i, Index j) const { return {at(i, j), first}; }
  template <class Packet>
  EIGEN_ALWAYS_INLINE Packet gatherPacket(Index i, Index j) const {
    return first ? Eigen::internal::pset1<Packet>(T{0}) : Eigen::internal::pgather<T, Packet>(at(i, j), stride);
  }
  template <class Packet>
  EIGEN_ALWAYS_INLINE void scatterPacket(Index i, Index j, const Packet& p) const {
    Eigen::internal::pscatter<T, Packet>(at(i, j), p, stride);
  }
};

/// out[m, n] = factor * left[m, k] * right[k, n]. Eigen's kernel takes matrices by columns, hence all is transposed:
/// out^T = right^T * left^T.
template <class T, int left_order, int right_order>
void multiply_packed(const Tiles<T>& tiles, Index m, Index n, Index k, T factor, const Matrix<const T>& left,
                     const Matrix<const T>& right, const Matrix<T>& out, bool add, const Finish& finish,
                     const Panels<T>& kept) {
  using namespace Eigen::internal;
  using Traits = gebp_traits<T, T>;
  using Left = const_blas_data_mapper<T, Index, left_order>;
  using Right = const_blas_data_mapper<T, Index, right_order>;
  gemm_pack_lhs<T, Index, Right, Traits::mr, Traits::LhsProgress, typename Traits::LhsPacket4Packing, right_order>
      pack_right;
  gemm_pack_rhs<T, Index, Left, Traits::nr, left_order, false, true> pack_left;
  gebp_kernel<T, T, Index, Results<T>, Traits::mr, Traits::nr, false, false> multiply_tile;

  const Left from_left(left.data, left.stride);
  const Right from_right(right.data, right.stride);
  const Index line = 64 / static_cast<Index>(sizeof(T)),
              room = (std::min(tiles.columns, n) * tiles.depth + line - 1) / line * line,
              all = room + std::min(tiles.rows, m) * std::min(tiles.packed_depth, k);
  T* const right_tile = scratch<Purpose::packing, T>(static_cast<std::size_t>(all));
  T* const left_rows = right_tile + room;
  // A transposed one is read across its rows, four numbers of each: of 16 rows, the lines are still in the first cache
  // for the next four.
  const Index at_once = left.transposed ? 16 : tiles.depth;
  const auto rows_at = [&](Index i) { return std::min(tiles.rows, m - i); };
  const auto columns_at = [&](Index j) { return std::min(tiles.columns, n - j); };
  const auto depth_at = [&](Index l) { return std::min(tiles.depth, k - l); };

  for (Index i = 0; i < m; i += tiles.rows) {
    const Index rows = rows_at(i);
    for (Index from = 0; from < k; from += tiles.packed_depth) {
      const Index end = std::min(from + tiles.packed_depth, k);
      const auto packed = [&](Index l) { return left_rows + rows * (l - from); };
      for (Index j = 0; j < n; j += tiles.columns) {
        const Index columns = columns_at(j);
        for (Index l = from; l < end; l += tiles.depth) {
          const Index depth = depth_at(l);
          if (j == 0)
            for (Index d = 0; d < depth; d += at_once)
              pack_left(packed(l), from_left.getSubMapper(l + d, i), std::min(at_once, depth - d), rows, depth, d);
          T* const panel = kept ? kept.tile(l, j, columns, k) : right_tile;
          if (!kept.packed) pack_right(panel, from_right.getSubMapper(j, l), depth, columns);
          Ahead ahead;
          const auto next = [&](Index next_i, Index next_j, Index next_l) {
            const Index next_depth = depth_at(next_l), next_columns = columns_at(next_j);
            if (kept.packed)
              ahead.add(Matrix<const T>{kept.tile(next_l, next_j, next_columns, k)}, 0, 0, 1,
                        next_depth * next_columns);
            else
              ahead.add(right, next_l, next_j, next_depth, next_columns);
            if (next_j == 0) ahead.add(left, next_i, next_l, rows_at(next_i), depth_at(next_l));
          };
          if (l + depth < end)
            next(i, j, l + depth);
          else if (j + columns < n)
            next(i, j + columns, from);
          else if (end < k)
            next(i, 0, end);
          else if (i + rows < m)
            next(i + rows, 0, 0);
          ahead.in_calls(rows * std::max<Index>(1, columns / Traits::mr));
          constexpr Index strip = 32 * Traits::nr;  // few enough rows that what is finished is still in the cache
          for (Index row = 0; row < rows; row += strip) {
            const Index some = std::min(strip, rows - row);
            multiply_tile({out.data + (i + row) * out.stride + j, out.stride, l == 0 && !add, &ahead}, panel,
                          packed(l) + row * depth, columns, depth, some, factor);
            if (finish && l + depth == k) finish({i + row, j, some, columns, out.stride});
          }
        }
      }
    }
  }
}

/// out[m, n] = factor * left[m, k] * right[k, n], or added to what stands there. `out` does not lie transposed. `kept`:
/// where the right one is kept packed.
template <class T>
void multiply(const Tiles<T>& tiles, Index m, Index n, Index k, T factor, const Matrix<const T>& left,
              const Matrix<const T>& right, const Matrix<T>& out, bool add = false, const Finish& finish = {},
              const Panels<T>& kept = {}) {
  constexpr int straight = Eigen::ColMajor, transposed = Eigen::RowMajor;  // of the transposes
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (Index i = 0; i < m && !add; ++i) set(out.data + i * out.stride, n, T{0});
    if (finish) finish({0, 0, m, n, out.stride});
  } else if (multiplied_elsewhere(m, n, k, factor, left, right, out, add)) {
    if (finish) finish({0, 0, m, n, out.stride});
  } else if (!left.transposed && !right.transposed) {
    multiply_packed<T, straight, straight>(tiles, m, n, k, factor, left, right, out, add, finish, kept);
  } else if (!left.transposed) {
    multiply_packed<T, straight, transposed>(tiles, m, n, k, factor, left, right, out, add, finish, kept);
  } else if (!right.transposed) {
    multiply_packed<T, transposed, straight>(tiles, m, n, k, factor, left, right, out, add, finish, kept);
  } else {
    multiply_packed<T, transposed, transposed>(tiles, m, n, k, factor, left, right, out, add, finish, kept);
  }
}
template <class T>
void multiply(Index m, Index n, Index k, T factor, const Matrix<const T>& left, const Matrix<const T>& right,
              const Matrix<T>& out, bool add = false, const Finish& finish = {}) {
  multiply<T>(Tiles<T>(m, n, k), m, n, k, factor, left, right, out, add, finish);
}

}  // namespace parallel::internals::cpu
