// Equal layers shared out over the stages of a pipeline, as a step: forward, backward, the norm of the gradients.
// Sizes, the model, and the numbers it is begun with, which every peer makes for itself: pipeline_torch.py has the same
// three.
#pragma once
#include <array>

#include <parallel/model/optimizer.hpp>
#include <parallel/parallel.hpp>

#include "numbers.hpp"

namespace bench {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace piped {
/// A forward of one layer takes one or two milliseconds for the rows of a micro-batch; eight layers are chunks of one
/// layer on four stages.
inline constexpr int rows = 128, width = 256, inner = 1024, depth = 8;

/// A perceptron beside its input, all of whose parts are products but for a few passes: every stage does the same.
struct Layer {
  Parameter<float, Shape<width, inner>> up;
  Parameter<float, Shape<inner>> up_bias;
  Parameter<float, Shape<inner, width>> down;
  Parameter<float, Shape<width>> down_bias;
  constexpr auto operator()(Distributed auto x) const {
    return x + (matmul(gelu(matmul(x, up) + up_bias), down) + down_bias);
  }
};
struct Stack {
  Layers<depth / stage, Layer> layers;
  constexpr auto operator()(Distributed auto x, Distributed auto target) const {
    return mean(square(layers(x) - target));
  }
};
using Rows = Tensor<float, Shape<rows, width>>;

inline constexpr std::array<Numbers, 6> numbers{{{"layers.*.up", 0, 0.1f},
                                                 {"layers.*.up_bias", 0, 0.1f},
                                                 {"layers.*.down", 0, 0.05f},
                                                 {"layers.*.down_bias", 0, 0.1f},
                                                 {"input", 0, 1},
                                                 {"target", 0, 1}}};
inline constexpr int input = 4, target = 5;
}  // namespace piped

template <int micro_batches>
using PipelineStep = Accumulate<micro_batches, Training<piped::Stack, KeepGradients, piped::Rows, piped::Rows>>;

}  // namespace bench
