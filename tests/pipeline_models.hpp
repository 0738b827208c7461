// A GPT whose layers are shared out over stages, with everything that a pipeline has to bring along: a tied embedding,
// dropout by layer and micro-batch, a padding mask that every layer takes, tensor and data parallelism.
#pragma once
#include <parallel/model/optimizer.hpp>
#include <parallel/parallel.hpp>

namespace pipelines {

using namespace parallel;
using namespace parallel::axes;

inline constexpr int vocabulary = 16, context = 8, channels = 16, heads = 4, layers = 8, batch = 4;

template <class T, Dim positions>
struct Block {
  Parameter<T, Shape<channels>> gain1{ones}, gain2{ones};
  Parameter<T, Shape<channels, 3, heads / tensor, channels / heads>> qkv{normal(0.3)};
  Parameter<T, Shape<heads / tensor, channels / heads, channels>> projection{normal(0.3)};
  Parameter<T, Shape<channels, 2 * channels / tensor>> up{normal(0.3)};
  Parameter<T, Shape<2 * channels / tensor, channels>> down{normal(0.3)};
  Parameter<T, Shape<channels>> bias{zeros};
  constexpr auto operator()(Distributed auto x, Distributed auto padding) const {
    constexpr Dim examples = decltype(x)::type.layout.dims[0];
    const auto projected = matmul(layer_norm(x, gain1), qkv);
    const auto attended = matmul<2>(
        masked_attention(take<2, 0>(projected), take<2, 1>(projected), take<2, 2>(projected), padding), projection);
    const auto y = x + dropout(to<Shape<examples, positions, channels>>(attended), 0.1);
    return y + to<Shape<examples, positions, channels>>(matmul(gelu(matmul(layer_norm(y, gain2), up)), down)) + bias;
  }
};

template <class T, Dim depth = layers / stage, Dim positions = context, class... Crossing>
struct Gpt {
  Parameter<T, Shape<vocabulary / tensor, channels>> token{normal(0.3)};
  Parameter<T, Shape<context, channels>> position{normal(0.3)};
  Layers<depth, Block<T, positions>, Crossing...> blocks;
  Parameter<T, Shape<channels>> gain{ones};
  constexpr auto operator()(Distributed auto tokens, Distributed auto padding, Distributed auto targets) const {
    constexpr Dim examples = decltype(tokens)::type.layout.dims[0];
    const auto hidden = to<Shape<examples, positions, channels>>(embedding(tokens, token) + position);
    return mean(cross_entropy(matmul(layer_norm(blocks(hidden, padding), gain), transpose(token)), targets));
  }
};
using Tokens = Tensor<int, Shape<batch / data, context>>;

}  // namespace pipelines
