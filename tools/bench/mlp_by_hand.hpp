// The tensor-parallel MLP's step by hand, as Megatron-LM writes it: Eigen's products of a rank's own slices, one
// all-reduce, fused loops.
//
// This is the yardstick of the derived step, so it is what a careful engineer would write: all memory is there before
// the first step and lies on huge pages, biases, gelu and their gradients are one pass over each row behind the
// product, the loss and its gradient too, AdamW is one pass.
#pragma once
#include <malloc.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12 warns of its own avx512fintrin.h
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <Eigen/Core>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#include <cmath>

#include <parallel/device/host_memory.hpp>

namespace bench {

/// One rank's part. `AllReduce` adds n floats, or one double, of all ranks in place: all_reduce(float*, std::int64_t),
/// all_reduce(double*, 1).
template <class AllReduce>
class MlpByHand {
 public:
  using Matrix = Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, Eigen::Aligned64>;
  using Row = Eigen::Map<Eigen::Array<float, 1, Eigen::Dynamic>>;
  /// A tensor that is trained, its gradient and AdamW's state.
  struct Trained {
    Matrix value, gradient, mean, variance;
    bool split;  ///< each rank has a slice, so that its squares are summed over the ranks
  };

  /// `hidden` is the rank's own part of the hidden layer.
  MlpByHand(int rows, int width, int hidden, bool biases, AllReduce all_reduce)
      : all_reduce_(all_reduce),
        rows_(rows),
        width_(width),
        hidden_(hidden),
        biases_(biases),
        memory_(4 * (3L * rows * width + 2L * rows * hidden + 8L * width * hidden + 4L * (hidden + width) +
                     21L * 16)),  // 21 tensors at lines
        free_(reinterpret_cast<float*>(memory_.data())),
        x(matrix(rows, width)),
        target(matrix(rows, width)),
        up(trained(width, hidden, true)),
        up_bias(trained(1, hidden, true)),
        down(trained(hidden, width, true)),
        down_bias(trained(1, width, false)),
        y_(matrix(rows, width)),
        before_(matrix(rows, hidden)),
        after_(matrix(rows, hidden)) {
    mallopt(M_MMAP_THRESHOLD, 256 << 20);  // Eigen packs into memory from malloc: let malloc keep it
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
  }

  struct Result {
    double loss, norm;
  };
  /// Forward, backward and the norm of the gradients.
  Result gradients() {
    before_.noalias() = x * up.value;
    for (int r = 0; r < rows_; ++r) activate(before_.data() + r * hidden_, after_.data() + r * hidden_);
    y_.noalias() = after_ * down.value;
    all_reduce_(y_.data(), y_.size());

    double loss = 0;
    const float scale = 2 / (static_cast<float>(rows_) * static_cast<float>(width_));
    Row(down_bias.gradient.data(), width_).setZero();
    for (int r = 0; r < rows_; ++r) {
      Row y(y_.data() + r * width_, width_);
      y -= Row(target.data() + r * width_, width_);
      if (biases_) y += Row(down_bias.value.data(), width_);
      loss += static_cast<double>(y.square().sum());
      y *= scale;
      if (biases_) Row(down_bias.gradient.data(), width_) += y;
    }

    down.gradient.noalias() = after_.transpose() * y_;
    after_.noalias() = y_ * down.value.transpose();
    Row(up_bias.gradient.data(), hidden_).setZero();
    for (int r = 0; r < rows_; ++r) {
      activate_gradient(before_.data() + r * hidden_, after_.data() + r * hidden_);
      if (biases_) Row(up_bias.gradient.data(), hidden_) += Row(after_.data() + r * hidden_, hidden_);
    }
    up.gradient.noalias() = x.transpose() * after_;

    double split = 0, whole = 0;
    each([&](Trained& t) { (t.split ? split : whole) += squares(t.gradient.data(), t.gradient.size()); });
    all_reduce_(&split, 1);
    return {loss / (static_cast<double>(rows_) * width_), std::sqrt(split + whole)};
  }

  struct Numbers {
    double rate = 1e-3, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8, decay = 0.1, clip = 1;
  };
  Result step(const Numbers& n) {
    const Result result = gradients();
    if (!std::isfinite(result.norm)) return result;
    ++steps_;
    const float factor = static_cast<float>(std::min(1.0, n.clip / (result.norm + 1e-6)));
    const float size = static_cast<float>(n.rate / (1 - std::pow(n.beta1, steps_)));
    const float correction = static_cast<float>(1 / std::sqrt(1 - std::pow(n.beta2, steps_)));
    const float b1 = static_cast<float>(n.beta1), rest1 = static_cast<float>(1 - n.beta1);
    const float b2 = static_cast<float>(n.beta2), rest2 = static_cast<float>(1 - n.beta2);
    const float epsilon = static_cast<float>(n.epsilon);
    each([&](Trained& t) {
      const bool decays = &t == &up || &t == &down;  // not the biases
      const float kept = static_cast<float>(decays ? 1 - n.rate * n.decay : 1);
      for (std::int64_t i = 0; i < t.value.size(); i += piece) {
        const std::int64_t count = std::min<std::int64_t>(piece, t.value.size() - i);
        Row p(t.value.data() + i, count), m(t.mean.data() + i, count), v(t.variance.data() + i, count);
        const Piece g = factor * Row(t.gradient.data() + i, count);
        m = b1 * m + rest1 * g;
        v = b2 * v + rest2 * g.square();
        p = kept * p - size * m / (v.sqrt() * correction + epsilon);
      }
    });
    return result;
  }

 private:
  static constexpr int piece = 512;
  using Piece = Eigen::Array<float, 1, Eigen::Dynamic, Eigen::RowMajor, 1, piece>;

  Matrix matrix(int rows, int columns) {
    float* const begin = free_;
    free_ += (static_cast<std::int64_t>(rows) * columns + 15) / 16 * 16;
    return Matrix(begin, rows, columns);
  }
  Trained trained(int rows, int columns, bool split) {
    return {matrix(rows, columns), matrix(rows, columns), matrix(rows, columns), matrix(rows, columns), split};
  }
  template <class F>
  void each(F f) {
    f(up);
    if (biases_) f(up_bias);
    f(down);
    if (biases_) f(down_bias);
  }

  // gelu(h) = h s with s = 1 / (1 + exp(-2 u)), u = sqrt(2 / pi) (h + 0.044715 h^3)
  static constexpr float first = 1.5957691216057308f, third = first * 0.044715f;

  /// after = gelu(before + bias); keeps before + bias.
  void activate(float* before, float* after) {
    for (int i = 0; i < hidden_; i += piece) {
      const int n = std::min(piece, hidden_ - i);
      Row h(before + i, n);
      if (biases_) h += Row(up_bias.value.data() + i, n);
      Row(after + i, n) = h / (1 + (-h * (first + third * h.square())).exp());
    }
  }
  /// g = g gelu'(before)
  void activate_gradient(const float* before, float* g) {
    for (int i = 0; i < hidden_; i += piece) {
      const int n = std::min(piece, hidden_ - i);
      const Eigen::Map<const Eigen::Array<float, 1, Eigen::Dynamic>> h(before + i, n);
      const Piece s = (1 + (-h * (first + third * h.square())).exp()).inverse();
      Row(g + i, n) *= s + h * s * (1 - s) * (first + 3 * third * h.square());
    }
  }
  static double squares(const float* x, std::int64_t n) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; i += piece)
      sum += static_cast<double>(
          Eigen::Map<const Eigen::ArrayXf>(x + i, std::min<std::int64_t>(piece, n - i)).square().sum());
    return sum;
  }

  AllReduce all_reduce_;
  int rows_, width_, hidden_;
  bool biases_;
  parallel::HostMemory memory_;
  float* free_;
  int steps_ = 0;

 public:
  Matrix x, target;
  Trained up, up_bias, down, down_bias;

 private:
  Matrix y_, before_, after_;  // before_ and after_ the activation; its gradient takes the place of after_
};

}  // namespace bench
