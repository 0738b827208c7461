// GPT-2 (Radford et al., 2019), trained and generated from. Tensor parallel as Megatron-LM (Shoeybi et al., 2019):
// every matrix says in its shape which dimension the axis `tensor` splits, and nothing else is said.
#pragma once
#include <parallel/model/transformer.hpp>

namespace parallel::models {

struct Gpt2Sizes {
  /// positions; `1024 / tensor` is sequence parallelism (Korthikanti et al., 2022), `1024 / sequence` context
  /// parallelism
  Dim context = 1024;
  Context attention = Context::gathered;  ///< how keys of other ranks are found where an axis splits the context
  std::int64_t channels = 768;
  Dim heads = 12 / axes::tensor;
  Dim inner = 3072 / axes::tensor;  ///< of the perceptron
  Dim vocabulary = padded(50257, 128) / axes::tensor;
  std::int64_t classes = 50257;                 ///< how much of the vocabulary there really is
  Dim layers = 12;                              ///< `12 / stage` is a pipeline
  Percent dropped = 10;                         ///< percent
  std::int64_t ignored = internals::no_target;  ///< a target that counts for nothing

  constexpr std::int64_t size() const { return channels / heads.size; }
  constexpr double drop() const { return dropped / 100.0; }
};

template <Gpt2Sizes n, class T = float>
struct Gpt2 {
  static_assert(n.channels % n.heads.size == 0,
                "parallel::models: the heads do not divide the channels; mend the sizes");
  struct Attention {
    // queries, keys and values apart, so that heads are split and not columns
    Parameter<T, Shape<n.channels, 3, n.heads, n.size()>> qkv{normal(0.02)};
    Parameter<T, Shape<3, n.heads, n.size()>> qkv_bias{zeros};
    Parameter<T, Shape<n.heads, n.size(), n.channels>> projection{scaled_normal(0.02, n.layers)};
    Parameter<T, Shape<n.channels>> projection_bias{zeros};

    constexpr auto operator()(Distributed auto x, Position auto... position) const {
      const auto all = matmul(x, qkv) + qkv_bias;  // [batch, positions, 3, heads/tensor, size]
      const auto y = self_attention<n.context.size, n.attention>(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all),
                                                                 n.drop(), position...);
      return matmul<2>(y, projection) + projection_bias;  // a sum over tensor, pending
    }
  };
  struct Mlp {
    Parameter<T, Shape<n.channels, n.inner>> up{normal(0.02)};  // column parallel
    Parameter<T, Shape<n.inner>> up_bias{zeros};
    Parameter<T, Shape<n.inner, n.channels>> down{scaled_normal(0.02, n.layers)};  // row parallel
    Parameter<T, Shape<n.channels>> down_bias{zeros};

    constexpr auto operator()(Distributed auto x) const {
      return matmul(gelu(matmul(x, up) + up_bias), down) + down_bias;
    }
  };
  struct Block {
    LayerNorm<n.channels, T> norm1;
    Attention attention;
    LayerNorm<n.channels, T> norm2;
    Mlp mlp;

    constexpr auto operator()(Distributed auto x, Position auto... position) const {
      const auto y = x + dropout(attention(norm1(x), position...), n.drop());
      return y + dropout(mlp(norm2(y)), n.drop());
    }
  };

  // vocabulary parallel, and the head: the two are tied
  Parameter<T, Shape<n.vocabulary, n.channels>> token{normal(0.02)};
  Parameter<T, Shape<n.context.size, n.channels>> place{normal(0.01)};
  Layers<n.layers, Block> blocks;
  LayerNorm<n.channels, T> norm;

  /// tokens[batch, positions] -> logits[batch, positions, vocabulary], split over the vocabulary
  constexpr auto logits(Distributed auto tokens) const {
    const auto x = dropout(embedding(tokens, token) + internals::places<decltype(tokens)>(place), n.drop());
    return matmul(norm(blocks(hidden<n.context>(x))), transpose(token));
  }
  /// The same for tokens that follow `position` others, which earlier runs were given.
  constexpr auto logits(Distributed auto tokens, Position auto position) const {
    const auto places = position + iota<Shape<decltype(tokens)::type.layout.dims[1].size>>();
    const auto x = embedding(tokens, token) + embedding(places, place);
    return matmul(norm(blocks(hidden<n.context.size>(x), position)), transpose(token));
  }
  /// The mean loss of predicting targets[batch, positions].
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    return mean_cross_entropy<n.classes, n.ignored>(logits(tokens), targets);
  }
  /// The token behind the last of `tokens`, which begin at `position`: one step of generation.
  constexpr auto operator()(Distributed auto tokens, Position auto position) const {
    return sample<Among::top_k_and_p, n.classes>(last_position(logits(tokens, position)));
  }
};

}  // namespace parallel::models
