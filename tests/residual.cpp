// A residual stream in more precision than the layers that add to it (in float beside bf16 layers on a GPU; here in
// double beside float): it is a cast where a layer reads it and one where its result joins, on every mesh the same,
// with gradients in between.
#include <doctest/doctest.h>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {
constexpr int batch = 4, context = 8, channels = 8, layers = 12;

template <class Stream, Dim positions>
struct Block {
  Parameter<Stream, Shape<channels>> gain{ones};
  Parameter<float, Shape<channels, 4 * channels / tensor>> up{normal(0.3)};
  Parameter<float, Shape<4 * channels / tensor, channels>> down{normal(0.001)};
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(gelu(matmul(cast<float>(rms_norm(x, gain)), up)), down);
    return x + cast<Stream>(to<Shape<batch / data, positions, channels>>(y));
  }
};
template <class Stream, Dim positions>
struct Model {
  Layers<layers, Block<Stream, positions>> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(blocks(x) - y)); }
};
template <class Stream, Dim positions>
using Input = Wanted<Stream, Shape<batch / data, positions, channels>>;
template <class Stream, Dim positions>
using Step = Training<Model<Stream, positions>, KeepGradients, Input<Stream, positions>, Input<Stream, positions>>;

template <class Stream, Dim positions>
std::vector<lockstep::Array> outputs(const Mesh& mesh) {
  const auto x = program::numbers<Stream>(batch * context * channels, 1),
             y = program::numbers<Stream>(batch * context * channels, 2);
  return program::outputs<Step<Stream, positions>>(mesh, [&](auto& executor) {
    executor.input(0, x);
    executor.input(1, y);
  });
}

// What is completed and gathered is float; the stream itself does not travel.
using Sliced = Wanted<double, Shape<batch / data, context / tensor, channels>>;
constexpr auto& p =
    plan<Training<Model<double, context / tensor>, KeepGradients, Sliced, Sliced>,  // nvcc takes no Step
         Mesh{data = 2, tensor = 2}>;
static_assert(p.forward.elements(tensor, Collective::reduce_scatter) * 4 == p.forward.messages(reduce_scatter(tensor)));
static_assert(p.forward.elements(tensor, Collective::all_gather) * 4 == p.forward.messages(all_gather(tensor)));
}  // namespace

TEST_CASE("a residual stream in double beside layers in float computes the same on every mesh") {
  const auto one = outputs<double, context>(Mesh{data = 1});
  for (const Mesh& mesh : {Mesh{tensor = 2}, Mesh{tensor = 4}, Mesh{data = 2, tensor = 2}}) {
    INFO(text(mesh));
    const auto whole = outputs<double, context>(mesh), sliced = outputs<double, context / tensor>(mesh);
    for (std::size_t i = 0; i < one.size(); ++i) {
      INFO("output " << i);
      CHECK(lockstep::difference(whole[i], one[i]) < 1e-5);
      CHECK(lockstep::difference(sliced[i], one[i]) < 1e-5);
    }
  }
}
TEST_CASE("the stream keeps what float would round away") {
  // The gradient of the input is nearly that of an identity; a float stream rounds it in every layer.
  const auto precise = outputs<double, context>(Mesh{data = 1}), rounded = outputs<float, context>(Mesh{data = 1});
  const double difference = lockstep::difference(precise[2 + 3], rounded[2 + 3]);
  CHECK(difference > 1e-9);
  CHECK(difference < 1e-5);
}
