// The programs of docs/parallelism/grids.md: one product, and a transformer, on grids of two and three dimensions.
#pragma once
#include <parallel/parallel.hpp>

namespace grids {

using namespace parallel;
inline constexpr Axis row{"row"}, column{"column"}, depth{"depth"};

// One product
// -------------------------------------------------------------------------------------------------------------------

/// In two dimensions, every move written. What is gathered is kept for the backward pass.
template <class T, std::int64_t k, std::int64_t n>
struct Written {
  Parameter<T, Shape<k / row, n / column>> a{normal(1)};
  constexpr auto operator()(Distributed auto x) const {
    return matmul(to<On<column, Broadcast>>(x), to<On<row, Broadcast>>(a));
  }
};
/// The same: beside columns x is gathered, and what is stored split is gathered where it is used.
template <class T, std::int64_t k, std::int64_t n, auto... word>
struct Linear {
  Parameter<T, Shape<k, n / column>, Stored<row, Split<0>, word...>> a{normal(1)};
  constexpr auto operator()(Distributed auto x) const { return matmul(x, a); }
};
/// In three dimensions. Of the layer behind it column and depth are exchanged.
template <class T, std::int64_t k, std::int64_t n, const Axis& in, const Axis& out, auto... word>
struct Linear3 {
  Parameter<T, Shape<k / in, n / out>, Stored<row, Split<1>, word...>> a{normal(1)};
  constexpr auto operator()(Distributed auto x) const { return to<On<in, Split<0>>>(matmul(x, a)); }
};
/// Any of them, of which the backward pass gathers x again instead of keeping it.
template <class Layer, const Axis& out = column>
struct GatheredAgain {
  Layer layer;
  constexpr auto operator()(Distributed auto x) const { return layer(recompute(to<On<out, Broadcast>>(x))); }
};
/// In so many panels: of each x and a are gathered, and gathered again by the backward pass.
template <class T, std::int64_t k, std::int64_t n, int panels>
struct InPanels {
  Parameter<T, Shape<k / row, n / column>> a{normal(1)};
  constexpr auto operator()(Distributed auto x) const { return matmul_in_panels<panels>(x, a); }
};
/// Between what wants a gradient and what gives one.
template <class Layer>
struct Alone {
  Layer layer;
  constexpr auto operator()(Distributed auto x, Distributed auto gradient) const { return sum(layer(x) * gradient); }
};
template <class Layer, class T, class X, class Y, class Optimizer = Sgd>
using TrainedAlone = Training<Alone<Layer>, Optimizer, Wanted<T, X>, Tensor<T, Y>>;
/// The product of x[m, k] and a[k, n].
template <class Layer, std::int64_t m, std::int64_t k, std::int64_t n>
using Alone1 = TrainedAlone<Layer, float, Shape<m, k>, Shape<m, n / column>>;
template <class Layer, std::int64_t m, std::int64_t k, std::int64_t n>
using Alone2 = TrainedAlone<Layer, float, Shape<m / depth / row, k / column>, Shape<m / depth / row, n / column>>;
template <class Layer, std::int64_t m, std::int64_t k, std::int64_t n>
using Alone3 = TrainedAlone<Layer, float, Shape<m / row / column, k / depth>, Shape<m / row / depth, n / column>>;

template <class First, class Second>
struct Pair {
  First first;
  Second second;
  constexpr auto operator()(Distributed auto x) const { return second(gelu(first(x))); }
};

// A transformer
// -------------------------------------------------------------------------------------------------------------------

/// How it lies: sizes, and what splits them.
struct Grid {
  Dim batch;                  // of what is read
  Dim examples, tokens;       // of the hidden state between pairs of matrices
  Dim width;                  // and its numbers, which are the columns of the second of a pair
  Dim inside;                 // examples within a pair, whose tokens are whole
  Dim rows;                   // of the first of a pair
  Dim heads, inner;           // columns of the first
  Dim head_rows, inner_rows;  // rows of the second
  Dim vocabulary;
  std::int64_t size;  // of a head
  int layers;
  // on which the backward pass gathers again what enters the first and the second of a pair; none: it is kept
  const Axis *first = nullptr, *second = nullptr;
};

template <class T, Grid g>
struct Transformer {
  static constexpr Dim context = g.tokens.size;
  using Hidden = Shape<g.examples, g.tokens, g.width>;
  using Tokens = Tensor<int, Shape<g.batch, context>>;

  using OnRows = Stored<row, Split<0>>;  // where the mesh has rows

  template <const Axis* axis>
  static constexpr auto entering(Distributed auto x) {
    if constexpr (axis == nullptr)
      return x;
    else
      return recompute(to<OnAxis<axis, Broadcast>>(x));
  }

  struct Norm {
    Parameter<T, Shape<g.width>> gain{ones};
    Parameter<T, Shape<g.width>> shift{zeros};
    constexpr auto operator()(Distributed auto x) const { return layer_norm(x, gain, shift); }
  };
  struct Attention {
    Parameter<T, Shape<g.rows, g.heads, 3, g.size>, OnRows> qkv{normal(0.1)};
    Parameter<T, Shape<g.heads, 3, g.size>> qkv_bias{zeros};
    Parameter<T, Shape<g.head_rows, g.size, g.width>, OnRows> projection{normal(0.1)};
    Parameter<T, Shape<g.width>> projection_bias{zeros};
    constexpr auto operator()(Distributed auto x) const {
      const auto all = to<Shape<g.inside, context, g.heads, 3, g.size>>(matmul(entering<g.first>(x), qkv)) + qkv_bias;
      const auto seen = attention(take<3, 0>(all), take<3, 1>(all), take<3, 2>(all));
      return matmul<2>(entering<g.second>(seen), projection) + projection_bias;
    }
  };
  struct Perceptron {
    Parameter<T, Shape<g.rows, g.inner>, OnRows> up{normal(0.1)};
    Parameter<T, Shape<g.inner>> up_bias{zeros};
    Parameter<T, Shape<g.inner_rows, g.width>, OnRows> down{normal(0.1)};
    Parameter<T, Shape<g.width>> down_bias{zeros};
    constexpr auto operator()(Distributed auto x) const {
      const auto hidden = to<Shape<g.inside, context, g.inner>>(matmul(entering<g.first>(x), up)) + up_bias;
      return matmul(entering<g.second>(gelu(hidden)), down) + down_bias;
    }
  };
  struct Block {
    Norm norm1;
    Attention attention;
    Norm norm2;
    Perceptron perceptron;
    constexpr auto operator()(Distributed auto x) const {
      const auto y = to<Hidden>(x + attention(norm1(x)));
      return to<Hidden>(y + perceptron(norm2(y)));
    }
  };

  Parameter<T, Shape<g.vocabulary, g.rows>, OnRows> token{normal(0.1)};
  Parameter<T, Shape<g.tokens, g.width>, OnRows> position{normal(0.1)};
  Layers<static_cast<int>(g.layers), Block> blocks;
  Norm norm;
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    const auto x = to<Hidden>(embedding(tokens, token)) + position;
    const auto logits = to<Shape<g.inside, context, g.vocabulary>>(matmul(norm(blocks(x)), transpose(token)));
    return mean(cross_entropy(logits, targets));
  }
};

struct Sizes {
  std::int64_t batch, context, width, heads, vocabulary;
  int layers;
};
/// Megatron-LM's, whose hidden state is whole, or split by tokens; where the mesh has rows, they share the examples.
template <Sizes s>
inline constexpr Grid one_dimension{.batch = s.batch / row,
                                    .examples = s.batch / row,
                                    .tokens = s.context,
                                    .width = s.width,
                                    .inside = s.batch / row,
                                    .rows = s.width,
                                    .heads = s.heads / column,
                                    .inner = 4 * s.width / column,
                                    .head_rows = s.heads / column,
                                    .inner_rows = 4 * s.width / column,
                                    .vocabulary = s.vocabulary / column,
                                    .size = s.width / s.heads,
                                    .layers = s.layers};
template <Sizes s>
inline constexpr Grid tokens_split = [] {
  Grid g = one_dimension<s>;
  g.tokens = s.context / column;
  return g;
}();
/// Two, and two and a half where the mesh has a depth.
template <Sizes s>
inline constexpr Grid two_dimensions{.batch = s.batch / depth / row,
                                     .examples = s.batch / depth / row,
                                     .tokens = s.context,
                                     .width = s.width / column,
                                     .inside = s.batch / depth / row,
                                     .rows = s.width,
                                     .heads = s.heads / column,
                                     .inner = 4 * s.width / column,
                                     .head_rows = s.heads,
                                     .inner_rows = 4 * s.width,
                                     .vocabulary = s.vocabulary / column,
                                     .size = s.width / s.heads,
                                     .layers = s.layers};
template <Sizes s>
inline constexpr Grid three_dimensions{.batch = s.batch / row,
                                       .examples = s.batch / row / column,
                                       .tokens = s.context,
                                       .width = s.width / depth,
                                       .inside = s.batch / row / depth,
                                       .rows = s.width / depth,
                                       .heads = s.heads / column,
                                       .inner = 4 * s.width / column,
                                       .head_rows = s.heads / column,
                                       .inner_rows = 4 * s.width / column,
                                       .vocabulary = s.vocabulary / column,
                                       .size = s.width / s.heads,
                                       .layers = s.layers};

/// The same, of which nothing that was gathered is kept.
constexpr Grid again(Grid g) {
  for (const Dim& d : {g.width, g.tokens})
    if (d.count > 0) g.first = &column;
  if (g.head_rows.count == 0)
    g.second = &column;
  else if (g.width.count > 0)
    g.second = &depth;
  return g;
}

template <class T, Grid g, class Optimizer>
using Trained =
    Training<Transformer<T, g>, Optimizer, typename Transformer<T, g>::Tokens, typename Transformer<T, g>::Tokens>;

}  // namespace grids
