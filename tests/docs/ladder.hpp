// The rungs of examples/ladder as they are, so that their plans name their own lines: namespaces inter_layer, pipeline
// and so on, each with `Step` and `mesh`. Their main functions become templates that nobody uses, so that no kernel is
// compiled. And the programs of docs/parallelism that are no rungs.
#pragma once
#include <parallel/model/stale.hpp>

#include "../../examples/ladder/run.hpp"

#define main(...)        \
  unused;                \
  template <class never> \
  [[maybe_unused]] auto never_called(__VA_ARGS__)
namespace one_rank {
#include "../../examples/ladder/1_one_rank.cpp"
}  // namespace one_rank
namespace inter_layer {
#include "../../examples/ladder/2_inter_layer.cpp"
}  // namespace inter_layer
namespace pipelined {
#include "../../examples/ladder/3_pipeline.cpp"
}  // namespace pipelined
namespace data_parallel {
#include "../../examples/ladder/4_data.cpp"
}  // namespace data_parallel
namespace tensor_parallel {
#include "../../examples/ladder/5_tensor.cpp"
}  // namespace tensor_parallel
namespace sequence_parallel {
#include "../../examples/ladder/6_sequence.cpp"
}  // namespace sequence_parallel
namespace hybrid {
#include "../../examples/ladder/7_hybrid.cpp"
}  // namespace hybrid
namespace stored_split {
#include "../../examples/ladder/8_zero.cpp"
}  // namespace stored_split
namespace served {
#include "../../examples/ladder/9_servers.cpp"
}  // namespace served
namespace context_parallel {
#include "../../examples/ladder/10_context.cpp"
}  // namespace context_parallel
namespace in_two_dimensions {
#include "../../examples/ladder/11_two_dimensions.cpp"
}  // namespace in_two_dimensions
namespace in_three_dimensions {
#include "../../examples/ladder/12_three_dimensions.cpp"
}  // namespace in_three_dimensions
namespace served_ahead {
#include "../../examples/ladder/13_stale.cpp"
}  // namespace served_ahead
#undef main

namespace beside_the_ladder {
using namespace parallel;
using namespace parallel::axes;

// Rung 3 by another schedule.
using Later = Pipelined<schedules::gpipe, pipelined::Step>;
template <const Schedule& schedule>
using By = Pipelined<schedule, pipelined::Step>;

constexpr int width = 16;

// ZeRO, of one parameter and of all.
struct Perceptron {
  Parameter<float, Shape<768, 3072 / tensor>, Stored<data>> up{normal(0.02)};
};
using Step = data_parallel::Step;
using Sharded = AllStored<Step, Stored<data>>;

// Several servers, each with some of the model.
struct SpreadBlock {
  Parameter<float, Shape<width>, Stored<data, At<0>>> gain{ones};
  Parameter<float, Shape<width, 64>, Stored<data, At<1>>> up{normal(0.3)};
  Parameter<float, Shape<64, width>, Stored<data, At<2>>> down{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(rms_norm(x, gain), up)), down); }
};
struct SpreadModel {
  Parameter<float, Shape<width, width>, Stored<data, At<0>>> in{xavier};
  Layers<8, SpreadBlock> blocks;
  Parameter<float, Shape<width, width>, Stored<data, At<-1>>> out{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(matmul(x, in)), out) - y));
  }
};
using Spread = Training<SpreadModel, AdamW, data_parallel::Batch, data_parallel::Batch>;

// Rung 13, and a server that is waited for.
namespace a_step_ahead {
using served_ahead::Batch, served_ahead::Model;
constexpr auto& ahead = plan<served_ahead::Step, served_ahead::mesh>;
constexpr auto& behind =
    plan<AllStored<Training<Model, AdamW, Batch, Batch>, Stored<data, At<0>, Zero::states>>, Mesh{data = 4}>;
static_assert(ahead.all.elements(data, Collective::broadcast) == behind.all.elements(data, Collective::broadcast));
static_assert(ahead.memory.of(Use::optimizer_state) ==
              behind.memory.of(Use::optimizer_state) + behind.memory.of(Use::parameters));
}  // namespace a_step_ahead

// Rung 4 in four parts: the sums of gradients are reduced once, behind the last.
using Parts = Tensor<float, Shape<8 / data, 8, width>>;
using Accumulated = Accumulate<4, Training<data_parallel::Model, AdamW, Parts, Parts>>;

// Rung 7, and what crosses a cut is split over tensor while it crosses.
struct ScatteredModel {
  Parameter<float, Shape<width, width>> in{xavier};
  Layers<8 / stage, hybrid::Block, On<tensor, Split<2>>> blocks;
  Parameter<float, Shape<width, width>> out{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(matmul(x, in)), out) - y));
  }
};
using Scattered = Accumulate<hybrid::micro_batches, Training<ScatteredModel, AdamW, hybrid::Batch, hybrid::Batch>>;

// Attention alone: queries, keys and values are inputs whose gradients are wanted. 1024 tokens, 8 heads of 64 numbers.
template <Context how>
struct AttentionAlone {
  constexpr auto operator()(Distributed auto q, Distributed auto k, Distributed auto v) const {
    return mean(attention<true, how>(q, k, v));
  }
};
template <int heads>
using Heads = Wanted<float, Shape<1, 1024 / sequence, heads, 64>>;
template <Context how, int key_heads = 8>
using Attending = Training<AttentionAlone<how>, KeepGradients, Heads<8>, Heads<key_heads>, Heads<key_heads>>;

// Rung 11 two deep: two such grids, each with half of the examples.
namespace deep {
using in_two_dimensions::row, in_two_dimensions::column;
inline constexpr Axis depth{"depth"};
constexpr Dim examples = 32 / depth / row;
constexpr Mesh mesh{depth = 2, row = 2, column = 2};
using Batch = Tensor<float, Shape<examples, 8, width / column>>;
using Step = AllStored<Training<in_two_dimensions::Model, AdamW, Batch, Batch>, Stored<row>>;
}  // namespace deep

}  // namespace beside_the_ladder
