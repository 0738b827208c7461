// GPTs of the sizes that the literature prints, with its choices: tensor and sequence parallelism, layers on stages, what is saved of a layer.
#pragma once
#include <parallel/parallel.hpp>
#include <parallel/plan/predict.hpp>

namespace published {
using namespace parallel;
using namespace parallel::axes;

/// What the backward pass finds of a layer: everything; all but attention's scores and what tensor parallelism gathers (selective recomputation,
/// Korthikanti et al., 2022); or its input only.
enum class Saved { everything, selective, inputs };

struct Gpt {
  std::int64_t heads, width, layers;
  int micro_batches = 1;
  std::int64_t batch = 1;  ///< of one micro-batch, over all replicas
  bool sequence = false;
  Saved saved = Saved::everything;
  std::int64_t context = 2048, vocabulary = 51200;
  constexpr std::int64_t size() const { return width / heads; }
  constexpr Dim examples() const { return batch > 1 ? batch / data : Dim(batch); }
  constexpr Dim positions() const { return sequence ? context / tensor : Dim(context); }
};

template <Gpt n, class T>
struct Norm {
  Parameter<T, Shape<n.width>> gain{ones};
  Parameter<T, Shape<n.width>> shift{zeros};
  constexpr auto operator()(Distributed auto x) const { return layer_norm(x, gain, shift); }
};

/// Of a value within a layer: made again from the layer's input where nothing but that is saved.
template <Gpt n>
constexpr auto within(Distributed auto x) {
  if constexpr (n.saved == Saved::inputs)
    return recompute(x);
  else
    return x;
}
/// Of attention's scores and of what is gathered: made again also where the others are saved.
template <Gpt n>
constexpr auto large(Distributed auto x) {
  if constexpr (n.saved == Saved::everything)
    return x;
  else
    return recompute(x);
}
/// As every product takes it: whole, used differently by each rank of `tensor`.
template <Gpt n>
constexpr auto entering(Distributed auto x) {
  return large<n>(to<On<tensor, Broadcast>>(x));
}
/// As it lies between: a sum over `tensor` completed.
template <Gpt n>
constexpr auto between(Distributed auto x) {
  return to<Shape<n.examples(), n.positions(), n.width>>(x);
}

/// Attention as it was computed before its scores stayed in registers: q, k, v[batch, positions, heads, size].
template <Gpt n>
constexpr auto with_scores(Distributed auto q, Distributed auto k, Distributed auto v) {
  const auto heads = within<n>(transpose<0, 2, 1, 3>(q)), values = within<n>(transpose<0, 2, 1, 3>(v));
  const auto keys = within<n>(transpose<0, 2, 3, 1>(k));
  const auto probabilities = large<n>(softmax<3>(large<n>(batched_matmul(heads, keys))));
  return within<n>(transpose<0, 2, 1, 3>(within<n>(batched_matmul(large<n>(dropout(probabilities, 0.1)), values))));
}

template <Gpt n, class T>
struct Block {
  Norm<n, T> norm1, norm2;
  Parameter<T, Shape<n.width, n.heads / tensor, n.size()>> query, key, value;
  Parameter<T, Shape<n.heads / tensor, n.size()>> query_bias{zeros}, key_bias{zeros}, value_bias{zeros};
  Parameter<T, Shape<n.heads / tensor, n.size(), n.width>> projection;
  Parameter<T, Shape<n.width>> projection_bias{zeros};
  Parameter<T, Shape<n.width, 4 * n.width / tensor>> up;
  Parameter<T, Shape<4 * n.width / tensor>> up_bias{zeros};
  Parameter<T, Shape<4 * n.width / tensor, n.width>> down;
  Parameter<T, Shape<n.width>> down_bias{zeros};

  constexpr auto operator()(Distributed auto x) const {
    const auto a = entering<n>(within<n>(norm1(x)));
    const auto q = within<n>(within<n>(matmul(a, query)) + query_bias), k = within<n>(within<n>(matmul(a, key)) + key_bias);
    const auto attended = within<n>(matmul<2>(with_scores<n>(q, k, within<n>(within<n>(matmul(a, value)) + value_bias)), projection));
    const auto y = within<n>(x + within<n>(dropout(within<n>(within<n>(between<n>(attended)) + projection_bias), 0.1)));
    const auto hidden = within<n>(within<n>(matmul(entering<n>(within<n>(norm2(y))), up)) + up_bias);
    return y + dropout(between<n>(matmul(within<n>(gelu(hidden)), down)) + down_bias, 0.1);
  }
};

template <Gpt n, class T = bfloat16>
struct Model {
  Parameter<T, Shape<n.vocabulary / tensor, n.width>> token;
  Parameter<T, Shape<n.context, n.width>> place;
  Layers<n.layers / stage, Block<n, T>> blocks;
  Norm<n, T> last;
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    const auto x = to<Shape<n.examples(), n.positions(), n.width>>(dropout(embedding(tokens, token) + place, 0.1));
    return mean(cross_entropy(matmul(entering<n>(last(blocks(x))), transpose(token)), targets));
  }
};

template <Gpt n>
using Tokens = Tensor<int, Shape<n.examples(), n.context>>;
template <Gpt n, class T = bfloat16>
using Step = Accumulate<n.micro_batches, Training<Model<n, T>, AdamW, Tokens<n>, Tokens<n>>>;

}  // namespace published
