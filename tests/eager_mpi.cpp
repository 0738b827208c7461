// Eager tensors over MPI: the numbers of threads, and a program with the bits of its plan.
#include <doctest/doctest.h>

#include <parallel/communicator/mpi.hpp>
#include <parallel/device/cpu/device.hpp>
#include <parallel/model/module.hpp>
#include <parallel/operation/operations.hpp>
#include <parallel/run/eager.hpp>
#include <parallel/run/eagerly.hpp>
#include <parallel/run/trainer.hpp>

using namespace parallel;
using namespace parallel::axes;

namespace {
struct Model {
  Parameter<float, Shape<4, 8 / data>> up{normal(1)};
  Parameter<float, Shape<8 / data, 4>> down{normal(1)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(gelu(matmul(x, up)), down))); }
};
using Step = Training<Model, AdamW, Tensor<float, Shape<2, 4>>>;
}  // namespace

TEST_CASE("sums, moves and gradients") {
  Mpi world;
  const Mesh mesh{data = world.size()};
  Eager<Mpi, Cpu> eager(mesh, world);
  const auto x = eager.wanted<float, Shape<8 / data>>(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  const auto twice = x + x;
  CHECK(eager.whole(to<Shape<8>>(twice)) == std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16});
  CHECK(eager.whole(eager.gradient(sum(square(x)), x)) == std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16});
}

TEST_CASE("a program") {
  Mpi world;
  const OwnedPlan plan = derive<Step>(Mesh{data = world.size()});
  Parameters parameters(plan, world.rank(), 5);
  Trainer<Mpi, Cpu> step(plan, world, parameters, AdamW::Hyperparameters{.learning_rate = 0.01}, 7);
  Eagerly<Step, Mpi, Cpu> eager(plan, world, parameters);
  const std::vector<float> x{1, 2, 3, 4, -1, -2, -3, -4};
  for (int i = 0; i < 2; ++i) {
    const double looked = eager(x).output_scalar("loss");
    CHECK(looked == step(x).loss);
  }
}
