// The step of tensor-parallel transformer layers by hand, as Megatron-LM writes it: Eigen's products of a rank's own
// slices, an all-reduce behind each row-parallel product (g) and of the gradient of what entered each column-parallel
// one (f), the latter under way while the weight's gradient is computed.
//
// This is the yardstick of the derived step, so it is what a careful engineer would write: all memory is there before
// the first step and lies on huge pages; bias, residual sum and layer norm are one pass, and so are their gradients.
#pragma once
#include <cmath>
#include <malloc.h>
#include <vector>

#include <parallel/device/host_memory.hpp>

#include "attention_by_hand.hpp"
#include "gelu_by_hand.hpp"

namespace bench {

/// One rank's part. `AllReduce` adds n floats, or doubles, of all ranks in place: start(data, n), test(), wait().
template <class AllReduce>
class LayersByHand {
 public:
  using Index = Eigen::Index;
  using Matrix = Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, Eigen::Aligned64>;
  using Row = Eigen::Map<Eigen::Array<float, 1, Eigen::Dynamic>>;
  using Channels = Eigen::Array<float, 1, channels>;
  using ChannelRow = Eigen::Map<Channels, Eigen::Aligned64>;

  LayersByHand(int layers, int rank, int ranks, AllReduce all_reduce)
      : all_reduce_(all_reduce),
        rank_(rank),
        ranks_(ranks),
        batch_(batch_of(layers)),
        heads_(heads / ranks),
        rows_(batch_ * context),
        attended_(heads_ * head_size),
        inner_(inner / ranks),
        memory_(4 * (floats(layers) + 16 * 40 * (layers + 1))),
        free_(reinterpret_cast<float*>(memory_.data())),
        target_(matrix(rows_, channels)),
        gradient_(matrix(rows_, channels)),
        entering_(matrix(rows_, channels)),
        wide_(matrix(rows_, std::max(inner_, 3 * attended_))),
        attended_gradient_(matrix(rows_, attended_)),
        attention_(batch_, heads_, matrix(AttentionByHand::scratch, 1).data()) {
    mallopt(M_MMAP_THRESHOLD, 256 << 20);  // Eigen packs into memory from malloc: let malloc keep it
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    for (int l = 0; l < layers; ++l) layers_.push_back(layer(l));
    hidden_.push_back(matrix(rows_, channels));
    for (int l = 0; l < layers; ++l) hidden_.push_back(matrix(rows_, channels));
    for (Index i = 0; i < hidden_[0].size(); ++i) {
      hidden_[0].data()[i] = number(12, i);
      target_.data()[i] = number(13, i);
    }
  }

  struct Result {
    double loss, norm;
  };
  /// Forward, backward and the norm of the gradients.
  Result step() {
    normalize(hidden_[0], layers_[0].norm1(), layers_[0].normal1, layers_[0].statistics1);
    for (std::size_t l = 0; l < layers_.size(); ++l) forward(l);
    double loss = 0;
    const float scale = 2 / (static_cast<float>(rows_) * channels);
    zero(layers_.back().down_bias);
    for (Index r = 0; r < rows_; ++r) {
      const Channels difference = row(hidden_.back(), r) - row(target_, r);
      loss += static_cast<double>(difference.square().sum());
      row(gradient_, r) = scale * difference;
      add_to(layers_.back().down_bias, row(gradient_, r));
    }
    for (std::size_t l = layers_.size(); l-- > 0;) backward(l);
    double split = 0, whole = 0;
    for (Layer& layer : layers_) layer.each([&](Trained& t) { (t.split ? split : whole) += squares(t.gradient); });
    return {loss / static_cast<double>(rows_ * channels), std::sqrt(sum(split) + whole)};
  }
  /// Called by all ranks.
  std::vector<Checked> checked(const Result& result) {
    std::vector<Checked> all{{"loss", result.loss}, {"norm", result.norm}};
    for (int i = 0; i < 12; ++i) {
      double total = 0;
      for (Layer& layer : layers_) {
        int at = 0;
        layer.each([&](Trained& t) {
          if (at++ == i) total += t.split ? sum(squares(t.gradient)) : squares(t.gradient);
        });
      }
      all.push_back({numbers[static_cast<std::size_t>(i)].name, std::sqrt(total)});
    }
    all.push_back({"input", std::sqrt(squares(gradient_))});
    return all;
  }

 private:
  static constexpr Index piece = 512;
  /// of a product under which an all-reduce is under way; it is tested between them
  static constexpr int pieces = AllReduce::pieces;

  struct Trained {
    Matrix value, gradient;
    bool split;
  };
  struct Norm {
    Trained &gain, &shift;
  };
  struct Layer {
    Trained gain1, shift1, qkv, qkv_bias, projection, projection_bias, gain2, shift2, up, up_bias, down, down_bias;
    Matrix normal1, statistics1, all, attended, logarithms, middle, normal2, statistics2, before, after;
    Norm norm1() { return {gain1, shift1}; }
    Norm norm2() { return {gain2, shift2}; }
    template <class F>
    void each(F f) {
      for (Trained* t : {&gain1, &shift1, &qkv, &qkv_bias, &projection, &projection_bias, &gain2, &shift2, &up,
                         &up_bias, &down, &down_bias})
        f(*t);
    }
  };

  std::int64_t floats(int layers) const {
    const std::int64_t state = rows_ * (3 * channels + 4 * attended_ + 2 * inner_ + heads_ + 4);
    const std::int64_t trained =
        2 * (4 * channels * attended_ + 2 * channels * inner_ + 6 * channels + 3 * attended_ + inner_);
    return layers * (state + trained + rows_ * channels) +
           rows_ * (4 * channels + std::max(inner_, 3 * attended_) + attended_) + AttentionByHand::scratch;
  }
  Matrix matrix(Index rows, Index columns) {
    float* const begin = free_;
    free_ += (rows * columns + 15) / 16 * 16;
    return Matrix(begin, rows, columns);
  }
  /// [outer][whole of a dimension][beyond], of which a rank has a slice in the middle.
  Trained trained(int which, int l, Index rows, Index columns, Index outer, Index whole, Index beyond, bool split) {
    Trained t{matrix(rows, columns), matrix(rows, columns), split};
    const Index own = split ? whole / ranks_ : whole, first = split ? own * rank_ : 0;
    for (Index o = 0; o < outer; ++o)
      for (Index i = 0; i < own * beyond; ++i)
        t.value.data()[o * own * beyond + i] = number(which, ((l * outer + o) * whole + first) * beyond + i);
    return t;
  }
  Layer layer(int l) {
    const Index c = channels, d = head_size;
    return {trained(0, l, 1, c, 1, c, 1, false), trained(1, l, 1, c, 1, c, 1, false),
            trained(2, l, c, 3 * attended_, 3 * c, heads, d, true), trained(3, l, 1, 3 * attended_, 3, heads, d, true),
            trained(4, l, attended_, c, 1, heads, d * c, true), trained(5, l, 1, c, 1, c, 1, false),
            trained(6, l, 1, c, 1, c, 1, false), trained(7, l, 1, c, 1, c, 1, false),
            trained(8, l, c, inner_, c, inner, 1, true), trained(9, l, 1, inner_, 1, inner, 1, true),
            trained(10, l, inner_, c, 1, inner, c, true), trained(11, l, 1, c, 1, c, 1, false),
            // clang-format off
            matrix(rows_, c), matrix(rows_, 2), matrix(rows_, 3 * attended_), matrix(rows_, attended_), matrix(heads_, rows_),
            matrix(rows_, c), matrix(rows_, c), matrix(rows_, 2), matrix(rows_, inner_), matrix(rows_, inner_)};
    // clang-format on
  }

  static ChannelRow row(float* data) { return ChannelRow(data); }
  static ChannelRow row(Matrix& m, Index r) { return ChannelRow(m.data() + r * channels); }
  static ChannelRow vector(Matrix& m) { return ChannelRow(m.data()); }
  static void zero(Trained& t) { t.gradient.setZero(); }
  static void add_to(Trained& bias, const Channels& g) { vector(bias.gradient) += g; }
  static double squares(const Matrix& m) {
    double total = 0;
    for (Index i = 0; i < m.size(); i += piece)
      total += static_cast<double>(
          Eigen::Map<const Eigen::ArrayXf>(m.data() + i, std::min<Index>(piece, m.size() - i)).square().sum());
    return total;
  }
  double sum(double value) {
    all_reduce_.start(&value, 1);
    all_reduce_.wait();
    return value;
  }
  void all_reduce(Matrix& m) {
    all_reduce_.start(m.data(), m.size());
    all_reduce_.wait();
  }
  /// gradient = x' g, while an all-reduce is under way.
  void weight_gradient(Trained& weight, const Matrix& x, const Matrix& g) {
    const Index part = weight.gradient.rows() / pieces;
    for (int i = 0; i < pieces; ++i) {
      weight.gradient.middleRows(i * part, part).noalias() = x.middleCols(i * part, part).transpose() * g;
      if (i + 1 < pieces) all_reduce_.test();
    }
  }

  static void normalize_row(const Channels& x, const Norm& norm, float* normal, float* statistics) {
    const float mean = x.mean();
    const Channels centered = x - mean;
    const float inverse = 1 / std::sqrt(centered.square().mean() + 1e-5f);
    statistics[0] = mean;
    statistics[1] = inverse;
    row(normal) = centered * inverse * vector(norm.gain.value) + vector(norm.shift.value);
  }
  void normalize(Matrix& x, const Norm& norm, Matrix& normal, Matrix& statistics) {
    for (Index r = 0; r < rows_; ++r)
      normalize_row(row(x, r), norm, normal.data() + r * channels, statistics.data() + 2 * r);
  }
  /// y = x + z + bias, and its norm if it is followed by one.
  void residual(Matrix& x, Matrix& z, Trained& bias, Matrix& y, const Norm* norm, Matrix* normal, Matrix* statistics) {
    for (Index r = 0; r < rows_; ++r) {
      const Channels sum = row(x, r) + row(z, r) + vector(bias.value);
      row(y, r) = sum;
      if (norm != nullptr) normalize_row(sum, *norm, normal->data() + r * channels, statistics->data() + 2 * r);
    }
  }
  /// g += the gradient of x, where `entering_` is the gradient of its norm; of the norm's gain and shift, and of the
  /// bias that g is the gradient of.
  void norm_gradient(Matrix& g, Matrix& x, Matrix& statistics, const Norm& norm, Trained* bias) {
    zero(norm.gain);
    zero(norm.shift);
    if (bias != nullptr) zero(*bias);
    for (Index r = 0; r < rows_; ++r) {
      const float mean = statistics.data()[2 * r], inverse = statistics.data()[2 * r + 1];
      const auto entering = row(entering_, r);
      const Channels normal = (row(x, r) - mean) * inverse, inside = entering * vector(norm.gain.value);
      vector(norm.gain.gradient) += entering * normal;
      vector(norm.shift.gradient) += entering;
      const float first = inside.mean(), second = (inside * normal).mean();
      row(g, r) += inverse * (inside - first - normal * second);
      if (bias != nullptr) add_to(*bias, row(g, r));
    }
  }

  void forward(std::size_t index) {
    Layer& l = layers_[index];
    l.all.noalias() = l.normal1 * l.qkv.value;
    for (Index r = 0; r < rows_; ++r)
      Row(l.all.data() + r * 3 * attended_, 3 * attended_) += Row(l.qkv_bias.value.data(), 3 * attended_);
    attention_.forward(l.all.data(), l.attended.data(), l.logarithms.data());
    entering_.noalias() = l.attended * l.projection.value;
    all_reduce(entering_);
    const Norm norm2 = l.norm2();
    residual(hidden_[index], entering_, l.projection_bias, l.middle, &norm2, &l.normal2, &l.statistics2);
    l.before.noalias() = l.normal2 * l.up.value;
    for (Index r = 0; r < rows_; ++r)
      gelu_by_hand(l.before.data() + r * inner_, l.after.data() + r * inner_, l.up_bias.value.data(), inner_);
    entering_.noalias() = l.after * l.down.value;
    all_reduce(entering_);
    if (index + 1 == layers_.size())
      return residual(l.middle, entering_, l.down_bias, hidden_[index + 1], nullptr, nullptr, nullptr);
    Layer& next = layers_[index + 1];
    const Norm norm1 = next.norm1();
    residual(l.middle, entering_, l.down_bias, hidden_[index + 1], &norm1, &next.normal1, &next.statistics1);
  }
  /// `gradient_` is that of the layer's result, then of what entered it.
  void backward(std::size_t index) {
    Layer& l = layers_[index];
    Matrix inside(wide_.data(), rows_, inner_);
    l.down.gradient.noalias() = l.after.transpose() * gradient_;
    inside.noalias() = gradient_ * l.down.value.transpose();
    zero(l.up_bias);
    for (Index r = 0; r < rows_; ++r)
      gelu_gradient_by_hand(l.before.data() + r * inner_, inside.data() + r * inner_, l.up_bias.gradient.data(),
                            inner_);
    entering_.noalias() = inside * l.up.value.transpose();
    all_reduce_.start(entering_.data(), entering_.size());
    weight_gradient(l.up, l.normal2, inside);
    all_reduce_.wait();
    norm_gradient(gradient_, l.middle, l.statistics2, l.norm2(), &l.projection_bias);

    l.projection.gradient.noalias() = l.attended.transpose() * gradient_;
    attended_gradient_.noalias() = gradient_ * l.projection.value.transpose();
    attention_.gradient(l.all.data(), l.attended.data(), l.logarithms.data(), attended_gradient_.data(), wide_.data());
    Matrix all(wide_.data(), rows_, 3 * attended_);
    zero(l.qkv_bias);
    for (Index r = 0; r < rows_; ++r)
      Row(l.qkv_bias.gradient.data(), 3 * attended_) += Row(all.data() + r * 3 * attended_, 3 * attended_);
    entering_.noalias() = all * l.qkv.value.transpose();
    all_reduce_.start(entering_.data(), entering_.size());
    weight_gradient(l.qkv, l.normal1, all);
    all_reduce_.wait();
    norm_gradient(gradient_, hidden_[index], l.statistics1, l.norm1(),
                  index > 0 ? &layers_[index - 1].down_bias : nullptr);
  }

  AllReduce all_reduce_;
  int rank_, ranks_;
  Index batch_, heads_, rows_, attended_, inner_;  ///< the rank's own heads, and channels of them and of the perceptron
  parallel::HostMemory memory_;
  float* free_;
  Matrix target_, gradient_, entering_, wide_, attended_gradient_;
  AttentionByHand attention_;
  std::vector<Layer> layers_{};
  std::vector<Matrix> hidden_{};
};

}  // namespace bench
