// The tensor-parallel MLP of examples/mlp.cpp in any size, without and with biases: placements and nothing else.
#pragma once
#include <parallel/parallel.hpp>

namespace bench {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

template <int width_, int hidden_>
struct Mlp {
  static constexpr int width = width_, hidden = hidden_;
  static constexpr bool biases = false;
  Parameter<float, Shape<width, hidden / tensor>> up{normal(0.02)};
  Parameter<float, Shape<hidden / tensor, width>> down{normal(0.02)};
  constexpr auto operator()(Distributed auto x) const { return matmul(gelu(matmul(x, up)), down); }
};

template <int width_, int hidden_>
struct MlpWithBiases {
  static constexpr int width = width_, hidden = hidden_;
  static constexpr bool biases = true;
  Parameter<float, Shape<width, hidden / tensor>> up{normal(0.02)};
  Parameter<float, Shape<hidden / tensor>> up_bias{zeros};
  Parameter<float, Shape<hidden / tensor, width>> down{normal(0.02)};
  Parameter<float, Shape<width>> down_bias{zeros};
  constexpr auto operator()(Distributed auto x) const {
    return matmul(gelu(matmul(x, up) + up_bias), down) + down_bias;
  }
};

template <class Model>
struct Regression {
  Model mlp;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(mlp(x) - y)); }
};

template <int rows, int width>
using Batch = Tensor<float, Shape<rows, width>>;
template <class Model, class Optimizer, int rows>
using MlpStep = Training<Regression<Model>, Optimizer, Batch<rows, Model::width>, Batch<rows, Model::width>>;

}  // namespace bench
