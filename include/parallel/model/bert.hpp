// A BERT-style encoder (Devlin et al., 2018): norms behind the residual sums, segments, padding, and the loss of masked
// tokens.
#pragma once
#include <parallel/model/transformer.hpp>

namespace parallel::models {

struct BertSizes {
  Dim context = 512;  ///< positions; `512 / tensor` is sequence parallelism, `512 / sequence` context parallelism
  Context attention = Context::gathered;  ///< how keys of other ranks are found where an axis splits the context
  std::int64_t channels = 768;
  Dim heads = 12 / axes::tensor;
  Dim inner = 3072 / axes::tensor;  ///< of the perceptron
  Dim vocabulary = padded(30522, 128) / axes::tensor;
  std::int64_t classes = 30522;  ///< how much of the vocabulary there really is
  Dim layers = 12;               ///< `12 / stage` is a pipeline
  int segments = 2;
  Percent dropped = 10;         ///< percent
  int epsilon = 12;             ///< 10 to the minus this is added to variances
  std::int64_t ignored = -100;  ///< the target of a token that is not masked

  constexpr std::int64_t size() const { return channels / heads.size; }
  constexpr double drop() const { return dropped / 100.0; }
  constexpr double added() const {
    double power = 1;
    for (int i = 0; i < epsilon; ++i) power *= 10;
    return 1 / power;
  }
};

template <BertSizes n, class T = float>
struct Bert {
  static_assert(n.channels % n.heads.size == 0,
                "parallel::models: the heads do not divide the channels; mend the sizes");
  struct Norm {
    Parameter<T, Shape<n.channels>> gain{ones};
    Parameter<T, Shape<n.channels>> shift{zeros};
    constexpr auto operator()(Distributed auto x) const { return layer_norm(x, gain, shift, n.added()); }
  };
  struct Attention {
    Parameter<T, Shape<n.channels, 3, n.heads, n.size()>> qkv{normal(0.02)};
    Parameter<T, Shape<3, n.heads, n.size()>> qkv_bias{zeros};
    Parameter<T, Shape<n.heads, n.size(), n.channels>> projection{normal(0.02)};
    Parameter<T, Shape<n.channels>> projection_bias{zeros};
    constexpr auto operator()(Distributed auto x, Distributed auto seen) const {
      const auto all = matmul(x, qkv) + qkv_bias;
      const auto y =
          masked_attention<false, n.attention>(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all), seen, n.drop());
      return matmul<2>(y, projection) + projection_bias;
    }
  };
  struct Mlp {
    Parameter<T, Shape<n.channels, n.inner>> up{normal(0.02)};
    Parameter<T, Shape<n.inner>> up_bias{zeros};
    Parameter<T, Shape<n.inner, n.channels>> down{normal(0.02)};
    Parameter<T, Shape<n.channels>> down_bias{zeros};
    constexpr auto operator()(Distributed auto x) const {
      return matmul(gelu_erf(matmul(x, up) + up_bias), down) + down_bias;
    }
  };
  struct Block {
    Attention attention;
    Norm norm1;
    Mlp mlp;
    Norm norm2;
    constexpr auto operator()(Distributed auto x, Distributed auto seen) const {
      const auto y = norm1(x + dropout(attention(x, seen), n.drop()));
      return norm2(y + dropout(mlp(y), n.drop()));
    }
  };
  /// What predicts masked tokens.
  struct Head {
    Parameter<T, Shape<n.channels, n.channels>> weight{normal(0.02)};
    Parameter<T, Shape<n.channels>> bias{zeros};
    Norm norm;
    Parameter<T, Shape<n.vocabulary>> vocabulary_bias{zeros};
    constexpr auto operator()(Distributed auto x, Distributed auto table) const {
      return matmul(norm(gelu_erf(matmul(x, weight) + bias)), transpose(table)) + vocabulary_bias;
    }
  };

  // vocabulary parallel, and the head's: the two are tied
  Parameter<T, Shape<n.vocabulary, n.channels>> token{normal(0.02)};
  Parameter<T, Shape<n.context.size, n.channels>> place{normal(0.02)};
  Parameter<T, Shape<n.segments, n.channels>> segment{normal(0.02)};
  Norm norm;
  Layers<n.layers, Block> blocks;
  Head head;

  /// tokens, segments and seen[batch, positions], where `seen` is 0 for padding -> hidden states [batch, positions,
  /// channels]
  constexpr auto encoded(Distributed auto tokens, Distributed auto segments, Distributed auto seen) const {
    const auto x = embedding(tokens, token) + internals::places<decltype(tokens)>(place) + embedding(segments, segment);
    return blocks(dropout(norm(hidden<n.context>(x)), n.drop()), seen);
  }
  /// The same -> logits[batch, positions, vocabulary], split over the vocabulary
  constexpr auto logits(Distributed auto tokens, Distributed auto segments, Distributed auto seen) const {
    return head(encoded(tokens, segments, seen), token);
  }
  /// The mean loss of predicting the targets that are not ignored.
  constexpr auto operator()(Distributed auto tokens, Distributed auto segments, Distributed auto seen,
                            Distributed auto targets) const {
    return mean_cross_entropy<n.classes, n.ignored>(logits(tokens, segments, seen), targets);
  }
};

}  // namespace parallel::models
