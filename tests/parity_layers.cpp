// Layers alone against PyTorch: what they give, and the gradients of parameters and inputs.
#include <parallel/model/bert.hpp>
#include <parallel/model/encoder_decoder.hpp>
#include <parallel/model/gpt2.hpp>
#include <parallel/model/llama.hpp>

#include "parity.hpp"

namespace {

using namespace parity;

// Not one template: nvcc takes no alias of an extent.
using Whole = Wanted<float, Shape<batch / data, whole, channels>>;
using Sliced = Wanted<float, Shape<batch / data, sliced, channels>>;
using Inner = Wanted<float, Shape<batch / data, positions, inner / tensor>>;
/// A layer's training, behind the cotangent of its result.
template <class Layer, class Cotangent, class... Input>
using Step = Training<Weighed<Layer>, KeepGradients, Cotangent, Input...>;

struct Column {
  Parameter<float, Shape<channels, inner / tensor>> weight;
  Parameter<float, Shape<inner / tensor>> bias;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, weight) + bias; }
};
template <Dim context>
struct Row {
  Parameter<float, Shape<inner / tensor, channels>> weight;
  Parameter<float, Shape<channels>> bias;
  constexpr auto operator()(Distributed auto x) const { return models::hidden<context>(matmul(x, weight) + bias); }
};

template <Dim context>
constexpr models::Gpt2Sizes gpt2{.context = context,
                                 .channels = channels,
                                 .heads = 4 / tensor,
                                 .inner = inner / tensor,
                                 .vocabulary = vocabulary / tensor,
                                 .classes = vocabulary,
                                 .dropped = 0};
template <Dim context>
constexpr models::LlamaSizes llama{.context = context,
                                   .channels = channels,
                                   .heads = 4 / tensor,
                                   .key_heads = 2,
                                   .inner = inner / tensor,
                                   .vocabulary = vocabulary / tensor,
                                   .base = 100};
template <Dim context>
constexpr models::BertSizes bert{.context = context,
                                 .channels = channels,
                                 .heads = 4 / tensor,
                                 .inner = inner / tensor,
                                 .vocabulary = vocabulary / tensor,
                                 .classes = vocabulary,
                                 .dropped = 0,
                                 .epsilon = 5};
template <Dim context>
constexpr models::EncoderDecoderSizes translating{.context = context,
                                                  .channels = channels,
                                                  .heads = 4 / tensor,
                                                  .inner = inner / tensor,
                                                  .vocabulary = vocabulary / tensor,
                                                  .classes = vocabulary,
                                                  .dropped = 0};

}  // namespace

TEST_CASE("linear layers are PyTorch's, by columns, by rows, and one behind the other") {
  check_layer<Step<Column, Inner, Whole>>("column", {"x"});
  check_layer<Step<Column, Inner, Sliced>>("column", {"x"});
  check_layer<Step<Row<whole>, Whole, Inner>>("row", {"x"});
  check_layer<Step<Row<sliced>, Sliced, Inner>>("row", {"x"});
  check_layer<Step<models::Gpt2<gpt2<whole>>::Mlp, Whole, Whole>>("pair", {"x"});
  check_layer<Step<models::Gpt2<gpt2<sliced>>::Mlp, Sliced, Sliced>>("pair", {"x"});
}
TEST_CASE("GPT-2's block is PyTorch's") {
  check_layer<Step<models::Gpt2<gpt2<whole>>::Block, Whole, Whole>>("gpt2_block", {"x"});
  check_layer<Step<models::Gpt2<gpt2<sliced>>::Block, Sliced, Sliced>>("gpt2_block", {"x"});
}
TEST_CASE("Llama's block is PyTorch's") {
  check_layer<Step<models::Llama<llama<whole>>::Block, Whole, Whole>>("llama_block", {"x"});
  check_layer<Step<models::Llama<llama<sliced>>::Block, Sliced, Sliced>>("llama_block", {"x"});
}
TEST_CASE("BERT's block is PyTorch's") {
  check_layer<Step<models::Bert<bert<whole>>::Block, Whole, Whole, Tokens>>("bert_block", {"x", "seen"});
  check_layer<Step<models::Bert<bert<sliced>>::Block, Sliced, Sliced, Tokens>>("bert_block", {"x", "seen"});
}
TEST_CASE("the encoder-decoder's blocks are PyTorch's") {
  check_layer<Step<models::EncoderDecoder<translating<whole>>::Encoding, Whole, Whole, Tokens>>("encoding",
                                                                                                {"x", "seen"});
  check_layer<Step<models::EncoderDecoder<translating<sliced>>::Encoding, Sliced, Sliced, Tokens>>("encoding",
                                                                                                   {"x", "seen"});
  check_layer<Step<models::EncoderDecoder<translating<whole>>::Decoding, Whole, Whole, Whole, Tokens>>(
      "decoding", {"x", "source", "seen"});
  check_layer<Step<models::EncoderDecoder<translating<sliced>>::Decoding, Sliced, Sliced, Sliced, Tokens>>(
      "decoding", {"x", "source", "seen"});
}
