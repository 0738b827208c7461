// A matrix product of what lies in the first caches already, as attention's: nothing is packed, as that would take as
// long as some of the product. Every result is summed in the order of what is contracted, so a row has the same bits
// whatever rows stand beside it.
#pragma once
#include <utility>

#include <parallel/device/cpu/array.hpp>
#include <parallel/device/cpu/product_elsewhere.hpp>

namespace parallel::internals::cpu {

/// So deep what stands on the right stays in the first cache for all rows; a deeper product is one of parts, whose sums
/// are added up.
inline constexpr Index depth_in_cache = 128;

/// So many numbers in a register, or one.
template <class T, int width>
struct PacketOf {
  using Type = typename Eigen::internal::find_best_packet<T, width>::type;
};
template <class T>
struct PacketOf<T, 1> {
  using Type = T;
};

/// Some rows of a product, and packets of its columns, whose sums stay in registers. left[r, l] stands at
/// left[r * left_row + l * left_step].
template <int width, int rows, int packets, class T>
void multiply_in_registers(Index k, T factor, const T* left, Index left_row, Index left_step, const T* right,
                           Index right_stride, T* out, Index out_stride, bool add) {
  using namespace Eigen::internal;
  using Packet = typename PacketOf<T, width>::Type;
  const auto each_packet = [](auto f) __attribute__((always_inline)) {
    [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
      (f(std::integral_constant<int, i / packets>{}, std::integral_constant<int, i % packets>{}), ...);
    }
    (std::make_integer_sequence<int, rows * packets>{});
  };
  Packet sums[std::size_t{rows}][std::size_t{packets}];
  each_packet([&](auto r, auto p) __attribute__((always_inline)) { sums[r][p] = pset1<Packet>(T{0}); });
  for (Index l = 0; l < k; ++l, left += left_step, right += right_stride) {
    Packet own[std::size_t{packets}], factors[std::size_t{rows}];
    each_packet([&](auto r, auto p) __attribute__((always_inline)) {
      if constexpr (r == 0) own[p] = ploadu<Packet>(right + p * width);
      if constexpr (p == 0) factors[r] = pset1<Packet>(left[r * left_row]);
    });
    each_packet([&](auto r, auto p)
                    __attribute__((always_inline)) { sums[r][p] = pmadd(factors[r], own[p], sums[r][p]); });
  }
  const Packet by = pset1<Packet>(factor);
  each_packet([&](auto r, auto p) __attribute__((always_inline)) {
    T* const to = out + r * out_stride + p * width;
    pstoreu(to, add ? pmadd(by, sums[r][p], ploadu<Packet>(to)) : pmul(by, sums[r][p]));
  });
}

/// out[m, n] = factor * left[m, k] * right[k, n], or added to what stands there. `right` and `out` do not lie
/// transposed.
template <class T>
void multiply_in_cache(Index m, Index n, Index k, T factor, const Matrix<const T>& left, const Matrix<const T>& right,
                       const Matrix<T>& out, bool add) {
  constexpr int widest = Eigen::internal::packet_traits<T>::size;
  const Index left_row = left.transposed ? 1 : left.stride, left_step = left.transposed ? left.stride : 1;
  Index l = 0;
  do {
    const Index some = std::min(depth_in_cache, k - l);
    Index j = 0;
    const auto columns = [&]<int width, int packets>(std::integer_sequence<int, width, packets>) {
      constexpr int rows = packets == 1 || EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 8 : 4;
      Index i = 0;
      const auto so_many_rows = [&]<int at_once>(std::integral_constant<int, at_once>, const auto& self) -> void {
        for (; i + at_once <= m; i += at_once)
          multiply_in_registers<width, at_once, packets>(
              some, factor, left.data + i * left_row + l * left_step, left_row, left_step,
              right.data + l * right.stride + j, right.stride, out.data + i * out.stride + j, out.stride, add || l > 0);
        if constexpr (at_once > 1) self(std::integral_constant<int, at_once / 2>{}, self);
      };
      for (; j + width * packets <= n; j += width * packets, i = 0)
        so_many_rows(std::integral_constant<int, rows>{}, so_many_rows);
    };
    const auto rest = [&]<int width>(std::integral_constant<int, width>, const auto& self) -> void {
      columns(std::integer_sequence<int, width, 1>{});
      constexpr int next = width * static_cast<int>(sizeof(T)) > 16 ? width / 2 : 1;  // 16: a register has no fewer
      if constexpr (next < width) self(std::integral_constant<int, next>{}, self);
    };
    columns(std::integer_sequence<int, widest, 2>{});
    rest(std::integral_constant<int, widest>{}, rest);
    l += some;
  } while (l < k);
}

/// to[j, i] = from[i, j].
template <class T>
void transpose(const T* from, Index from_stride, T* to, Index to_stride, Index rows, Index columns) {
  constexpr int width = Eigen::internal::packet_traits<T>::size;  // so large Eigen transposes a matrix in registers
  using Square = Eigen::Matrix<T, width, width>;
  using Stride = Eigen::OuterStride<>;
  for (Index i = 0; i < rows; i += width)
    for (Index j = 0; j < columns; j += width)
      if (const Index n = std::min<Index>(width, rows - i), m = std::min<Index>(width, columns - j);
          n == width && m == width) {
        Square square = Eigen::Map<const Square, 0, Stride>(from + i * from_stride + j, Stride(from_stride));
        square.transposeInPlace();
        Eigen::Map<Square, 0, Stride>(to + j * to_stride + i, Stride(to_stride)) = square;
      } else {
        for (Index r = i; r < i + n; ++r)
          for (Index c = j; c < j + m; ++c) to[c * to_stride + r] = from[r * from_stride + c];
      }
}

}  // namespace parallel::internals::cpu
