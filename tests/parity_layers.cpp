// Layers alone against PyTorch: what they give, and the gradients of parameters and inputs.
#include <parallel/model/bert.hpp>
#include <parallel/model/encoder_decoder.hpp>
#include <parallel/model/gpt2.hpp>
#include <parallel/model/llama.hpp>

#include "parity.hpp"

namespace {

using namespace parity;

template <Dim context>
using AHidden = Wanted<float, Hidden<context>>;
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
  check_layer<Step<Column, Inner, AHidden<whole>>>("column", {"x"});
  check_layer<Step<Column, Inner, AHidden<sliced>>>("column", {"x"});
  check_layer<Step<Row<whole>, AHidden<whole>, Inner>>("row", {"x"});
  check_layer<Step<Row<sliced>, AHidden<sliced>, Inner>>("row", {"x"});
  check_layer<Step<models::Gpt2<gpt2<whole>>::Mlp, AHidden<whole>, AHidden<whole>>>("pair", {"x"});
  check_layer<Step<models::Gpt2<gpt2<sliced>>::Mlp, AHidden<sliced>, AHidden<sliced>>>("pair", {"x"});
}
TEST_CASE("GPT-2's block is PyTorch's") {
  check_layer<Step<models::Gpt2<gpt2<whole>>::Block, AHidden<whole>, AHidden<whole>>>("gpt2_block", {"x"});
  check_layer<Step<models::Gpt2<gpt2<sliced>>::Block, AHidden<sliced>, AHidden<sliced>>>("gpt2_block", {"x"});
}
TEST_CASE("Llama's block is PyTorch's") {
  check_layer<Step<models::Llama<llama<whole>>::Block, AHidden<whole>, AHidden<whole>>>("llama_block", {"x"});
  check_layer<Step<models::Llama<llama<sliced>>::Block, AHidden<sliced>, AHidden<sliced>>>("llama_block", {"x"});
}
TEST_CASE("BERT's block is PyTorch's") {
  check_layer<Step<models::Bert<bert<whole>>::Block, AHidden<whole>, AHidden<whole>, Tokens>>("bert_block",
                                                                                              {"x", "seen"});
  check_layer<Step<models::Bert<bert<sliced>>::Block, AHidden<sliced>, AHidden<sliced>, Tokens>>("bert_block",
                                                                                                 {"x", "seen"});
}
TEST_CASE("the encoder-decoder's blocks are PyTorch's") {
  check_layer<Step<models::EncoderDecoder<translating<whole>>::Encoding, AHidden<whole>, AHidden<whole>, Tokens>>(
      "encoding", {"x", "seen"});
  check_layer<Step<models::EncoderDecoder<translating<sliced>>::Encoding, AHidden<sliced>, AHidden<sliced>, Tokens>>(
      "encoding", {"x", "seen"});
  check_layer<Step<models::EncoderDecoder<translating<whole>>::Decoding, AHidden<whole>, AHidden<whole>, AHidden<whole>,
                   Tokens>>("decoding", {"x", "source", "seen"});
  check_layer<Step<models::EncoderDecoder<translating<sliced>>::Decoding, AHidden<sliced>, AHidden<sliced>,
                   AHidden<sliced>, Tokens>>("decoding", {"x", "source", "seen"});
}
