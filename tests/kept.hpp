// Trainings that are kept on disk and gone on with, by ranks of any communicator.
#pragma once
#include <cmath>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/run/checkpoint.hpp>
#include <parallel/run/trainer.hpp>

#include "program.hpp"

namespace kept {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

using OnDevice = under_test::Device;

constexpr int rows = 8, width = 6, depth = 4;
using X = Tensor<double, Shape<rows / data, width>>;

template <Dim hidden>
struct Block {
  Parameter<double, Shape<width, hidden>> up{normal(0.3)};
  Parameter<double, Shape<hidden, width>> down{normal(0.3)};
  Parameter<double, Shape<width>> bias{zeros};
  constexpr auto operator()(Distributed auto x) const {
    return x + matmul(dropout(gelu(matmul(x, up)), 0.2), down) + bias;
  }
};
template <Dim layers, Dim hidden = 10 / tensor>
struct ModelOf {
  Parameter<double, Shape<width, 7>> in{normal(0.3)};
  Parameter<double, Shape<7, width>> middle{normal(0.3)};
  Layers<layers, Block<hidden>> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(blocks(matmul(matmul(x, in), middle)) - y));
  }
};
using Step = Training<ModelOf<depth>, AdamW, X, X>;
using InOrder = Training<ModelOf<depth, 10 / cyclic(tensor)>, AdamW, X, X>;
using Staged = Training<ModelOf<depth / stage>, AdamW, X, X>;
template <class Optimizer>
using By = Training<ModelOf<depth>, Optimizer, X, X>;

/// A folder of this test's own, gone with it.
struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / "parallel-checkpoint-XXXXXX").string();
  Folder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Folder() { std::filesystem::remove_all(path); }
};

inline std::vector<double> batch(int step, double by) {
  std::vector<double> all(rows * width);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::sin(by * static_cast<double>(i + 1) + step);
  return all;
}
/// Trains on a rank up to a step, after going on from what the folder has; saves behind `save_behind` steps. The first
/// rank notes the losses.
template <class Program, class Optimizer = AdamW, Communicator World>
void train_rank(World& world, const std::string& folder, const Mesh& mesh, int steps, int save_behind,
                std::vector<double>& losses) {
  const OwnedPlan plan = derive<Program>(mesh, world.rank());
  under_test::Parameters parameters(plan, world.rank(), 5);
  typename Optimizer::Hyperparameters numbers;
  numbers.learning_rate = 0.02;
  Trainer<World, OnDevice> step(plan, world, parameters, numbers, 1);
  Checkpoints checkpoints(world, folder, {.newest = 2});
  const Resumed from = checkpoints.resume(step.executor());
  if (from.step > 0) CHECK(from.notes.at("position") == std::to_string(rows * from.step));
  for (int i = static_cast<int>(from.step); i < steps; ++i) {
    const double loss = step(batch(i, 0.7), batch(i, 0.3)).loss;
    if (world.rank() == 0) losses.push_back(loss);
    if (i + 1 == save_behind) checkpoints.save(step.executor(), i + 1, {{"position", std::to_string(rows * (i + 1))}});
  }
}
/// The losses of thread ranks.
template <class Program, class Optimizer = AdamW>
std::vector<double> train(const std::string& folder, const Mesh& mesh, int steps, int save_behind) {
  std::vector<double> losses;
  run_threads(mesh.ranks(),
              [&](Threads& world) { train_rank<Program, Optimizer>(world, folder, mesh, steps, save_behind, losses); });
  return losses;
}
/// What follows of all losses where the first `from` were before.
inline std::vector<double> behind(std::vector<double> all, int from) { return {all.begin() + from, all.end()}; }
inline bool near(const std::vector<double>& a, const std::vector<double>& b) {
  bool all = a.size() == b.size();
  for (std::size_t i = 0; all && i < a.size(); ++i) all = std::abs(a[i] - b[i]) <= 1e-11 * std::abs(a[i]);
  return all;
}

}  // namespace kept
