// Weights that are packed once a step: the same bits as when each product packs them, for all ways in which a step
// multiplies by a weight several times; as much memory as the plan says; and nothing left of the step before.
#include <numeric>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/plan/packed_once.hpp>
#include <parallel/run/trainer.hpp>

#include "pipeline_training.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

const bool by_eigen = product_library() == "Eigen";  // another library packs by itself, and nothing is kept

/// A CPU that counts what it is asked to keep.
template <class Base>
struct Counting : Base {
  std::vector<std::int64_t>* kept = nullptr;  // bytes, by number

  void keep_packed(Call& call, int number, std::int64_t slots, std::int64_t stride, std::int64_t bytes) const {
    Base::keep_packed(call, number, slots, stride, bytes);
    kept->resize(std::max(kept->size(), static_cast<std::size_t>(number) + 1));
    (*kept)[static_cast<std::size_t>(number)] = slots * bytes;
  }
};

// 416 columns are several tiles, the last of them smaller, and 400 are several depths; 99 columns are not kept
struct Block {
  Parameter<float, Shape<96>> gain{ones};
  Parameter<float, Shape<96, 416 / tensor>> up{normal(0.1)};
  Parameter<float, Shape<416 / tensor, 96>> down{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(rms_norm(x, gain), up)), down); }
};
template <class... Word>
struct Network {
  Parameter<float, Shape<400, 96>> in{normal(0.1)};
  Layers<3, Block, Word...> blocks;
  Parameter<float, Shape<96, 99>> odd{normal(0.1)};
  Parameter<float, Shape<99, 4, 24>> heads{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(matmul(matmul(blocks(matmul(x, in)), odd), heads)));
  }
};
template <int n, class... Word>
using Step = Accumulate<n, Training<Network<Word...>, AdamW, Tensor<float, Shape<16 * n / data, 400>>>>;

/// A product for each of three, of floats or of doubles.
template <class T>
struct Batched {
  Parameter<T, Shape<3, 96, 416>> w{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(batched_matmul(gelu(transpose<1, 0, 2>(x)), w)));
  }
};
template <class T>
using Batches = Accumulate<2, Training<Batched<T>, AdamW, Tensor<T, Shape<16 / data, 3, 96>>>>;

struct Cell {
  Parameter<float, Shape<64, 64>> of{normal(0.1)};
  constexpr auto operator()(Distributed auto h, Distributed auto x) const { return tanh(matmul(h, of) + x); }
};
struct Recurrent {
  Scan<7, Cell> scan;
  constexpr auto operator()(Distributed auto initial, Distributed auto x) const {
    return mean(square(scan(initial, x).each));
  }
};
using Over = Training<Recurrent, AdamW, Tensor<float, Shape<16 / data, 64>>, Tensor<float, Shape<7, 16 / data, 64>>>;

struct Stages {
  Parameter<float, Shape<400, 96>> in{normal(0.1)};
  Layers<4 / stage, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(matmul(x, in)))); }
};
struct Odd {
  Parameter<float, Shape<400, 96>> in{normal(0.1)};
  Layers<5 / stage, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(matmul(x, in)))); }
};
using Staged = Accumulate<4, Training<Stages, AdamW, Tensor<float, Shape<64 / data, 400>>>>;

/// Multiplies by a parameter before it changes it, and by what it leaves.
struct Probing : Sgd {
  static constexpr void update(Update& u) {
    const auto p = u.parameter();
    const auto gram = u.apply(operation::matmul, {p, p}, {}, operation::Product(1, 0, 1, 0))[0];
    u.output("before", u.apply(operation::matmul, {gram, p}, {}, operation::Product(1, 0, 0, 0))[0]);
    Sgd::update(u);
    u.output("behind", u.apply(operation::matmul, {gram, u.updated()}, {}, operation::Product(1, 0, 0, 0))[0]);
  }
};
struct Single {
  Parameter<float, Shape<96, 416>> w{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
using Probed = Accumulate<2, Training<Single, Probing, Tensor<float, Shape<192 / data, 96>>>>;

struct Trained {
  std::vector<double> results;                  // losses, norms, and what an optimizer tells
  std::vector<std::byte> parameters;            // of the first rank
  std::vector<std::vector<std::int64_t>> kept;  // bytes, by rank and number
  std::vector<std::int64_t> stated;

  bool operator==(const Trained& other) const { return results == other.results && parameters == other.parameters; }
};
/// Some steps, between which a parameter is set from outside.
template <class Optimizer, class Base>
Trained trained(const Graph& graph, const Mesh& mesh, bool packs_once, int threads = 1) {
  using Number = std::conditional_t<std::is_same_v<Base, CpuDouble>, double, float>;
  const auto ranks = static_cast<std::size_t>(mesh.ranks());
  Trained seen;
  seen.kept.resize(ranks);
  seen.stated.resize(ranks);
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = pipelines::plan_of(graph, mesh, world.rank());
    Parameters parameters(plan, world.rank(), 1);
    Counting<Base> device;
    device.threads = threads;
    device.packs_once = packs_once;
    device.kept = &seen.kept[static_cast<std::size_t>(world.rank())];
    Trainer<Threads, Counting<Base>> trainer(plan, world, parameters, typename Optimizer::Hyperparameters{}, 1, device);
    int input = 0;
    for (const Member& m : plan->graph.members)
      if (m.role == Role::input)
        trainer.executor().input(input++, program::numbers<Number>(m.type.layout.elements(), 1));
    for (int step = 0; step < 4; ++step) {
      const auto result = trainer.step(0.01);
      if (world.rank() == 0) seen.results.insert(seen.results.end(), {result.loss, result.gradient_norm});
      for (const Member& m : plan->graph.members)
        if (step == 1 && m.role == Role::parameter && m.layers == 0)
          trainer.executor().set(plan->graph.path(m), program::numbers<Number>(m.type.layout.elements(), 2));
    }
    for (const std::string& name : trainer.executor().output_names())
      if (name != "loss" && name != "gradient_norm")
        for (const float number : trainer.executor().output(name).template span<float>())
          if (world.rank() == 0) seen.results.push_back(number);
    seen.stated[static_cast<std::size_t>(world.rank())] = packed_weights(plan);
    const std::byte* const first = parameters.data(plan, world.rank());
    if (world.rank() == 0) seen.parameters.assign(first, first + plan->memory.of(MemoryBlock::parameter));
  });
  return seen;
}
/// How many weights each rank keeps.
template <class Optimizer = AdamW, class Base = Cpu>
std::vector<std::size_t> weights_of(std::string_view name, const Graph& graph, const Mesh& mesh) {
  INFO(name << " on " << text(mesh));
  const Trained each = trained<Optimizer, Base>(graph, mesh, false);
  std::vector<std::size_t> weights;
  for (const int threads : {1, 2, 3}) {
    INFO(threads << " threads");
    const Trained once = trained<Optimizer, Base>(graph, mesh, true, threads);
    CHECK(once == each);
    weights.clear();
    for (std::size_t rank = 0; rank < once.kept.size(); ++rank) {
      const auto& bytes = once.kept[rank];
      CHECK(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}) == once.stated[rank]);
      weights.push_back(bytes.size());
    }
  }
  return weights;
}

View matrix(std::vector<float>& numbers, std::int64_t rows, std::int64_t columns) {
  View v;
  v.data = numbers.data();
  v.dtype = DType::f32;
  v.rank = 2;
  v.size[0] = v.whole[0] = rows;
  v.size[1] = v.whole[1] = columns;
  return v;
}

}  // namespace

TEST_CASE("what a step multiplies by several times is packed once, with the same bits") {
  if (!by_eigen) return;
  using Counts = std::vector<std::size_t>;
  // of in, up, down and heads; where they go back, of down, up and odd: heads would have 99 columns, as odd has
  CHECK(weights_of("micro-batches", build<Step<4>>(), Mesh{data = 1}) == Counts{7});
  CHECK(weights_of("micro-batches", build<Step<4>>(), Mesh{data = 2, tensor = 2}) == Counts{7, 7, 7, 7});
  CHECK(weights_of("one batch", build<Step<1>>(), Mesh{data = 1}) == Counts{0});
  CHECK(weights_of("computed again", build<Step<1, Recompute<>>>(), Mesh{data = 2}) == Counts{1, 1});
  CHECK(weights_of("of micro-batches, computed again", build<Step<2, Recompute<>>>(), Mesh{data = 1}) == Counts{7});
  CHECK(weights_of("steps of a scan", build<Over>(), Mesh{data = 2}) == Counts{2, 2});
}
TEST_CASE("products in batches, and in doubles") {
  if (!by_eigen) return;
  using Counts = std::vector<std::size_t>;
  CHECK(weights_of("floats", build<Batches<float>>(), Mesh{data = 2}) == Counts{1, 1});
  CHECK(weights_of<AdamW, CpuDouble>("doubles", build<Batches<double>>(), Mesh{data = 2}) == Counts{1, 1});
}
TEST_CASE("what an optimizer multiplies by is not what the step before it did") {
  if (!by_eigen) return;
  // forward; x has no gradient
  CHECK(weights_of<Probing>("an optimizer's products", build<Probed>(), Mesh{data = 1}) == std::vector<std::size_t>{1});
}
TEST_CASE("stages pack their own weights once, of all chunks, and where weights change within a step none") {
  if (!by_eigen) return;
  const Graph graph = build<Staged>();
  for (const Schedule* schedule : pipelines::synchronous)
    for (const Mesh& mesh : {Mesh{stage = 2}, Mesh{data = 2, stage = 2}}) {
      const auto weights = weights_of(schedule->name, with_schedule(graph, *schedule), mesh);
      for (int rank = 0; rank < mesh.ranks(); ++rank)  // up and down, both ways, and on the first stage in
        CHECK(weights[static_cast<std::size_t>(rank)] == (mesh.coordinate(rank, &stage) == 0 ? 5 : 4));
    }
  CHECK(weights_of("balanced stages",
                   build<Balanced<Accumulate<2, Training<Odd, AdamW, Tensor<float, Shape<32 / data, 400>>>>>>(),
                   Mesh{stage = 2}) == std::vector<std::size_t>{5, 4});
  CHECK(weights_of<AdamW>("pipedream", build<Pipelined<schedules::pipedream, Staged>>(), Mesh{stage = 2}) ==
        std::vector<std::size_t>{0, 0});
}
TEST_CASE("a weight is packed by the first product of a step, and found packed by the others of that step") {
  if (!by_eigen) return;
  constexpr std::int64_t m = 3, n = 416, k = 400;
  std::vector<float> x = program::numbers<float>(m * k, 1), w = program::numbers<float>(k * n, 2), y(m * n);
  Cpu cpu{.packs_once = true};
  cpu.make_ready({});
  cpu.make_room(n * k * 4);
  Call call{.operands = {matrix(x, m, k), matrix(w, k, n)}, .results = {matrix(y, m, n)}};
  call.ints = operation::Product(1, 0, 0, 0);
  call.kernel = cpu.kernel(operation::matmul, call);
  cpu.keep_packed(call, 0, 1, 0, n * k * 4);
  const auto computed = [&] {
    call.kernel(call);
    return y;
  };
  cpu.begin_step();
  const auto of_w = computed();
  for (float& number : w) number *= 2;
  CHECK(computed() == of_w);
  cpu.begin_step();
  for (std::size_t i = 0; i < of_w.size(); ++i) CHECK(computed()[i] == 2 * of_w[i]);
  CHECK_THROWS_AS(cpu.keep_packed(call, 1, 1, 0, 64), Failure);
}
