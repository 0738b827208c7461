// What a layer of models::Gpt2 communicates at GPT-3's size, under Megatron-LM's tensor parallelism (Shoeybi et al.,
// 2019; Narayanan et al., 2021) and sequence parallelism (Korthikanti et al., 2022): the published collectives and
// volumes, and not one collective more. docs/megatron.md derives them.
#include <doctest/doctest.h>

#include <parallel/model/gpt2.hpp>

#include "between.hpp"

using namespace parallel;
using namespace parallel::axes;
using between::TrainedBetween;

namespace {

constexpr int layers = 2, micro_batches = 3, t = 8;
constexpr std::int64_t b = 1, s = 2048, h = 12288, bsh = b * s * h, element = sizeof(float);
constexpr Mesh ranks{tensor = t};
constexpr models::Gpt2Sizes gpt3{.context = s / tensor,
                                 .channels = h,
                                 .heads = 96 / tensor,
                                 .inner = 4 * h / tensor,
                                 .vocabulary = 51200 / tensor,
                                 .layers = 96};
using Block = models::Gpt2<gpt3>::Block;  // with biases and dropout
using Whole = TrainedBetween<Block, layers, Shape<b, s, h>>;

constexpr CollectiveRow reduction = all_reduce(tensor).of(element * bsh), gather = all_gather(tensor).of(element * bsh),
                        scatter = reduce_scatter(tensor).of(element * bsh);
constexpr CollectiveRow norm_of_gradients = all_reduce(tensor).of(8), loss = all_reduce(tensor).of(element);
/// Elements that a rank sends for one layer and one micro-batch.
constexpr double elements_sent(const Plan& p, const CollectiveRow& which, int times = layers) {
  return (p.forward.sent(which) + p.backward.sent(which)) / (element * times);
}

// Tensor parallelism: two all-reduces forward and two backward of bsh elements, and nothing else: biases of column
// parallel weights are split with them, biases of row parallel ones join the pending sum, norms are computed alike by
// all ranks.
constexpr auto& whole = plan<Whole, ranks>;
static_assert(proven<whole.is({.forward = {layers * reduction, layers* reduction},
                               .backward = {layers * reduction, layers* reduction},
                               .optimizer = {norm_of_gradients}})>);
static_assert(equals<elements_sent(whole, tensor), 176'160'768>);
static_assert(8 * bsh * (t - 1) / t == 176'160'768);

// Each micro-batch the same, and nothing more at their end.
constexpr auto& accumulated = plan<Accumulate<micro_batches, Whole>, ranks>;
static_assert(proven<accumulated.is({.forward = {micro_batches * layers * reduction, micro_batches* layers* reduction},
                                     .backward = {micro_batches * layers * reduction, micro_batches* layers* reduction},
                                     .optimizer = {norm_of_gradients}})>);
static_assert(equals<elements_sent(accumulated, tensor, micro_batches* layers), 176'160'768>);

// Sequence parallelism: four all-gathers and four reduce-scatters of the same bytes. Besides, the loss, because its
// input is split here; and of size h the gradients of gains and shifts, which saw slices: one call for all of all
// layers.
template <class Of>
using Sliced = TrainedBetween<Of, layers, Shape<b, s / tensor, h>>;
constexpr CollectiveRow gains = all_reduce(tensor).of(element * layers * 4 * h);
constexpr auto& sliced = plan<Sliced<Block>, ranks>;
static_assert(proven<sliced.is({.forward = {layers * gather, layers* scatter, layers* gather, layers* scatter, loss},
                                .backward = {layers * gather, layers* scatter, layers* gather, layers* scatter, gains},
                                .optimizer = {norm_of_gradients}})>);
constexpr double hidden_sent(const Plan& p, int times = layers) {
  return elements_sent(p, gather, times) + elements_sent(p, scatter, times);
}
static_assert(equals<hidden_sent(sliced), 176'160'768>);
static_assert(equals<elements_sent(sliced, gains), 4 * 2 * h*(t - 1) / t>);

// With micro-batches still once a step, as their sums; and once the loss and the norm of all gradients.
constexpr auto& accumulated_slices = plan<Accumulate<micro_batches, Sliced<Block>>, ranks>;
static_assert(equals<hidden_sent(accumulated_slices, micro_batches* layers), 176'160'768>);
static_assert(equals<accumulated_slices.all.calls(gains), 1>);
static_assert(equals<accumulated_slices.all.calls(all_reduce(tensor)), 1 + 1 + 1>);

/// The same block, which keeps its slices for the backward pass instead of what it gathered of them (Korthikanti et
/// al., section 4.2.2).
struct KeepsSlices {
  models::LayerNorm<h, float> norm1;
  models::Gpt2<gpt3>::Attention attention;
  models::LayerNorm<h, float> norm2;
  models::Gpt2<gpt3>::Mlp mlp;
  static constexpr auto gathered(Distributed auto x) { return recompute(to<On<tensor, Broadcast>>(x)); }
  constexpr auto operator()(Distributed auto x) const {
    const auto y = x + dropout(attention(gathered(norm1(x))), gpt3.drop());
    return y + dropout(mlp(gathered(norm2(y))), gpt3.drop());
  }
};
// One all-gather more in the backward pass for each pair, for the gradients of qkv and of up; kept are 2(t - 1)/t bsh
// elements a layer less.
constexpr auto& regathered = plan<Sliced<KeepsSlices>, ranks>;
static_assert(proven<regathered.forward.is(layers* gather, layers* scatter, layers* gather, layers* scatter, loss)>);
static_assert(proven<regathered.backward.is(layers* gather, layers* gather, layers* scatter, layers* gather,
                                            layers* gather, layers* scatter, gains)>);
static_assert(equals<hidden_sent(regathered) - hidden_sent(sliced), 2 * bsh*(t - 1) / t>);
static_assert(equals<sliced.memory.of(Use::activations) - regathered.memory.of(Use::activations),
                     layers * 2 * element * bsh*(t - 1) / t>);

// The whole model. In front of the layers the pending sum of the embedding; behind them the gradient of what the head
// is multiplied with; cross entropy exchanges three numbers a token.
using Tokens = Tensor<int, Shape<b, s>>;
template <models::Gpt2Sizes n>
using Trained = Training<models::Gpt2<n>, AdamW, Tokens, Tokens>;
constexpr models::Gpt2Sizes unsliced = [] {
  models::Gpt2Sizes n = gpt3;
  n.context = s;
  return n;
}();
constexpr CollectiveRow numbers = all_reduce(tensor).of(element * b * s);
static_assert(proven<plan<Trained<unsliced>, ranks>.is({.forward = {reduction, 96 * reduction, 96 * reduction, numbers,
                                                                    numbers, numbers},
                                                        .backward = {reduction, 96 * reduction, 96 * reduction},
                                                        .optimizer = {norm_of_gradients}})>);
constexpr CollectiveRow all_gains = all_reduce(tensor).of(element * (96 * 4 + 2) * h);  // and of the last norm
static_assert(
    proven<plan<Trained<gpt3>, ranks>.is(
        {.forward = {scatter, 96 * gather, 96 * scatter, 96 * gather, 96 * scatter, gather, numbers, numbers, numbers},
         .backward = {scatter, 96 * gather, 96 * scatter, 96 * gather, 96 * scatter, gather, all_gains},
         .optimizer = {norm_of_gradients}})>);

// It is switched off by the mesh: one rank on `tensor` calls nobody.
static_assert(equals<plan<Trained<gpt3>, Mesh{tensor = 1}>.calls(), 0>);

}  // namespace

TEST_CASE("the plans of GPT-3's layers at start-up are the compiler's") {
  CHECK(text(derive<Trained<gpt3>>(ranks).get()) == text(plan<Trained<gpt3>, ranks>));
  CHECK(elements_sent(derive<Accumulate<micro_batches, Whole>>(ranks), tensor, micro_batches * layers) == 176'160'768);
}
