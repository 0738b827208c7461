// Causal attention by hand, of a rank's own heads: a block of scores at a time, none that is masked for the whole
// block, and backward again from the logarithm of each row's sum (Dao et al., 2022).
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
#include <cmath>

#include "layer_model.hpp"

namespace bench {

/// Queries, keys and values lie as [batch, context, 3, heads, size], results as [batch, context, heads, size],
/// logarithms as [heads, batch, context].
class AttentionByHand {
 public:
  using Index = Eigen::Index;
  static constexpr Index block = 64;                     ///< queries whose scores are computed at a time
  static constexpr Index scratch = 2 * block * context;  ///< floats

  AttentionByHand(Index batch, Index own_heads, float* room)
      : batch_(batch), heads_(own_heads), width_(own_heads * head_size), room_(room) {}

  void forward(float* all, float* out, float* logarithms) const {
    each_block([&](Index b, Index head, Index i, Index keys) {
      Rows p = scores(room_, keys), o = result(out, b, head, i);
      p.noalias() = part(all, 0, b, head, i, block) * part(all, 1, b, head, 0, keys).transpose();
      float sums[block];
      for (Index r = 0; r < block; ++r) {
        const Index visible = i + r + 1;
        Row own(p.data() + r * context, visible);
        const float largest = factor * own.maxCoeff();
        own = (factor * own - largest).exp();
        std::fill(own.data() + visible, own.data() + keys, 0.0f);
        sums[r] = own.sum();
        logarithms[(head * batch_ + b) * context + i + r] = largest + std::log(sums[r]);
      }
      o.noalias() = p * part(all, 2, b, head, 0, keys);
      for (Index r = 0; r < block; ++r) o.row(r) *= 1 / sums[r];
    });
  }

  /// `g`: the gradient of `out`; `gradient` becomes that of `all`.
  void gradient(float* all, float* out, const float* logarithms, float* g, float* gradient) const {
    std::fill_n(gradient, batch_ * context * 3 * width_, 0.0f);
    each_block([&](Index b, Index head, Index i, Index keys) {
      Rows p = scores(room_, keys), ds = scores(room_ + block * context, keys);
      const Rows q = part(all, 0, b, head, i, block), k = part(all, 1, b, head, 0, keys),
                 v = part(all, 2, b, head, 0, keys);
      const Rows o = result(out, b, head, i), go = result(g, b, head, i);
      p.noalias() = q * k.transpose();
      for (Index r = 0; r < block; ++r) {
        const Index visible = i + r + 1;
        Row own(p.data() + r * context, visible);
        own = (factor * own - logarithms[(head * batch_ + b) * context + i + r]).exp();
        std::fill(own.data() + visible, own.data() + keys, 0.0f);
      }
      part(gradient, 2, b, head, 0, keys).noalias() += p.transpose() * go;
      ds.noalias() = go * v.transpose();
      for (Index r = 0; r < block; ++r) {
        const float inner_product = go.row(r).dot(o.row(r));
        Row own(ds.data() + r * context, keys);
        own = factor * Row(p.data() + r * context, keys) * (own - inner_product);
      }
      part(gradient, 0, b, head, i, block).noalias() = ds * k;
      part(gradient, 1, b, head, 0, keys).noalias() += ds.transpose() * q;
    });
  }

 private:
  using Rows =
      Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0, Eigen::OuterStride<>>;
  using Row = Eigen::Map<Eigen::Array<float, 1, Eigen::Dynamic>>;
  static constexpr float factor = 0.125f;  ///< 1 / sqrt(head_size)
  static_assert(head_size == 64);

  static Rows scores(float* room, Index keys) { return Rows(room, block, keys, Eigen::OuterStride<>(context)); }
  /// Rows of a head's queries (which = 0), keys (1) or values (2).
  Rows part(float* all, int which, Index b, Index head, Index first, Index count) const {
    return Rows(all + (b * context + first) * 3 * width_ + which * width_ + head * head_size, count, head_size,
                Eigen::OuterStride<>(3 * width_));
  }
  Rows result(float* out, Index b, Index head, Index first) const {
    return Rows(out + (b * context + first) * width_ + head * head_size, block, head_size,
                Eigen::OuterStride<>(width_));
  }
  /// Calls f(b, head, first query, keys that the block sees).
  template <class F>
  void each_block(F f) const {
    for (Index b = 0; b < batch_; ++b)
      for (Index head = 0; head < heads_; ++head)
        for (Index i = 0; i < context; i += block) f(b, head, i, i + block);
  }

  Index batch_, heads_, width_;
  float* room_;
};

}  // namespace bench
