// The recurrent network of docs/operations.md.
#pragma once
#include <parallel/parallel.hpp>

namespace recurrent {

using namespace parallel;
using namespace parallel::axes;

struct Gru {
  Parameter<float, Shape<128, 128 / tensor>> reset{xavier}, update{xavier}, fresh{xavier};
  Parameter<float, Shape<128 / tensor>> bias{zeros};

  constexpr auto operator()(Distributed auto h, Distributed auto x) const {  // h: f32[64/data, 128/tensor]
    const auto all = to<On<tensor, Broadcast>>(h);
    const auto r = sigmoid(matmul(all, reset) + take<1, 0>(x));
    const auto z = sigmoid(matmul(all, update) + take<1, 1>(x));
    const auto n = tanh(r * (matmul(all, fresh) + bias) + take<1, 2>(x));
    return n + z * (h - n);
  }
};
struct Network {
  Parameter<float, Shape<32, 3, 128 / tensor>> in{xavier};
  Parameter<float, Shape<3, 128 / tensor>> in_bias{zeros};
  Scan<512, Gru> gru;
  Parameter<float, Shape<128 / tensor, 10>> out{xavier};

  constexpr auto operator()(Distributed auto x, Distributed auto target) const {  // x: f32[512, 64/data, 32]
    const auto from_input = matmul(x, in) + in_bias;                              // of all steps, before the loop
    const auto nothing = constant<float, Shape<64 / data, 128 / tensor>>(0);
    const auto [last, each] = gru(nothing, from_input);  // f32[64/data, 128/tensor], f32[512, 64/data, 128/tensor]
    return mean(cross_entropy(matmul(each, out), target));
  }
};
using Step = Training<Network, AdamW, Tensor<float, Shape<512, 64 / data, 32>>, Tensor<int, Shape<512, 64 / data>>>;

constexpr auto& both = plan<Step, Mesh{data = 2, tensor = 2}>;
static_assert(both.backward.collectives(data) == 7);  // one gradient for each parameter, not for each step

}  // namespace recurrent
