// An encoder-decoder transformer (Vaswani et al., 2017), norms before the products as in later ones: a source is read,
// a target predicted from it.
#pragma once
#include <parallel/model/transformer.hpp>

namespace parallel::models {

struct EncoderDecoderSizes {
  /// positions of source and target; `512 / tensor` is sequence parallelism, `512 / sequence` context parallelism
  Dim context = 512;
  Context attention = Context::gathered;  ///< how keys of other ranks are found where an axis splits the context
  std::int64_t channels = 512;
  Dim heads = 8 / axes::tensor;
  Dim inner = 2048 / axes::tensor;  ///< of the perceptrons
  Dim vocabulary = 32768 / axes::tensor;
  std::int64_t classes = 32768;  ///< how much of the vocabulary there really is
  int layers = 6;                ///< of each half
  Percent dropped = 10;          ///< percent
  Percent smoothing = 10;        ///< of labels, percent
  std::int64_t ignored = -100;   ///< the target of padding

  constexpr std::int64_t size() const { return channels / heads.size; }
  constexpr double drop() const { return dropped / 100.0; }
};

template <EncoderDecoderSizes n, class T = float>
struct EncoderDecoder {
  static_assert(n.channels % n.heads.size == 0,
                "parallel::models: the heads do not divide the channels; mend the sizes");
  using Norm = LayerNorm<n.channels, T>;
  struct Attention {
    Parameter<T, Shape<n.channels, n.heads, n.size()>> q{normal(0.02)};
    Parameter<T, Shape<n.channels, 2, n.heads, n.size()>> kv{normal(0.02)};
    Parameter<T, Shape<n.heads, n.size(), n.channels>> projection{scaled_normal(0.02, n.layers)};
    /// Of x over what `from` says; `seen`, if that is said, is 0 for padding of `from`, else x sees itself up to its
    /// own position.
    constexpr auto operator()(Distributed auto x, Distributed auto from, Distributed auto... seen) const {
      const auto both = matmul(from, kv);
      const auto keys = take<2, 0>(both), values = take<2, 1>(both);
      if constexpr (sizeof...(seen) == 0)
        return matmul<2>(attention<true, n.attention>(matmul(x, q), keys, values, n.drop()), projection);
      else
        return matmul<2>(masked_attention<false, n.attention>(matmul(x, q), keys, values, seen..., n.drop()),
                         projection);
    }
  };
  struct Mlp {
    Parameter<T, Shape<n.channels, n.inner>> up{normal(0.02)};
    Parameter<T, Shape<n.inner>> up_bias{zeros};
    Parameter<T, Shape<n.inner, n.channels>> down{scaled_normal(0.02, n.layers)};
    Parameter<T, Shape<n.channels>> down_bias{zeros};
    constexpr auto operator()(Distributed auto x) const {
      return matmul(relu(matmul(x, up) + up_bias), down) + down_bias;
    }
  };
  struct Encoding {
    Norm norm1;
    Attention attention;
    Norm norm2;
    Mlp mlp;
    constexpr auto operator()(Distributed auto x, Distributed auto seen) const {
      const auto normed = norm1(x);
      const auto y = x + dropout(attention(normed, normed, seen), n.drop());
      return y + dropout(mlp(norm2(y)), n.drop());
    }
  };
  struct Decoding {
    Norm norm1;
    Attention attention;
    Norm norm2;
    Attention cross;
    Norm norm3;
    Mlp mlp;
    constexpr auto operator()(Distributed auto x, Distributed auto source, Distributed auto seen) const {
      const auto normed = norm1(x);
      const auto y = x + dropout(attention(normed, normed), n.drop());
      const auto z = y + dropout(cross(norm2(y), source, seen), n.drop());
      return z + dropout(mlp(norm3(z)), n.drop());
    }
  };

  Parameter<T, Shape<n.vocabulary, n.channels>> token{normal(0.02)};  // of source, target and head: the three are tied
  Parameter<T, Shape<n.context.size, n.channels>> place{normal(0.02)};
  Layers<n.layers, Encoding> encoder;
  Norm encoder_norm;
  Layers<n.layers, Decoding> decoder;
  Norm decoder_norm;

  constexpr auto embedded(Distributed auto tokens) const {
    const auto x = embedding(tokens, token) + internals::places<decltype(tokens)>(place);
    return hidden<n.context>(dropout(x, n.drop()));
  }
  /// source and seen[batch, positions], where `seen` is 0 for padding, target[batch, positions] -> logits[batch,
  /// positions, vocabulary]
  constexpr auto logits(Distributed auto source, Distributed auto seen, Distributed auto target) const {
    const auto read = [](const auto& encoded) {
      if constexpr (n.attention == Context::gathered)
        return whole_sequence(encoded);  // once for all layers of the decoder
      else
        return encoded;
    };
    const auto encoded = read(encoder_norm(encoder(embedded(source), seen)));
    return matmul(decoder_norm(decoder(embedded(target), encoded, seen)), transpose(token));
  }
  /// The mean loss, with smoothed labels, of predicting what is next in the target.
  constexpr auto operator()(Distributed auto source, Distributed auto seen, Distributed auto target,
                            Distributed auto next) const {
    return mean_cross_entropy<n.classes, n.ignored>(logits(source, seen, target), next, n.smoothing / 100.0);
  }
};

}  // namespace parallel::models
