// What is watched of a step is what the whole tensors hold, on every mesh, and changes no bit of it.
#include <numeric>

#include <doctest/doctest.h>

#include <parallel/run/trainer.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int rows = 8, width = 6, layers = 4;
using X = Tensor<double, Shape<rows / data, width>>;

struct Block {
  Parameter<double, Shape<width, 8 / tensor>> up{normal(0.4)};
  Parameter<double, Shape<8 / tensor, width>> down{normal(0.4)};
  constexpr auto operator()(Distributed auto x) const {
    const auto hidden = gelu(matmul(x, up));  // line 24
    return x + matmul(hidden, down);          // line 25
  }
};
struct Model {
  Parameter<double, Shape<width>> gain{ones};
  Layers<layers, Block> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(blocks(x * gain) - y)); }
};
using Plain = Training<Model, AdamW, X, X>;
using Kept = Training<Model, KeepGradients, X, X>;
using Split = AllStored<Plain, Stored<data>>;
using Several = Accumulate<2, Training<Model, AdamW, X, X>>;

std::vector<double> counted(int n, double by) {
  std::vector<double> all(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) all[static_cast<std::size_t>(i)] = std::sin(by * (i + 1));
  return all;
}

struct Seen {
  std::vector<Watched> lines;
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> tensors;
  std::map<std::string, std::vector<std::vector<double>>> behind;  // tensor, by step
};
template <class Program>
Seen train(const Mesh& mesh, const std::string& names, int steps = 2, int batches = 1) {
  Seen seen;
  const OwnedPlan plan = derive<Program>(mesh);
  watch(names, [&](const Watched& line) { seen.lines.push_back(line); });
  const std::vector<double> x = counted(batches * rows * width, 0.7), y = counted(batches * rows * width, 0.3);
  std::vector<std::map<std::string, std::vector<double>>> all(static_cast<std::size_t>(steps));
  std::mutex mutex;
  run_threads(mesh.ranks(), [&](Threads& world) {
    Parameters parameters(plan, world.rank(), 5);
    Trainer<Threads, CpuDouble> step(plan, world, parameters, {}, 1);
    for (int i = 0; i < steps; ++i) {
      const double loss = step(x, y).loss;
      const std::lock_guard lock(mutex);
      if (world.rank() == 0) seen.losses.push_back(loss);
      for (const NamedTensor& t : step.executor().tensors()) {
        auto& whole = all[static_cast<std::size_t>(i)][t.name];
        whole.resize(static_cast<std::size_t>(t.type.layout.elements()));
        step.executor().get(t.name, whole);
      }
    }
  });
  watch("");
  for (auto& of : all)
    for (auto& [name, whole] : of) seen.behind[name].push_back(whole);
  return seen;
}

}  // namespace

TEST_CASE("a parameter's statistics are those of the whole tensor") {
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}}) {
    const Seen seen = train<Plain>(mesh, "blocks.2.up");
    for (const auto& [n, w] : seen.behind) MESSAGE(n);
    for (const Watched& l : seen.lines) MESSAGE(text(l));
  }
}
