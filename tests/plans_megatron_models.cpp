// Llama, BERT and the encoder-decoder communicate in their layers what GPT-2 does (plans_megatron.cpp): the layout is
// Megatron's, whatever the layer.
#include <doctest/doctest.h>

#include <parallel/model/bert.hpp>
#include <parallel/model/encoder_decoder.hpp>
#include <parallel/model/llama.hpp>

#include "between.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using between::TrainedBetween;

namespace {

constexpr int layers = 2, t = 8;
constexpr std::int64_t b = 1, s = 2048, h = 12288, bsh = b * s * h, element = sizeof(float);
constexpr Mesh ranks{tensor = t};
using Whole = Shape<b, s, h>;
using Sliced = Shape<b, s / tensor, h>;

constexpr CollectiveRow reductions = layers * all_reduce(tensor).of(element * bsh),
                        gathers = layers * all_gather(tensor).of(element * bsh),
                        scatters = layers * reduce_scatter(tensor).of(element * bsh);
/// Gradients of so many gains and shifts of norms in a layer, in one call.
constexpr CollectiveRow gains(int in_a_layer) { return all_reduce(tensor).of(element * layers * in_a_layer * h); }
constexpr CollectiveRow loss = all_reduce(tensor).of(element), norm_of_gradients = all_reduce(tensor).of(8);
constexpr WrittenPlan whole_plan{
    .forward = {reductions, reductions}, .backward = {reductions, reductions}, .optimizer = {norm_of_gradients}};
constexpr WrittenPlan sliced_plan(int of_norms) {
  return {.forward = {gathers, scatters, gathers, scatters, loss},
          .backward = {gathers, scatters, gathers, scatters, gains(of_norms)},
          .optimizer = {norm_of_gradients}};
}

// Llama: no biases, no shifts, three matrices in a perceptron, of which two share what was gathered.
constexpr models::LlamaSizes llama{.context = s / tensor,
                                   .channels = h,
                                   .heads = 96 / tensor,
                                   .key_heads = 8 / tensor,
                                   .inner = 32768 / tensor,
                                   .vocabulary = 128256 / tensor};
using LlamaBlock = models::Llama<llama>::Block;
static_assert(proven<plan<TrainedBetween<LlamaBlock, layers, Whole>, ranks>.is(whole_plan)>);
static_assert(proven<plan<TrainedBetween<LlamaBlock, layers, Sliced>, ranks>.is(sliced_plan(2))>);

// Fewer key heads than ranks: no axis can split them, so every rank has all of them; their gradients are one more
// reduction each.
constexpr models::LlamaSizes few = [] {
  models::LlamaSizes n = llama;
  n.key_heads = 4;
  return n;
}();
using FewBlock = models::Llama<few>::Block;
constexpr std::int64_t keys = b * s * 4 * llama.size();
constexpr CollectiveRow of_keys = layers * all_reduce(tensor).of(element * keys);
static_assert(proven<plan<TrainedBetween<FewBlock, layers, Whole>, ranks>.is({.forward = {reductions, reductions},
                                                                              .backward = {reductions, of_keys, of_keys,
                                                                                           reductions},
                                                                              .optimizer = {norm_of_gradients}})>);
// Along a split sequence keys and values are made of slices and gathered; their weights saw slices, so the gradients of
// these are reduced, layer by layer.
constexpr CollectiveRow gathered_keys = layers * all_gather(tensor).of(element * keys),
                        scattered_keys = layers * reduce_scatter(tensor).of(element * keys);
constexpr CollectiveRow weight_of_keys = layers * all_reduce(tensor).of(element * h * 4 * llama.size());
static_assert(proven<plan<TrainedBetween<FewBlock, layers, Sliced>, ranks>.is(
                  {.forward = {gathers, gathered_keys, gathered_keys, scatters, gathers, scatters, loss},
                   .backward = {gathers, scatters, gathers, scattered_keys, scattered_keys, weight_of_keys,
                                weight_of_keys, scatters, gains(2)},
                   .optimizer = {norm_of_gradients}})>);

// BERT: norms behind the residual sums, padding.
constexpr models::BertSizes bert{.context = s / tensor, .channels = h, .heads = 96 / tensor, .inner = 4 * h / tensor};
using BertBlock = models::Bert<bert>::Block;
using Seen = Tensor<int, Shape<b, s>>;
static_assert(proven<plan<TrainedBetween<BertBlock, layers, Whole, Seen>, ranks>.is(whole_plan)>);
static_assert(proven<plan<TrainedBetween<BertBlock, layers, Sliced, Seen>, ranks>.is(sliced_plan(4))>);

// The encoder's layer is as BERT's. The decoder's has a third pair, whose keys and values are made of what the encoder
// read: gathered once for all layers, its gradient reduced once for all.
constexpr models::EncoderDecoderSizes both{
    .context = s / tensor, .channels = h, .heads = 96 / tensor, .inner = 4 * h / tensor};
using Encoding = models::EncoderDecoder<both>::Encoding;
using Decoding = models::EncoderDecoder<both>::Decoding;
static_assert(proven<plan<TrainedBetween<Encoding, layers, Whole, Seen>, ranks>.is(whole_plan)>);
static_assert(proven<plan<TrainedBetween<Encoding, layers, Sliced, Seen>, ranks>.is(sliced_plan(4))>);

struct Decoder {
  Layers<layers, Decoding> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto read, Distributed auto seen,
                            Distributed auto y) const {
    return mean(square(blocks(x, models::whole_sequence(read), seen) - y));
  }
};
template <class Hidden>
using TrainedDecoder =
    Training<Decoder, AdamW, Wanted<float, Hidden>, Wanted<float, Hidden>, Seen, Tensor<float, Hidden>>;
constexpr CollectiveRow read_once = all_reduce(tensor).of(element * bsh),
                        gathered_once = all_gather(tensor).of(element * bsh),
                        scattered_once = reduce_scatter(tensor).of(element * bsh);
static_assert(proven<plan<TrainedDecoder<Whole>, ranks>.is({.forward = {reductions, reductions, reductions},
                                                            .backward = {reductions, reductions, reductions, read_once},
                                                            .optimizer = {norm_of_gradients}})>);
static_assert(proven<plan<TrainedDecoder<Sliced>, ranks>.is(
                  {.forward = {gathered_once, gathers, scatters, gathers, scatters, gathers, scatters, loss},
                   .backward = {gathers, scatters, gathers, scatters, gathers, scatters, scattered_once, gains(6)},
                   .optimizer = {norm_of_gradients}})>);

}  // namespace

TEST_CASE("the plans of the models' layers at start-up are the compiler's") {
  CHECK(derive<TrainedBetween<LlamaBlock, layers, Sliced>>(ranks)->is(sliced_plan(2)));
  CHECK(derive<TrainedBetween<BertBlock, layers, Sliced, Seen>>(ranks)->is(sliced_plan(4)));
  CHECK(derive<TrainedBetween<Encoding, layers, Whole, Seen>>(ranks)->is(whole_plan));
}
