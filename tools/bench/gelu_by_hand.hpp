// Bias, gelu and their gradients as one pass over a row.
#pragma once
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12 warns of its own avx512fintrin.h
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <Eigen/Core>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#include <algorithm>

namespace bench {

namespace gelus {
// gelu(h) = h s with s = 1 / (1 + exp(-2 u)), u = sqrt(2 / pi) (h + 0.044715 h^3)
inline constexpr float linear = 1.5957691216057308f, cubic = linear * 0.044715f;
inline constexpr Eigen::Index piece = 512;
using Piece = Eigen::Array<float, 1, Eigen::Dynamic, Eigen::RowMajor, 1, piece>;
using Row = Eigen::Map<Eigen::Array<float, 1, Eigen::Dynamic>>;
using ConstRow = Eigen::Map<const Eigen::Array<float, 1, Eigen::Dynamic>>;
}  // namespace gelus

/// after = gelu(before + bias); keeps before + bias.
inline void gelu_by_hand(float* before, float* after, const float* bias, Eigen::Index width) {
  using namespace gelus;
  for (Eigen::Index i = 0; i < width; i += piece) {
    const Eigen::Index n = std::min(piece, width - i);
    Row h(before + i, n);
    h += ConstRow(bias + i, n);
    Row(after + i, n) = h / (1 + (-h * (linear + cubic * h.square())).exp());
  }
}
/// g = g gelu'(before), which is added to the bias's gradient.
inline void gelu_gradient_by_hand(const float* before, float* g, float* bias_gradient, Eigen::Index width) {
  using namespace gelus;
  for (Eigen::Index i = 0; i < width; i += piece) {
    const Eigen::Index n = std::min(piece, width - i);
    const ConstRow h(before + i, n);
    const Piece s = (1 + (-h * (linear + cubic * h.square())).exp()).inverse();
    Row(g + i, n) *= s + h * s * (1 - s) * (linear + 3 * cubic * h.square());
    Row(bias_gradient + i, n) += Row(g + i, n);
  }
}

}  // namespace bench
