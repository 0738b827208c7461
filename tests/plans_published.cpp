// What the literature prints of the communication of a transformer layer, as the plan has it: GPT-3 175B under
// Megatron-LM's tensor parallelism (Shoeybi et al., 2019; Narayanan et al., 2021) and its sequence parallelism
// (Korthikanti et al., 2022). Planning needs no memory of that size.
#include <doctest/doctest.h>

#include "between.hpp"
#include "gpt_model.hpp"

using namespace gpt;
using between::TrainedBetween;

namespace published {

constexpr Sizes gpt3{.batch = 1, .context = 2048, .width = 12288, .heads = 96, .layers = 96, .dropped = 0};
constexpr std::int64_t bsh = gpt3.batch * gpt3.context * gpt3.width;  // elements of the hidden state
constexpr Mesh eight{tensor = 8};
using Whole = Shape<gpt3.batch, gpt3.context, gpt3.width>;
using Sliced = Shape<gpt3.batch, gpt3.context / tensor, gpt3.width>;
using Step = TrainedBetween<Block<gpt3>, 2, Whole>;

// Tensor parallelism: two all-reduces forward and two backward of bsh elements per layer and micro-batch, and nothing
// else.
constexpr auto& whole = plan<Step, eight>;
constexpr CollectiveRow reductions = 2 * all_reduce(tensor).of(4 * bsh);  // one in each of two layers
static_assert(proven<whole.is({.forward = {reductions, reductions},
                               .backward = {reductions, reductions},
                               .optimizer = {all_reduce(tensor).of(8)}})>);  // the norm of all gradients
constexpr double elements_sent(const Plan& p, const CollectiveRow& which) {
  return (p.forward.sent(which) + p.backward.sent(which)) / 4;
}
static_assert(equals<elements_sent(whole, tensor), 2 * 176'160'768>);
static_assert(8 * bsh * (8 - 1) / 8 == 176'160'768);
static_assert(equals<elements_sent(plan<Accumulate<3, Step>, eight>, tensor), 3 * 2 * 176'160'768>);

// Sequence parallelism: the same bytes as all-gathers and reduce-scatters; besides the loss, and the norms' gains and
// shifts, which saw slices.
template <class Block>
constexpr auto& sliced = plan<TrainedBetween<Block, 2, Sliced>, eight>;
constexpr CollectiveRow gathers = 2 * all_gather(tensor).of(4 * bsh), scatters = 2 * reduce_scatter(tensor).of(4 * bsh);
// gain and shift of two norms in two layers, in one call
constexpr CollectiveRow norms = all_reduce(tensor).of(4 * 2 * 4 * gpt3.width);
static_assert(
    proven<sliced<Block<gpt3>>.is({.forward = {gathers, scatters, gathers, scatters, all_reduce(tensor).of(4)},
                                   .backward = {gathers, scatters, gathers, scatters, norms},
                                   .optimizer = {all_reduce(tensor).of(8)}})>);
constexpr double hidden_sent(const Plan& p) {
  return elements_sent(p, all_gather(tensor)) + elements_sent(p, reduce_scatter(tensor));
}
static_assert(equals<hidden_sent(sliced<Block<gpt3>>), 2 * 176'160'768>);

/// The same block, which keeps for the backward pass its slices instead of what it gathered of them (Korthikanti et
/// al., section 4.2.2).
struct KeepsSlices {
  Norm<gpt3> first;
  Attention<gpt3> attention;
  Norm<gpt3> second;
  Mlp<gpt3> mlp;
  static constexpr auto gathered(Distributed auto x) { return recompute(to<On<tensor, Broadcast>>(x)); }
  constexpr auto operator()(Distributed auto x) const {
    const auto y = x + attention(gathered(first(x)));
    return y + mlp(gathered(second(y)));
  }
};
// One more all-gather in the backward pass for each pair, for the gradients of the weights.
static_assert(proven<sliced<KeepsSlices>.backward.is(gathers, gathers, scatters, gathers, gathers, scatters, norms)>);
static_assert(equals<hidden_sent(sliced<KeepsSlices>), 2 * (176'160'768 + 2 * bsh * 7 / 8)>);
static_assert(
    at_least<sliced<Block<gpt3>>.memory.of(Use::activations) - sliced<KeepsSlices>.memory.of(Use::activations),
             2 * 2 * 4 * bsh * 7 / 8>);

}  // namespace published

TEST_CASE("the published volume of all 96 layers, at start-up") {
  using namespace published;
  CHECK(elements_sent(derive<TrainedBetween<Block<gpt3>, 96, Whole>>(eight), tensor) == 96 * 176'160'768.0);
}
