// What models of images are made of, and what picks and contracts, against PyTorch: results, gradients of parameters and
// inputs, on every kind of mesh. tools/fixtures/images.py has computed what they give.
#include "parity.hpp"

namespace {

using namespace parity;

template <class... T>
using Numbers = Wanted<float, T...>;
/// A layer's training, behind the cotangent of its result.
template <class Layer, class Cotangent, class... Input>
using Step = Training<Weighed<Layer>, KeepGradients, Cotangent, Input...>;

struct Convolution2d {
  Parameter<float, Shape<8 / tensor, 4, 3, 3>> weight;
  Parameter<float, Shape<8 / tensor>> bias;
  constexpr auto operator()(Distributed auto x) const {
    return convolution<HeightWidth{2, 1}, HeightWidth{1, 2}>(x, weight) + reshape<8, 1, 1>(bias);
  }
};
struct FromParts {  // a sum over the channels of all ranks
  Parameter<float, Shape<8, 4 / tensor, 3, 3>> weight;
  Parameter<float, Shape<8>> bias;
  constexpr auto operator()(Distributed auto x) const {
    return convolution<HeightWidth{2, 1}, HeightWidth{1, 2}>(x, weight) + reshape<8, 1, 1>(bias);
  }
};
struct Convolution1d {
  Parameter<float, Shape<8 / tensor, 4, 4>> weight;
  constexpr auto operator()(Distributed auto x) const { return convolution<2, 1>(x, weight); }
};
struct Transposed {
  Parameter<float, Shape<4, 8 / tensor, 3, 3>> weight;
  constexpr auto operator()(Distributed auto x) const { return transposed_convolution<2, 1, 1>(x, weight); }
};
struct Transposed1d {
  Parameter<float, Shape<4, 8 / tensor, 4>> weight;
  constexpr auto operator()(Distributed auto x) const { return transposed_convolution<3, 1, 2>(x, weight); }
};
struct Patches {
  Parameter<float, Shape<8, 4, 2, 2>> weight;
  constexpr auto operator()(Distributed auto x) const { return convolution<2>(x, weight); }
};
struct Largest2d {
  constexpr auto operator()(Distributed auto x) const { return max_pool<3, 2, 1>(x); }
};
struct Largest1d {
  constexpr auto operator()(Distributed auto x) const { return max_pool<2>(x); }
};
struct Mean2d {
  constexpr auto operator()(Distributed auto x) const {
    return average_pool<HeightWidth{3, 2}, HeightWidth{2, 1}, HeightWidth{1, 0}>(x);
  }
};
struct Mean1d {
  constexpr auto operator()(Distributed auto x) const { return average_pool<3, 1, 1>(x); }
};
struct Normed {
  Parameter<float, Shape<8>> gain, shift;
  constexpr auto operator()(Distributed auto x) const { return batch_norm(x, gain, shift); }
};
struct NormedAsGiven {
  Parameter<float, Shape<8 / tensor>> gain, shift, mean, variance;
  constexpr auto operator()(Distributed auto x) const { return batch_norm(x, gain, shift, mean, variance); }
};
struct OfChannels {
  constexpr auto operator()(Distributed auto x) const {
    const auto [mean, variance] = batch_statistics(x);
    return mean * variance;
  }
};
struct Picked {
  constexpr auto operator()(Distributed auto x, Distributed auto index) const { return gather<1>(x, index); }
};
struct Scattered {
  constexpr auto operator()(Distributed auto x, Distributed auto index, Distributed auto source) const {
    return scatter_add<1>(x, index, source);
  }
};
struct Linear {
  Parameter<float, Shape<8, 12 / tensor>> weight;
  constexpr auto operator()(Distributed auto x) const { return einsum<"bik,kj->bij">(x, weight); }
};
struct Scores {
  constexpr auto operator()(Distributed auto x, Distributed auto k) const { return einsum<"bqhd,bkhd->bhqk">(x, k); }
};
struct Outer {
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return einsum<"bi, bjk -> jib">(x, y); }
};
struct OfThree {
  constexpr auto operator()(Distributed auto x, Distributed auto y, Distributed auto z) const {
    return einsum<"bi,ij,jk->kb">(x, y, z);
  }
};
struct Reversed {
  constexpr auto operator()(Distributed auto x) const { return einsum<"bij->jb">(x); }
};

using Image = Numbers<Shape<4 / data, 4, 6, 5>>;
using Line = Numbers<Shape<4 / data, 4, 11>>;

}  // namespace

TEST_CASE("convolutions are PyTorch's, whatever is split") {
  check_layer<Step<Convolution2d, Numbers<Shape<4 / data, 8 / tensor, 3, 7>>, Image>>("conv2d", {"x"});
  check_layer<Step<FromParts, Numbers<Shape<4 / data, 8, 3, 7>>, Numbers<Shape<4 / data, 4 / tensor, 6, 5>>>>("conv2d",
                                                                                                              {"x"});
  check_layer<Step<Convolution1d, Numbers<Shape<4 / data, 8 / tensor, 5>>, Line>>("conv1d", {"x"});
  check_layer<Step<Transposed, Numbers<Shape<4 / data, 8 / tensor, 12, 10>>, Image>>("conv_transpose2d", {"x"});
  check_layer<Step<Transposed1d, Numbers<Shape<4 / data, 8 / tensor, 16>>, Numbers<Shape<4 / data, 4, 5>>>>(
      "conv_transpose1d", {"x"});
}
TEST_CASE("patches are convolved where their rows lie") {
  using Split = Step<Patches, Numbers<Shape<4 / data, 8, 4 / tensor, 3>>, Numbers<Shape<4 / data, 4, 8 / tensor, 6>>>;
  check_layer<Split>("patches", {"x"});
  const OwnedPlan plan = derive<Split>(Mesh{data = 2, tensor = 2});
  CHECK(plan->forward.calls(all_gather(tensor)) == 0);
}
TEST_CASE("overlapping windows over a split dimension are gathered first") {
  using Split =
      Step<Convolution2d, Numbers<Shape<4 / data, 8 / tensor, 3, 7>>, Numbers<Shape<4 / data, 4, 6 / sequence, 5>>>;
  const OwnedPlan plan = derive<Split>(Mesh{data = 2, tensor = 2, sequence = 2});
  CHECK(plan->forward.calls(all_gather(sequence)) == 1);
}
TEST_CASE("pools are PyTorch's; of equal elements the first has the gradient") {
  check_layer<Step<Largest2d, Numbers<Shape<4 / data, 4 / tensor, 3, 3>>, Numbers<Shape<4 / data, 4 / tensor, 6, 5>>>>(
      "max_pool2d", {"x"});
  check_layer<Step<Largest1d, Numbers<Shape<4 / data, 4 / tensor, 5>>, Numbers<Shape<4 / data, 4 / tensor, 11>>>>(
      "max_pool1d", {"x"});
  check_layer<Step<Mean2d, Numbers<Shape<4 / data, 4 / tensor, 3, 4>>, Numbers<Shape<4 / data, 4 / tensor, 6, 5>>>>(
      "avg_pool2d", {"x"});
  check_layer<Step<Mean1d, Numbers<Shape<4 / data, 4 / tensor, 11>>, Numbers<Shape<4 / data, 4 / tensor, 11>>>>(
      "avg_pool1d", {"x"});
}
TEST_CASE("batch norm is PyTorch's over the examples of all ranks") {
  check_layer<Step<Normed, Numbers<Shape<4 / data, 8 / tensor, 3, 5>>, Numbers<Shape<4 / data, 8 / tensor, 3, 5>>>>(
      "batch_norm2d", {"x"});
  check_layer<Step<Normed, Numbers<Shape<8 / data / tensor, 8>>, Numbers<Shape<8 / data / tensor, 8>>>>("batch_norm1d",
                                                                                                        {"x"});
  check_layer<
      Step<NormedAsGiven, Numbers<Shape<4 / data, 8 / tensor, 3, 5>>, Numbers<Shape<4 / data, 8 / tensor, 3, 5>>>>(
      "batch_norm_given", {"x"});
  check_layer<Step<OfChannels, Numbers<Shape<8 / tensor>>, Numbers<Shape<4 / data, 8 / tensor, 3, 5>>>>(
      "batch_statistics", {"x"});
}
TEST_CASE("gather and scatter_add are PyTorch's, also along what is split") {
  check_layer<Step<Picked, Numbers<Shape<4 / data, 5, 6>>, Numbers<Shape<4 / data, 8 / tensor, 6>>,
                   Tensor<int, Shape<4 / data, 5, 6>>>>("gather", {"x", "index"});
  check_layer<Step<Scattered, Numbers<Shape<4 / data / tensor, 8, 6>>, Numbers<Shape<4 / data / tensor, 8, 6>>,
                   Tensor<int, Shape<4 / data / tensor, 5, 6>>, Numbers<Shape<4 / data / tensor, 5, 6>>>>(
      "scatter_add", {"x", "index", "source"});
}
TEST_CASE("einsum is PyTorch's") {
  check_layer<Step<Linear, Numbers<Shape<4 / data, 3, 12 / tensor>>, Numbers<Shape<4 / data, 3, 8>>>>("einsum_linear",
                                                                                                      {"x"});
  check_layer<Step<Scores, Numbers<Shape<4 / data, 4 / tensor, 3, 6>>, Numbers<Shape<4 / data, 3, 4 / tensor, 5>>,
                   Numbers<Shape<4 / data, 6, 4 / tensor, 5>>>>("einsum_scores", {"x", "k"});
  check_layer<Step<Outer, Numbers<Shape<3, 8 / tensor, 4 / data>>, Numbers<Shape<4 / data, 8 / tensor>>,
                   Numbers<Shape<4 / data, 3, 5>>>>("einsum_outer", {"x", "y"});
  check_layer<Step<OfThree, Numbers<Shape<6, 4 / data>>, Numbers<Shape<4 / data, 8 / tensor>>,
                   Numbers<Shape<8 / tensor, 4>>, Numbers<Shape<4, 6>>>>("einsum_three", {"x", "y", "z"});
  check_layer<Step<Reversed, Numbers<Shape<8 / tensor, 4 / data>>, Numbers<Shape<4 / data, 3, 8 / tensor>>>>(
      "einsum_sum", {"x"});
}
