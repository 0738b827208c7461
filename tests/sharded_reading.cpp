// On every mesh up to eight ranks each rank reads the rows that its plan gives it of a sampler's batch, and nothing else:
// over an epoch each sample once on each set of axes that does not split them, and the losses are those of one rank that
// reads all.
#include <map>

#include <doctest/doctest.h>

#include <parallel/data/rows.hpp>
#include <parallel/data/sampler.hpp>

#include "every_mesh.hpp"

using namespace parallel;
using namespace parallel::axes;
using every_mesh::meshes;
using every_mesh::replica;
using every_mesh::staged;

namespace {

constexpr int rows = 840, width = 2;  // what all up to eight divide

struct Block {
  Parameter<double, Shape<width>> weight{normal(1)};
  constexpr auto operator()(Distributed auto x) const { return x * weight; }
};
/// Inputs whose rows are split by two axes, by three, by one, and by none.
template <Dim layers>
struct Model {
  Layers<layers, Block> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto y, Distributed auto z, Distributed auto whole) const {
    return mean(square(blocks(x))) + mean(y * y) + mean(square(z)) + mean(square(whole));
  }
};
template <Dim layers, int micro_batches>
using Step =
    Accumulate<micro_batches, Training<Model<layers>, Sgd, Tensor<double, Shape<rows / replica / data, width>>,
                                       Tensor<double, Shape<rows / replica / data / tensor>>,
                                       Tensor<double, Shape<rows / data, width>>, Tensor<double, Shape<rows, width>>>>;
constexpr int inputs = 4;
const std::vector<std::vector<const Axis*>> splitting{{&replica, &data}, {&replica, &data, &tensor}, {&data}, {}};
const std::vector<std::size_t> row_size{width, 1, width, width};

/// Which of the readers of an input a rank is: its coordinates on the axes that do not split the rows.
std::vector<int> reader(const Mesh& mesh, int rank, int input) {
  std::vector<int> all;
  for (int a = 0; a < mesh.count; ++a) {
    const auto& splits = splitting[static_cast<std::size_t>(input)];
    if (std::find(splits.begin(), splits.end(), mesh.axes[a].axis) == splits.end())
      all.push_back(mesh.coordinate(rank, mesh.axes[a].axis));
  }
  return all;
}
/// What a sample has.
double element(std::int64_t sample, std::size_t i) {
  return std::sin(static_cast<double>(sample) + 0.1 * static_cast<double>(i));
}

/// The losses of an epoch of three steps.
template <Dim layers, int micro_batches>
std::vector<double> epoch(const Mesh& mesh) {
  constexpr std::int64_t batch = rows * micro_batches, steps = 3;
  const Sampler sampler(steps * batch, batch, {.seed = 5});
  std::vector<double> losses;
  std::map<std::pair<int, std::vector<int>>, std::vector<int>> seen;  // how often each sample, by input and reader
  for (int i = 0; i < inputs; ++i)
    for (int rank = 0; rank < mesh.ranks(); ++rank) seen[{i, reader(mesh, rank, i)}].resize(steps * batch);
  const internals::Graph graph = internals::build<Step<layers, micro_batches>>();
  std::vector<OwnedPlan> plans;  // of each stage
  const int stages = mesh.extent(&stage);
  for (int i = 0; i < stages; ++i)
    plans.push_back(derive(graph, graph.stages == nullptr ? mesh : mesh.on_stage(i), {}, {}));
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan& plan = plans[static_cast<std::size_t>(stages > 1 ? mesh.coordinate(world.rank(), &stage) : 0)];
    Parameters parameters(*plan, world.rank(), 5);
    Trainer<Threads, CpuDouble> step(*plan, world, parameters, Sgd::Hyperparameters{}, 1);
    for (std::int64_t s = 0; s < steps; ++s) {
      const std::vector<std::int64_t> samples = sampler.samples(s);
      for (int i = 0; i < inputs; ++i) {
        const std::size_t size = row_size[static_cast<std::size_t>(i)];
        std::vector<double> whole(static_cast<std::size_t>(batch) * size,
                                  std::nan(""));  // what is not read is no number
        for (const std::int64_t row : rows_of(*plan, i, world.rank())) {
          const std::int64_t sample = samples[static_cast<std::size_t>(row)];
          for (std::size_t k = 0; k < size; ++k) whole[static_cast<std::size_t>(row) * size + k] = element(sample, k);
        }
        step.executor().input(i, whole);
      }
      const double loss = step.step(0.1).loss;
      if (world.rank() == 0) losses.push_back(loss);
      for (int rank = 0; rank < world.size(); ++rank) {
        world.barrier();
        for (int i = 0; i < inputs && rank == world.rank(); ++i)
          for (const std::int64_t row : rows_of(*plan, i, rank))
            ++seen[{i, reader(mesh, rank, i)}][static_cast<std::size_t>(samples[static_cast<std::size_t>(row)])];
      }
    }
  });
  for (const auto& each : seen) {
    const std::vector<int>& samples = each.second;
    INFO("input " << each.first.first);
    CHECK(std::count(samples.begin(), samples.end(), 1) == steps * batch);
  }
  return losses;
}
template <Dim layers, int micro_batches>
void check(const std::vector<Mesh>& all) {
  const std::vector<double> one = epoch<layers, micro_batches>(Mesh{});
  CHECK(one[0] != one[1]);
  for (const Mesh& mesh : all) {
    INFO(micro_batches << " micro-batches on " << text(mesh));
    ten_steps::check_near(epoch<layers, micro_batches>(mesh), one);
  }
}
bool without_sequence(const Mesh& mesh) { return mesh.extent(&sequence) == 1; }

}  // namespace

TEST_CASE("on all meshes") {
  const auto flat =
      meshes({2, 3, 4, 5, 6, 7, 8}, [](const Mesh& mesh) { return without_sequence(mesh) && !staged(mesh); });
  check<24, 1>(flat);
  check<24, 3>(flat);
}
TEST_CASE("on all meshes with stages") {
  const auto with_stages = [](std::initializer_list<int> extents) {
    return meshes(extents, [](const Mesh& mesh) { return without_sequence(mesh) && staged(mesh); });
  };
  check<24 / stage, 3>(with_stages({2, 3, 4, 6, 8}));
  check<35 / stage, 3>(with_stages({5, 7}));
}
