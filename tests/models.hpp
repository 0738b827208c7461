// Models of the run-time tests: a perceptron and a GPT, annotated for data, tensor and sequence, in any element type
// and size.
#pragma once
#include <parallel/parallel.hpp>

namespace models {

using namespace parallel;
using namespace parallel::axes;

template <class T, int rows, int width>
struct Mlp {
  Parameter<T, Shape<width, 2 * width / tensor>> up{normal(0.3)};
  Parameter<T, Shape<2 * width / tensor>> up_bias{without_decay(normal(0.1))};
  Parameter<T, Shape<2 * width / tensor, width>> down{normal(0.3)};
  Parameter<T, Shape<width>> down_bias{without_decay(normal(0.1))};
  constexpr auto operator()(Distributed auto x) const {
    return matmul(gelu(matmul(x, up) + up_bias), down) + down_bias;
  }
};
template <class T, int rows, int width>
struct Regression {
  Mlp<T, rows, width> first, second;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(x + second(relu(first(x))) - y));
  }
};

struct Sizes {
  int batch, context, heads, size, vocabulary, layers;
  int dropped = 0;  ///< dropout, in percent
};
/// Every extent that an axis splits is a multiple of `factor`.
constexpr Sizes multiples_of(int factor) { return {factor, factor, factor, 2, 2 * factor, 2, 10}; }

template <class T, Sizes n>
struct Gpt {
  static constexpr int batch = n.batch, context = n.context, heads = n.heads, size = n.size, channels = heads * size,
                       vocabulary = n.vocabulary;
  using Hidden = Shape<batch / data, context / sequence, channels>;
  using Tokens = Tensor<int, Shape<batch / data, context / sequence>>;

  struct Norm {
    Parameter<T, Shape<channels>> gain{without_decay(normal(1))};
    Parameter<T, Shape<channels>> shift{without_decay(normal(0.1))};
    constexpr auto operator()(Distributed auto x) const { return layer_norm(x, gain, shift); }
  };
  struct Attention {
    Parameter<T, Shape<channels, 3, heads / tensor, size>> qkv{normal(0.4)};
    Parameter<T, Shape<3, heads / tensor, size>> qkv_bias{without_decay(normal(0.1))};
    Parameter<T, Shape<heads / tensor, size, channels>> projection{normal(0.4)};
    Parameter<T, Shape<channels>> projection_bias{without_decay(normal(0.1))};
    constexpr auto operator()(Distributed auto x) const {
      const auto all = matmul(x, qkv) + qkv_bias;
      const auto k = to<On<sequence, Broadcast>>(take<2, 1>(all)), v = to<On<sequence, Broadcast>>(take<2, 2>(all));
      return matmul<2>(attention(take<2, 0>(all), k, v), projection) + projection_bias;
    }
  };
  struct Feedforward {
    Parameter<T, Shape<channels, 4 * channels / tensor>> up{normal(0.3)};
    Parameter<T, Shape<4 * channels / tensor>> up_bias{without_decay(normal(0.1))};
    Parameter<T, Shape<4 * channels / tensor, channels>> down{normal(0.3)};
    Parameter<T, Shape<channels>> down_bias{without_decay(normal(0.1))};
    constexpr auto operator()(Distributed auto x) const {
      return matmul(gelu(matmul(x, up) + up_bias), down) + down_bias;
    }
  };
  struct Block {
    Norm norm1;
    Attention attention;
    Norm norm2;
    Feedforward mlp;
    constexpr auto operator()(Distributed auto x) const {
      const auto y = x + dropout(attention(norm1(x)), n.dropped / 100.0);
      return y + dropout(mlp(norm2(y)), n.dropped / 100.0);
    }
  };

  Parameter<T, Shape<vocabulary / tensor, channels>> token{normal(0.5)};
  Parameter<T, Shape<context, channels>> position{normal(0.5)};
  Layers<n.layers, Block> blocks;
  Norm norm;

  constexpr auto operator()(Distributed auto tokens) const {
    const auto hidden = to<Hidden>(dropout(embedding(tokens, token) + position, n.dropped / 100.0));
    return matmul(norm(blocks(hidden)), transpose(token));
  }
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    return mean(cross_entropy((*this)(tokens), targets));
  }
};

}  // namespace models
