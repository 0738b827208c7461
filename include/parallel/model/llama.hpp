// Llama (Touvron et al., 2023): RMS norm, rotary embedding, gated perceptron (SwiGLU; Shazeer, 2020), grouped queries.
#pragma once
#include <parallel/model/transformer.hpp>

namespace parallel::models {

struct LlamaSizes {
  /// positions; `4096 / tensor` is sequence parallelism, `4096 / sequence` context parallelism
  Dim context = 4096;
  Context attention = Context::gathered;  ///< how keys of other ranks are found where an axis splits the context
  std::int64_t channels = 4096;
  Dim heads = 32 / axes::tensor;
  /// without an axis where they are fewer than its ranks: every rank then has all, and takes those of its heads
  Dim key_heads = 8 / axes::tensor;
  Dim inner = 14336 / axes::tensor;  ///< of the perceptron
  Dim vocabulary = 128256 / axes::tensor;
  std::int64_t classes = 0;  ///< how much of the vocabulary there really is, where it is padded; 0: all
  Dim layers = 32;           ///< `32 / stage` is a pipeline
  int base = 500000;         ///< of the rotary embedding
  std::int64_t ignored = internals::no_target;  ///< a target that counts for nothing

  constexpr std::int64_t size() const { return channels / heads.size; }
};

template <LlamaSizes n, class T = float>
struct Llama {
  static_assert(n.channels % n.heads.size == 0,
                "parallel::models: the heads do not divide the channels; mend the sizes");
  struct Norm {
    Parameter<T, Shape<n.channels>> gain{ones};
    constexpr auto operator()(Distributed auto x) const { return rms_norm(x, gain); }
  };
  struct Attention {
    Parameter<T, Shape<n.channels, n.heads, n.size()>> q{normal(0.02)};
    Parameter<T, Shape<n.channels, n.key_heads, n.size()>> k{normal(0.02)};
    Parameter<T, Shape<n.channels, n.key_heads, n.size()>> v{normal(0.02)};
    Parameter<T, Shape<n.heads, n.size(), n.channels>> projection{scaled_normal(0.02, n.layers)};

    constexpr auto operator()(Distributed auto x, Position auto... position) const {
      const auto queries = rotary(matmul(x, q), position..., n.base);
      const auto keys = rotary(matmul(x, k), position..., n.base);
      return matmul<2>(self_attention<n.context.size, n.attention>(queries, keys, matmul(x, v), 0, position...),
                       projection);
    }
  };
  struct Mlp {
    Parameter<T, Shape<n.channels, n.inner>> gate{normal(0.02)};
    Parameter<T, Shape<n.channels, n.inner>> up{normal(0.02)};
    Parameter<T, Shape<n.inner, n.channels>> down{scaled_normal(0.02, n.layers)};
    constexpr auto operator()(Distributed auto x) const { return matmul(silu(matmul(x, gate)) * matmul(x, up), down); }
  };
  struct Block {
    Norm norm1;
    Attention attention;
    Norm norm2;
    Mlp mlp;
    constexpr auto operator()(Distributed auto x, Position auto... position) const {
      const auto y = x + attention(norm1(x), position...);
      return y + mlp(norm2(y));
    }
  };

  Parameter<T, Shape<n.vocabulary, n.channels>> token{normal(0.02)};  // vocabulary parallel
  Layers<n.layers, Block> blocks;
  Norm norm;
  Parameter<T, Shape<n.channels, n.vocabulary>> head{normal(0.02)};

  /// tokens[batch, positions], which follow `position` others, if that is said -> logits[batch, positions, vocabulary]
  constexpr auto logits(Distributed auto tokens, Position auto... position) const {
    constexpr Dim context = sizeof...(position) == 0 ? n.context : Dim(n.context.size);
    return matmul(norm(blocks(hidden<context>(embedding(tokens, token)), position...)), head);
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
