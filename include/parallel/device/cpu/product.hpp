// One matrix product: Eigen's packing and its inner kernel, inside loops and memory of our own, or another library's.
//
// Eigen's own loops ask for new memory at every product and pack a whole wide matrix before they use it: the product
// with a vocabulary of 50257 then runs at 62 % of the FMA peak, here at 79 % (256 x 50257 x 768, one core of Zen 4);
// ordinary shapes are alike or better by some per cent. Rows are few at once, and several depths of them are packed, so
// that results are added to again soon: beside a program that fills the third cache, 2048 x 1536 x 384 take 0.88 of the
// time that they took by 2048 rows at once (Zen 5).
#pragma once
#include <parallel/device/cpu/product_elsewhere.hpp>
#include <parallel/device/cpu/scratch.hpp>

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
        packed_depth(account::cpu::packed_depth(m, n, depth, sizeof(T))),
        columns(account::cpu::even(n, account::cpu::most_columns(sizeof(T)), Traits::mr)),
        rows(account::cpu::even(m, account::cpu::most_rows(sizeof(T)), Traits::nr)) {
    static_assert(
        account::cpu::column_unit(sizeof(T)) % Traits::mr == 0 && account::cpu::row_unit % Traits::nr == 0,
        "parallel: Eigen has other registers on this machine than account/cpu.hpp allows for; enlarge its units");
  }
};

/// Fetches what the next tile of the right operand is packed from, some rows of memory at a time, while the present one
/// is multiplied: the memory has its latency then, and the packing finds it in the second cache.
template <class T>
class Ahead {
 public:
  /// The next tile begins at row l and column j of the operand; `pieces` calls of fetch() bring all of it.
  Ahead(const Matrix<const T>& right, Index l, Index j, Index depth, Index columns, Index pieces)
      : next_(right.data + (right.transposed ? j * right.stride + l : l * right.stride + j)),
        stride_(right.stride),
        runs_(depth <= 0 || columns <= 0 ? 0
              : right.transposed         ? columns
                                         : depth),
        run_(right.transposed ? depth : columns),
        each_((runs_ + pieces - 1) / pieces) {}
  void fetch() {
    for (Index i = std::min(each_, runs_); i > 0; --i, --runs_, next_ += stride_)
      for (Index e = 0; e < run_; e += 64 / static_cast<Index>(sizeof(T))) __builtin_prefetch(next_ + e, 0, 2);
  }

 private:
  const T* next_;
  Index stride_, runs_, run_, each_;
};

/// out[m, n] = factor * left[m, k] * right[k, n]. Eigen's kernel takes matrices by columns, hence all is transposed:
/// out^T = right^T * left^T.
template <class T, int left_order, int right_order>
void multiply_packed(const Tiles<T>& tiles, Index m, Index n, Index k, T factor, const Matrix<const T>& left,
                     const Matrix<const T>& right, const Matrix<T>& out, bool add, const Finish& finish) {
  using namespace Eigen::internal;
  using Traits = gebp_traits<T, T>;
  using Left = const_blas_data_mapper<T, Index, left_order>;
  using Right = const_blas_data_mapper<T, Index, right_order>;
  using Out = blas_data_mapper<T, Index, Eigen::ColMajor, Eigen::Unaligned, 1>;
  gemm_pack_lhs<T, Index, Right, Traits::mr, Traits::LhsProgress, typename Traits::LhsPacket4Packing, right_order>
      pack_right;
  gemm_pack_rhs<T, Index, Left, Traits::nr, left_order> pack_left;
  gebp_kernel<T, T, Index, Out, Traits::mr, Traits::nr, false, false> multiply_tile;

  const Left from_left(left.data, left.stride);
  const Right from_right(right.data, right.stride);
  const Out to(out.data, out.stride);
  const Index line = 64 / static_cast<Index>(sizeof(T)),
              room = (std::min(tiles.columns, n) * tiles.depth + line - 1) / line * line,
              all = room + std::min(tiles.rows, m) * std::min(tiles.packed_depth, k);
  T* const right_tile = scratch<Purpose::packing, T>(static_cast<std::size_t>(all));
  T* const left_rows = right_tile + room;
  const auto depth_at = [&](Index l) { return std::min(tiles.depth, k - l); };

  for (Index i = 0; i < m; i += tiles.rows) {
    const Index rows = std::min(tiles.rows, m - i);
    for (Index from = 0; from < k; from += tiles.packed_depth) {
      const Index end = std::min(from + tiles.packed_depth, k);
      const auto packed = [&](Index l) { return left_rows + rows * (l - from); };
      for (Index l = from; l < end; l += tiles.depth)
        pack_left(packed(l), from_left.getSubMapper(l, i), depth_at(l), rows);
      for (Index j = 0; j < n; j += tiles.columns) {
        const Index columns = std::min(tiles.columns, n - j);
        if (from == 0 && !add)
          for (Index row = i; row < i + rows; ++row) set(out.data + row * out.stride + j, columns, T{0});
        for (Index l = from; l < end; l += tiles.depth) {
          const Index depth = depth_at(l);
          pack_right(right_tile, from_right.getSubMapper(j, l), depth, columns);
          const bool finishes = l + depth == k && finish;
          constexpr Index strip = 4 * Traits::nr;
          const Index most = finishes ? 32 * Traits::nr : rows;  // few enough rows that they are still in the cache
          Index next_l = l + depth, next_j = j;
          if (next_l == end) next_j = j + columns == n ? 0 : j + columns;
          if (next_j > j) next_l = from;
          Ahead<T> ahead(right, next_l, next_j, depth_at(next_l), std::min(tiles.columns, n - next_j),
                         (rows + strip - 1) / strip);
          for (Index row = 0; row < rows; row += most) {
            const Index some = std::min(most, rows - row);
            for (Index r = row; r < row + some; r += strip) {
              ahead.fetch();
              multiply_tile(to.getSubMapper(j, i + r), right_tile, packed(l) + r * depth, columns, depth,
                            std::min(strip, row + some - r), factor);
            }
            if (finishes) finish({i + row, j, some, columns, out.stride});
          }
        }
      }
    }
  }
}

/// out[m, n] = factor * left[m, k] * right[k, n], or added to what stands there. `out` does not lie transposed.
template <class T>
void multiply(const Tiles<T>& tiles, Index m, Index n, Index k, T factor, const Matrix<const T>& left,
              const Matrix<const T>& right, const Matrix<T>& out, bool add = false, const Finish& finish = {}) {
  constexpr int straight = Eigen::ColMajor, transposed = Eigen::RowMajor;  // of the transposes
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (Index i = 0; i < m && !add; ++i) set(out.data + i * out.stride, n, T{0});
    if (finish) finish({0, 0, m, n, out.stride});
  } else if (multiplied_elsewhere(m, n, k, factor, left, right, out, add)) {
    if (finish) finish({0, 0, m, n, out.stride});
  } else if (!left.transposed && !right.transposed) {
    multiply_packed<T, straight, straight>(tiles, m, n, k, factor, left, right, out, add, finish);
  } else if (!left.transposed) {
    multiply_packed<T, straight, transposed>(tiles, m, n, k, factor, left, right, out, add, finish);
  } else if (!right.transposed) {
    multiply_packed<T, transposed, straight>(tiles, m, n, k, factor, left, right, out, add, finish);
  } else {
    multiply_packed<T, transposed, transposed>(tiles, m, n, k, factor, left, right, out, add, finish);
  }
}
template <class T>
void multiply(Index m, Index n, Index k, T factor, const Matrix<const T>& left, const Matrix<const T>& right,
              const Matrix<T>& out, bool add = false, const Finish& finish = {}) {
  multiply<T>(Tiles<T>(m, n, k), m, n, k, factor, left, right, out, add, finish);
}

}  // namespace parallel::internals::cpu
