// The small programs of docs/placements.md and docs/plan.md. What the documents say of them is asserted here;
// print_tables.cpp prints their plans.
#pragma once
#include <parallel/parallel.hpp>

namespace rules {

using namespace parallel;
using namespace parallel::axes;

constexpr Mesh two{tensor = 2};

// 1. All whole. The first product has nothing that is split: every rank computes all of it.
struct AllWhole {
  Parameter<float, Shape<16, 16>> w;
  Parameter<float, Shape<16, 8 / tensor>> v;
  constexpr auto operator()(Distributed auto x) const { return matmul(matmul(x, w), v); }
};
constexpr auto& all_whole = plan<Evaluation<AllWhole, Tensor<float, Shape<4, 16>>>, two>;
static_assert(all_whole.calls() == 0);

// 2. It fits. Columns of x beside rows of w are a row of the table; its result is a pending sum.
struct Fits {
  Parameter<float, Shape<6 / tensor, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, w); }  // f32[4, 8] +tensor
};
constexpr auto& fits = plan<Evaluation<Fits, Tensor<float, Shape<4, 6 / tensor>>>, two>;
static_assert(fits.calls() == 1);  // the result of the program is completed: rule 7

// 3. Free moves. A whole weight beside a split batch becomes Broadcast: data parallelism.
struct DataParallel {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& data_parallel = plan<Training<DataParallel, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
static_assert(data_parallel.forward.elements(data) == 1);       // the loss
static_assert(data_parallel.backward.elements(data) == 6 * 8);  // the gradient of w

// A whole bias beside a split sum is sliced, a whole bias beside a pending sum joins it.
struct Biases {
  Parameter<float, Shape<6, 8 / tensor>> up;
  Parameter<float, Shape<8>> sliced;
  Parameter<float, Shape<8 / tensor, 6>> down;
  Parameter<float, Shape<6>> joins;
  constexpr auto operator()(Distributed auto x) const {
    const auto hidden = relu(matmul(x, up) + sliced);   // f32[4, 8/tensor]
    return mean(square(matmul(hidden, down) + joins));  // f32[4, 6] +tensor, completed by square
  }
};
constexpr auto& biases = plan<Training<Biases, Sgd, Tensor<float, Shape<4, 6>>>, two>;
static_assert(biases.forward.collectives(tensor) == 1);  // 24 elements, where square takes no pending sum
// the gradient of `sliced` is gathered; that of `joins` is whole already
static_assert(biases.backward.collectives(tensor) == 1);
static_assert(biases.backward.elements(tensor, Collective::all_gather) == 8);

// 4. Completion. What cannot take a pending sum gets it completed; beside something split it is scattered at once.
struct Completion {
  Parameter<float, Shape<6 / tensor, 8>> w;
  Parameter<float, Shape<6 / tensor, 8>> v;
  constexpr auto operator()(Distributed auto x, Distributed auto residual) const {
    const auto whole = relu(matmul(x, w));     // all-reduce: f32[4, 8]
    const auto sum = residual + matmul(x, v);  // reduce-scatter: f32[4/tensor, 8]
    return mean(whole) + mean(sum);
  }
};
constexpr auto& completion =
    plan<Evaluation<Completion, Tensor<float, Shape<4, 6 / tensor>>, Tensor<float, Shape<4 / tensor, 8>>>, two>;
static_assert(completion.all.collectives(tensor, Collective::reduce_scatter) == 1);

// 5. Gathering. A parameter stays as it is annotated; the activation beside it is gathered.
struct Gathering {
  Parameter<float, Shape<6, 8 / tensor>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& gathering = plan<Training<Gathering, Sgd, Wanted<float, Shape<4 / tensor, 6>>>, two>;
static_assert(gathering.forward.elements(tensor, Collective::all_gather) == 4 * 6);
static_assert(gathering.backward.elements(tensor, Collective::reduce_scatter) == 4 * 6);

// 6. Refusal. Two activations that lie differently: the compiler prints the sentence of `disagree`.
constexpr Arguments rows_and_columns{
    {Tensor<float, Shape<4 / tensor, 6>>::type, Tensor<float, Shape<4, 6 / tensor>>::type},
    {Kind::activation, Kind::activation}};
static_assert(infer(operation::add, rows_and_columns).refusal.reason == Reason::disagree);

// 7. Results. A program returns what every rank can read: pending sums completed, Broadcast values made equal.
struct Result {
  Parameter<float, Shape<6, 8>, On<tensor, Broadcast>> w;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, w); }  // f32[4, 8] ~tensor
};
constexpr auto& result = plan<Evaluation<Result, Tensor<float, Shape<4, 6>>>, two>;
static_assert(result.all.elements(tensor, Collective::all_reduce) == 4 * 8);

// 8. Once. Three uses of x, one retype to Broadcast, hence one reduction of its gradient.
struct Once {
  Parameter<float, Shape<6, 8 / tensor>> q, k, v;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(matmul(x, q) * matmul(x, k) * matmul(x, v)));
  }
};
constexpr auto& once = plan<Training<Once, Sgd, Wanted<float, Shape<4, 6>>>, two>;
static_assert(once.backward.collectives(tensor) == 1);

// 9. Several axes. Each is derived alone; a sum that is pending on two axes is completed over both at once.
struct Several {
  Parameter<float, Shape<6, 8 / tensor>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& several = plan<Training<Several, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2, tensor = 2}>;
static_assert(several.forward.calls() == 1);                  // the loss, on data and tensor together
static_assert(several.backward.elements(data) == 6 * 8 / 2);  // the gradient of w, of which a rank has half
static_assert(several.backward.collectives(tensor) == 0);

// Things to know: two pending sums beside a whole activation. The brackets decide whether one sum or two are completed.
struct Apart {
  Parameter<float, Shape<16 / tensor, 16>> w, v;
  constexpr auto operator()(Distributed auto x, Distributed auto z) const {
    const auto a = matmul(z, w), m = matmul(z, v);
    return mean(square(x + a + m));
  }
};
struct Together {
  Parameter<float, Shape<16 / tensor, 16>> w, v;
  constexpr auto operator()(Distributed auto x, Distributed auto z) const {
    const auto a = matmul(z, w), m = matmul(z, v);
    return mean(square(x + (a + m)));
  }
};
template <class Model>
constexpr auto& sums = plan<Evaluation<Model, Wanted<float, Shape<4, 16>>, Tensor<float, Shape<4, 16 / tensor>>>, two>;
static_assert(sums<Apart>.collectives(tensor) == 2);
static_assert(sums<Together>.collectives(tensor) == 1);

// A weight that is split over the batch's axis is no ZeRO: the batch is gathered.
struct SplitOnData {
  Parameter<float, Shape<6, 8 / data>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& split_on_data = plan<Training<SplitOnData, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
static_assert(split_on_data.forward.elements(data, Collective::all_gather) == 4 * 6);

// Four residual blocks whose hidden state is split along the sequence, two micro-batches: the plan of docs/plan.md.
constexpr int examples = 8, context = 16, channels = 32, layers = 4;

struct Block {
  Parameter<float, Shape<channels>> gain{ones};
  Parameter<float, Shape<channels, 4 * channels / tensor>> up;
  Parameter<float, Shape<4 * channels / tensor, channels>> down;
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(rms_norm(x, gain), up)), down); }
};
struct Network {
  Parameter<float, Shape<64 / tensor, channels>> token;
  Layers<layers, Block> blocks;
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    const auto hidden = to<Shape<examples / data, context / tensor, channels>>(embedding(tokens, token));
    return mean(cross_entropy(matmul(blocks(hidden), transpose(token)), targets));
  }
};
using Tokens = Tensor<int, Shape<examples / data, context>>;
using Step = Training<Network, AdamW, Tokens, Tokens>;

constexpr Mesh four{data = 2, tensor = 2};
constexpr auto& network = plan<Step, four>;
// before each block, and before the head
static_assert(network.forward.collectives(tensor, Collective::all_gather) == layers + 1);
// layers run one after the other
static_assert(network.forward.calls(tensor) == network.forward.collectives(tensor));
// every layer's three parameters, and the table
static_assert(network.backward.collectives(data) == 3 * layers + 1);
// a call for each layer of a matrix, one for all layers of a vector
static_assert(network.backward.calls(data) == 2 * layers + 2);
static_assert(network.backward.elements(data) == (64 * 32 + 4 * 2 * 32 * 128) / 2 + 4 * 32);
static_assert(network.all.largest_message() <= 64 << 10);
static_assert(network.optimizer.elements(tensor) == 1);  // the gradient norm
static_assert(network.peak_memory() <= 1 << 20);

// Two micro-batches double what happens within a step, and reduce the gradients once.
constexpr auto& accumulated = plan<Accumulate<2, Step>, four>;
static_assert(accumulated.forward.calls(tensor) == 2 * network.forward.calls(tensor));
static_assert(accumulated.backward.calls(data) == 2 + 2 * 4);  // the matrices of four layers, in the last micro-batch

// Assertions that print what they compare.
static_assert(equals<network.forward.collectives(all_gather(tensor)), layers + 1>);
static_assert(at_most<network.sent(data), 100_KiB>);
static_assert(at_most<network.memory.of(Use::activations), 200_KiB>);
static_assert(proven<network.never(all_gather(data), all_to_all())>);
static_assert(proven<network.backward.uses_only(all_reduce(data), all_reduce(tensor), all_gather(tensor),
                                                reduce_scatter(tensor))>);

constexpr WrittenPlan written{
    .forward = {reduce_scatter(tensor),                                                  // the embedding
                4 * all_gather(tensor).of(8_KiB), 4 * reduce_scatter(tensor).of(8_KiB),  // four blocks
                all_gather(tensor),                                                      // the head
                all_reduce(tensor), all_reduce(tensor), all_reduce(tensor),              // its cross entropy
                all_reduce(data).of(4)},                                                 // the loss
    .backward = {reduce_scatter(tensor), 4 * all_gather(tensor).of(8_KiB), 4 * all_reduce(data).of(8_KiB),
                 4 * reduce_scatter(tensor).of(8_KiB), 4 * all_reduce(data).of(8_KiB), all_gather(tensor),
                 all_reduce(data, tensor), all_reduce(data)},
    .optimizer = {all_reduce(tensor).of(8)}};
static_assert(proven<network.is(written)>);

}  // namespace rules
