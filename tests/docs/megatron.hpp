// The programs of docs/megatron.md. What the document says of them is asserted here; print_megatron.hpp prints their
// plans, tests/linear_layers.cpp runs the linear layers.
#pragma once
#include <parallel/model/gpt2.hpp>
#include <parallel/model/llama.hpp>
#include <parallel/parallel.hpp>

namespace megatron {

using namespace parallel;
using namespace parallel::axes;

constexpr Mesh two{tensor = 2};

// One matrix: by columns, each rank has a part of the result.
struct Column {
  Parameter<float, Shape<6, 8 / tensor>> weight;
  Parameter<float, Shape<8 / tensor>> bias;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, weight) + bias; }  // f32[4, 8/tensor]
};
struct GatheredColumn {
  Column column;
  constexpr auto operator()(Distributed auto x) const { return to<On<tensor, Invariant>>(column(x)); }  // f32[4, 8]
};
struct WholeBias {
  Parameter<float, Shape<6, 8 / tensor>> weight;
  Parameter<float, Shape<8>> bias;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, weight) + bias; }
};

// By rows, each rank has a term of the result.
struct Row {
  Parameter<float, Shape<8 / tensor, 6>> weight;
  Parameter<float, Shape<6>> bias;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, weight) + bias; }  // f32[4, 6] +tensor
};

// Two matrices: what the first gives is what the second takes.
struct Pair {
  Column up;
  Row down;
  constexpr auto operator()(Distributed auto x) const { return down(gelu(up(x))); }
};
struct GatheredPair {
  GatheredColumn up;
  Row down;
  constexpr auto operator()(Distributed auto x) const { return down(gelu(up(x))); }
};
/// The same pair between slices of rows, as under sequence parallelism.
struct SlicedPair {
  Pair pair;
  constexpr auto operator()(Distributed auto x) const { return to<On<tensor, Split<0>>>(pair(x)); }  // f32[4/tensor, 6]
};

template <class Layer>
struct Alone {
  Layer layer;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layer(x))); }
};
/// A layer behind an input that wants its gradient, as the layers before it would.
template <class Layer, class X>
using Trained = Training<Alone<Layer>, Sgd, Wanted<float, X>>;
template <class Layer, Dim... x>
constexpr auto& alone = plan<Trained<Layer, Shape<x...>>, two>;

constexpr CollectiveRow in = all_reduce(tensor).of(4 * 4 * 6), loss = all_reduce(tensor).of(4);
static_assert(proven<alone<Column, 4, 6>.forward.is(loss)>);
static_assert(proven<alone<Column, 4, 6>.backward.is(in)>);  // f
static_assert(proven<alone<GatheredColumn, 4, 6>.forward.is(all_gather(tensor).of(4 * 4 * 8))>);
static_assert(proven<alone<GatheredColumn, 4, 6>.backward.is(in)>);  // the gradient of what was gathered is sliced
static_assert(proven<alone<WholeBias, 4, 6>.backward.is(in, all_gather(tensor).of(4 * 8))>);
static_assert(proven<alone<Row, 4, 8 / tensor>.forward.is(in)>);  // g
static_assert(proven<alone<Row, 4, 8 / tensor>.backward.is()>);
static_assert(proven<alone<Row, 4, 8>.forward.is(in)>);  // what enters is sliced
static_assert(proven<alone<Row, 4, 8>.backward.is(all_gather(tensor).of(4 * 4 * 8))>);
static_assert(proven<alone<Pair, 4, 6>.forward.is(in)>);
static_assert(proven<alone<Pair, 4, 6>.backward.is(in)>);
static_assert(proven<alone<GatheredPair, 4, 6>.forward.is(all_gather(tensor), in)>);
static_assert(proven<alone<GatheredPair, 4, 6>.backward.is(all_gather(tensor), in)>);
static_assert(proven<alone<SlicedPair, 4 / tensor, 6>.forward.is(all_gather(tensor), reduce_scatter(tensor), loss)>);
static_assert(proven<alone<SlicedPair, 4 / tensor, 6>.backward.is(all_gather(tensor), reduce_scatter(tensor))>);

// One block of GPT-2.
constexpr int examples = 8;
constexpr models::Gpt2Sizes tensor_parallel{.context = 16,
                                            .channels = 32,
                                            .heads = 4 / tensor,
                                            .inner = 128 / tensor,
                                            .vocabulary = models::padded(61, 8) / tensor,
                                            .classes = 61,
                                            .layers = 4,
                                            .dropped = 0};
using Block = models::Gpt2<tensor_parallel>::Block;
constexpr auto& block = plan<Trained<Block, Shape<examples, 16, 32>>, two>;
static_assert(proven<block.forward.is(all_reduce(tensor).of(16_KiB), all_reduce(tensor).of(16_KiB))>);
static_assert(proven<block.backward.is(all_reduce(tensor).of(16_KiB), all_reduce(tensor).of(16_KiB))>);

// The whole model, and one annotation after the other.
using Tokens = Tensor<int, Shape<examples, 16>>;
template <models::Gpt2Sizes n>
using Step = Training<models::Gpt2<n>, AdamW, Tokens, Tokens>;

constexpr models::Gpt2Sizes serial = [] {
  models::Gpt2Sizes n = tensor_parallel;
  n.heads = 4;
  n.inner = 128;
  n.vocabulary = 64;
  return n;
}();
constexpr models::Gpt2Sizes only_heads = [] {
  models::Gpt2Sizes n = serial;
  n.heads = 4 / tensor;
  return n;
}();
constexpr models::Gpt2Sizes only_inner = [] {
  models::Gpt2Sizes n = serial;
  n.inner = 128 / tensor;
  return n;
}();
constexpr models::Gpt2Sizes only_vocabulary = [] {
  models::Gpt2Sizes n = serial;
  n.vocabulary = 64 / tensor;
  return n;
}();
constexpr models::Gpt2Sizes only_context = [] {
  models::Gpt2Sizes n = serial;
  n.context = 16 / tensor;
  return n;
}();
constexpr models::Gpt2Sizes sequence_parallel = [] {
  models::Gpt2Sizes n = tensor_parallel;
  n.context = 16 / tensor;
  return n;
}();

// Off: by the mesh, or without annotations.
static_assert(equals<plan<Step<tensor_parallel>, Mesh{tensor = 1}>.calls(), 0>);
static_assert(equals<plan<Step<serial>, Mesh{}>.calls(), 0>);

// What was gathered is kept for the backward pass, or gathered again.
template <models::Gpt2Sizes n>
struct KeepsSlices {
  models::LayerNorm<n.channels, float> norm1;
  typename models::Gpt2<n>::Attention attention;
  models::LayerNorm<n.channels, float> norm2;
  typename models::Gpt2<n>::Mlp mlp;

  static constexpr auto gathered(Distributed auto x) { return recompute(to<On<tensor, Broadcast>>(x)); }
  constexpr auto operator()(Distributed auto x) const {
    const auto y = x + dropout(attention(gathered(norm1(x))), n.drop());
    return y + dropout(mlp(gathered(norm2(y))), n.drop());
  }
};
constexpr auto& kept = plan<Trained<Block, Shape<examples, 16 / tensor, 32>>, two>;
constexpr auto& gathered_again = plan<Trained<KeepsSlices<tensor_parallel>, Shape<examples, 16 / tensor, 32>>, two>;
static_assert(equals<gathered_again.backward.calls(all_gather()), kept.backward.calls(all_gather()) + 2>);
static_assert(equals<kept.memory.of(Use::activations) - gathered_again.memory.of(Use::activations), 2 * 16_KiB / 2>);

// GPT-3's layer among eight ranks, so many of them, at the layer's two ways to lie.
constexpr models::Gpt2Sizes gpt3{.context = 2048,
                                 .channels = 12288,
                                 .heads = 96 / tensor,
                                 .inner = 4 * 12288 / tensor,
                                 .vocabulary = 51200 / tensor,
                                 .layers = 96,
                                 .dropped = 0};
template <class Layer, int layers>
struct Stack {
  Layers<layers, Layer> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
template <class Layer, int layers, Dim context>
using TrainedStack = Training<Stack<Layer, layers>, AdamW, Wanted<float, Shape<1, context, 12288>>>;

// Vocabulary parallel: the table, tied as embedding and head, and its loss.
struct Predictor {
  Parameter<float, Shape<models::padded(61, 8) / tensor, 32>> token;  // 64 rows, of which 61 are classes
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    const auto hidden = to<Shape<8, 16, 32>>(embedding(tokens, token));  // a pending sum, completed
    // logits f32[8, 16, 64/tensor] stay where they are
    return mean(cross_entropy<61>(matmul(hidden, transpose(token)), targets));
  }
};
constexpr auto& predictor = plan<Training<Predictor, Sgd, Tokens, Tokens>, two>;
static_assert(equals<predictor.forward.calls(all_reduce(tensor).of(4 * 8 * 16)), 3>);  // three numbers a token
static_assert(proven<predictor.backward.is(all_reduce(tensor).of(16_KiB))>);           // f, before the head
static_assert(proven<predictor.never(all_gather())>);

// Grouped queries: more ranks than key heads.
constexpr models::LlamaSizes grouped{.context = 16,
                                     .channels = 32,
                                     .heads = 8 / tensor,
                                     .key_heads = 2,
                                     .inner = 64 / tensor,
                                     .vocabulary = 64 / tensor};
constexpr auto& few_keys = plan<Trained<models::Llama<grouped>::Attention, Shape<examples, 16, 32>>, Mesh{tensor = 4}>;
static_assert(proven<few_keys.forward.is(all_reduce(tensor).of(16_KiB))>);
static_assert(proven<few_keys.backward.is(all_reduce(tensor).of(4_KiB), all_reduce(tensor).of(4_KiB),
                                          all_reduce(tensor).of(16_KiB))>);

// Generation, a token at a time.
struct Generation {
  models::Gpt2<tensor_parallel> model;
  constexpr auto operator()(Distributed auto tokens, Distributed auto position) const {
    return model(tokens, position);
  }
};
constexpr auto& token = plan<Evaluation<Generation, Tensor<int, Shape<examples, 1>>, Tensor<int, Shape<>>>, two>;
static_assert(proven<token.uses_only(all_reduce(tensor))>);

}  // namespace megatron
