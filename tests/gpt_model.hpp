// A GPT-2 whose annotations are parameters, for tests of plans and of what they compute: tied embedding, biases,
// dropout, fused heads.
#pragma once
#include <parallel/parallel.hpp>

namespace gpt {
using namespace parallel;
using namespace parallel::axes;

struct Sizes {
  std::int64_t batch = 4, context = 16, width = 16, heads = 2, layers = 2, vocabulary = 32;
  int dropped = 10;  ///< percent
};

/// How the hidden state lies: what `to` is told where it begins.
template <class... Placed>
struct Hidden {
  static constexpr auto of(Distributed auto x) { return to<Placed...>(x); }
};
template <Sizes n>
using Plain = Hidden<Shape<n.batch / data, n.context, n.width>>;
template <Sizes n>
using HiddenBroadcast = Hidden<Shape<n.batch / data, n.context, n.width>, On<tensor, Broadcast>>;
template <Sizes n>
using SequenceParallel = Hidden<Shape<n.batch / data, n.context / tensor, n.width>>;

template <Sizes n>
struct Norm {
  Parameter<float, Shape<n.width>> gain{ones};
  Parameter<float, Shape<n.width>> shift{zeros};
  constexpr auto operator()(Distributed auto x) const { return layer_norm(x, gain, shift); }
};

template <Sizes n>
struct Attention {
  Parameter<float, Shape<n.width, 3, n.heads / tensor, n.width / n.heads>> in;
  Parameter<float, Shape<3, n.heads / tensor, n.width / n.heads>> in_bias{zeros};
  Parameter<float, Shape<n.heads / tensor, n.width / n.heads, n.width>> out{
      scaled_normal(0.02, static_cast<int>(n.layers))};
  Parameter<float, Shape<n.width>> out_bias{zeros};
  constexpr auto operator()(Distributed auto x) const {
    constexpr std::int64_t batch = decltype(x)::type.layout.dims[0].size, size = n.width / n.heads;
    // [b/data, s, 3, heads/tensor, size]
    const auto all = matmul(x, in) + in_bias;
    // [b/data, s, heads/tensor, size]
    const auto q = reshape<batch, n.context, n.heads, size>(slice<2, 0, 1>(all));
    const auto k = reshape<batch, n.context, n.heads, size>(slice<2, 1, 2>(all));
    const auto v = reshape<batch, n.context, n.heads, size>(slice<2, 2, 3>(all));
    return dropout(matmul<2>(attention(q, k, v), out) + out_bias, n.dropped / 100.0);  // [b/data, s, h] +tensor
  }
};

template <Sizes n>
struct Mlp {
  Parameter<float, Shape<n.width, 4 * n.width / tensor>> up;
  Parameter<float, Shape<4 * n.width / tensor>> up_bias{zeros};
  Parameter<float, Shape<4 * n.width / tensor, n.width>> down{scaled_normal(0.02, static_cast<int>(n.layers))};
  Parameter<float, Shape<n.width>> down_bias{zeros};
  constexpr auto operator()(Distributed auto x) const {
    return dropout(matmul(gelu(matmul(x, up) + up_bias), down) + down_bias, n.dropped / 100.0);
  }
};

template <Sizes n>
struct Block {
  Norm<n> first;
  Attention<n> attention;
  Norm<n> second;
  Mlp<n> mlp;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = x + attention(first(x));
    return y + mlp(second(y));
  }
};

template <Sizes n>
using SplitVocabulary = Shape<n.vocabulary / tensor, n.width>;
template <Sizes n>
using WholeVocabulary = Shape<n.vocabulary, n.width>;

template <Sizes n, class HiddenState = Plain<n>, class Table = SplitVocabulary<n>>
struct Gpt {
  Parameter<float, Table> table;
  Parameter<float, Shape<n.context, n.width>> position;
  Layers<n.layers, Block<n>> blocks;
  Norm<n> last;
  /// The mean loss of predicting `target` from `token`, both [batch/data, context].
  constexpr auto operator()(Distributed auto token, Distributed auto target) const {
    const auto x = blocks(HiddenState::of(dropout(embedding(token, table) + position, n.dropped / 100.0)));
    return mean(cross_entropy(matmul(last(x), transpose(table)), target));
  }
};

template <Sizes n>
using Tokens = Tensor<int, Shape<n.batch / data, n.context>>;
template <Sizes n, class HiddenState = Plain<n>, class Table = SplitVocabulary<n>>
using Trained = Training<Gpt<n, HiddenState, Table>, AdamW, Tokens<n>, Tokens<n>>;

}  // namespace gpt
