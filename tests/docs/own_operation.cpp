// The checks that the operations of docs/adding-an-operation.md are right.
#include "own_operation.hpp"

#include <vector>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/run/check_gradients.hpp>
#include <parallel/run/trainer.hpp>
#include <parallel/run/verify_operation.hpp>

namespace {

using model::Step;

std::vector<double> losses(const Mesh& mesh) {
  const OwnedPlan planned = derive<Step>(mesh);
  std::vector<float> x(8 * 16), y(8 * 16);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(2 * random_uniform(1, 0, i) - 1);
    y[i] = x[i] * x[i];
  }
  std::vector<double> result;
  run_threads(mesh.ranks(), [&](Threads& world) {
    Parameters parameters(planned, world.rank(), 1);
    Trainer<Threads, Cpu> trainer(planned, world, parameters, {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 1,
                                  Cpu{own::kernels});
    trainer.executor().input(0, x);
    trainer.executor().input(1, y);
    for (int step = 0; step < 20; ++step) {
      const double loss = trainer.step(1e-2).loss;
      if (world.rank() == 0) result.push_back(loss);
    }
  });
  return result;
}

}  // namespace

TEST_CASE("own operations are what they say") {
  verify_operation<own::operation::softcap>({{.shape = {12, 8}}},
                                            {.reals = {0.7}, .kernels = own::kernels, .counting = own::counting});
  verify_operation<own::operation::distances>({{.shape = {12, 8}}, {.shape = {4, 8}}}, {.kernels = own::kernels});
  verify_operation<own::operation::decay>({{.shape = {12, 8}}}, {.ints = {1}, .reals = {0.9}, .kernels = own::kernels});
}

TEST_CASE("the gradients of a model are the derivatives of its loss") {
  using Checked = Training<model::Centres<double>, KeepGradients, Tensor<double, Shape<8 / data, 16>>>;
  const OwnedPlan planned = derive<Checked>(Mesh{data = 2, tensor = 2});
  std::vector<double> x(8 * 16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 2 * random_uniform(1, 0, i) - 1;
  run_threads(4, [&](Threads& world) {
    Parameters parameters(planned, world.rank(), 1);
    const CheckedGradients checked =
        check_gradients(planned, world, parameters, {x}, {.samples = 16}, CpuDouble{own::kernels});
    CHECK(checked.elements > 20);
  });
}

TEST_CASE("no row is missing") {
  const VerifiedOperation done = verify_operation<own::operation::distances>(
      {{.shape = {12, 8}}, {.shape = {4, 8}}}, {.kernels = own::kernels, .find_missing = true});
  CHECK(done.rows == 4);
  CHECK(done.missing.empty());
}

TEST_CASE("a model with an own operation learns the same on one rank and on four") {
  const std::vector<double> one = losses(Mesh{data = 1, tensor = 1}), four = losses(Mesh{data = 2, tensor = 2});
  REQUIRE(one.size() == 20);
  CHECK(one.back() < one.front() / 2);
  for (std::size_t step = 0; step < one.size(); ++step) CHECK(four[step] == doctest::Approx(one[step]).epsilon(1e-4));
}

TEST_CASE("a device without the kernel says so") {
  const OwnedPlan planned = derive<Step>(Mesh{data = 1, tensor = 1});
  const auto start = [&] {
    run_threads(1, [&](Threads& world) {
      Parameters parameters(planned, world.rank(), 1);
      Executor<Threads, Cpu> executor(planned, world, parameters);
    });
  };
  CHECK_THROWS_AS(start(), CannotRun);
}
