// Without ZeRO gradients of layers' matrices are completed in the last micro-batch, each in its own place and under the
// layer before: what happens when, what it takes, and by hand how much of it is hidden.
#include <array>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/cost/predict.hpp>
#include <parallel/cost/published_machines.hpp>
#include <parallel/object/sound_graph.hpp>
#include <parallel/parallel.hpp>

#include "regions.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int layers = 4, size = 100;
struct Layer {
  Parameter<float, Shape<size, size>> w;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, w); }
};
template <class... Word>
struct Network {
  Layers<layers, Layer, Word...> blocks;
  constexpr auto operator()(Distributed auto x) const { return sum(blocks(x)); }
};
template <int micro_batches, class... Word>
using Step = Accumulate<micro_batches, Training<Network<Word...>, Sgd, Tensor<float, Shape<size / data, size>>>>;
template <int micro_batches, class... Word>
using Parts = AllStored<Step<micro_batches, Word...>, Stored<data, Zero::states>>;

/// Of each reduction of a matrix behind how many whole micro-batches it starts, and whether it is waited for before
/// that matrix is updated.
std::vector<int> starts(const Plan& plan) {
  std::vector<int> all;
  int micro_batches = 0, under_way = 0;
  each_event(plan, [&](const Event& e) {
    const Node& node = plan.graph.node(e.node);
    const Region& region = plan.graph.region(node.region);
    micro_batches += e.kind == EventKind::end && region.kind == RegionKind::micro_batches ? 1 : 0;
    const bool matrix = node.transition.collective == Collective::all_reduce &&
                        plan.graph.value(node.operands[0]).type.layout.rank() > 1;
    if (matrix && e.kind == EventKind::start) all.push_back(micro_batches);
    if (matrix && e.kind != EventKind::compute) under_way += e.kind == EventKind::start ? 1 : -1;
    if (e.kind == EventKind::compute && node.phase == Phase::optimizer && node.operation->updates)
      CHECK(under_way == 0);
  });
  CHECK(under_way == 0);
  return all;
}

/// Two loops, matrices beside vectors, and sums in the layers that the backward pass reads.
struct Wide {
  Parameter<float, Shape<8, 12 / tensor>> up;
  Parameter<float, Shape<12 / tensor>> bias;
  Parameter<float, Shape<12 / tensor, 8>> down;
  Parameter<float, Shape<8, 8>> out;
  constexpr auto operator()(Distributed auto x) const {
    return x + matmul(gelu(matmul(gelu(matmul(x, up) + bias), down)), out);
  }
};
template <class... Word>
struct Loops {
  Parameter<float, Shape<8, 8>> in;
  Layers<4, Wide, Word...> first;
  Layers<3, Wide> then;
  constexpr auto operator()(Distributed auto x) const { return mean(square(then(first(matmul(x, in))))); }
};
template <int micro_batches, class... Word>
using Looping = Accumulate<micro_batches, Training<Loops<Word...>, AdamW, Tensor<float, Shape<8 / data, 8>>>>;
template <class Program>
void check_memory(int matrices) {
  for (const Mesh& mesh : {Mesh{}, Mesh{data = 2}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}}) {
    const OwnedPlan plan = derive<Program>(mesh);
    CHECK(regions::Order(*plan).faults == std::vector<std::string>{});
    CHECK(regions::Memory(*plan).faults == std::vector<std::string>{});
    int in_last = 0;
    for (const Event& e : plan->events)
      in_last += e.kind == EventKind::start && plan->graph.node(e.node).in_last >= 0 ? 1 : 0;
    CHECK(in_last == (mesh.extent(&data) > 1 ? matrices : 0));
  }
}

/// A product of a rank's rows of a layer takes a second, a matrix is sent in `sending`; nothing else takes time.
Machine machine(double sending) {
  Machine m;
  m.name = "made up";
  Rates r;
  r.products[static_cast<int>(DType::f32)] = 2.0 * (size / 2) * size * size;
  r.functions[static_cast<int>(DType::f32)] = r.memory_bandwidth = 1e30;
  r.link = {0, 4.0 * size * size / sending};
  m.rates.push_back(r);
  m.overlaps = true;
  return m;
}

}  // namespace

TEST_CASE("they start in the last micro-batch alone, a layer at a time") {
  CHECK(starts(derive<Step<3>>(Mesh{data = 2})) == std::vector(layers, 2));
  CHECK(starts(derive<Step<2, Recompute<2>>>(Mesh{data = 2})) == std::vector(layers, 1));
  CHECK(starts(derive<Step<1>>(Mesh{data = 2})) == std::vector(layers, 0));
  CHECK(starts(derive<Step<3>>(Mesh{})).empty());  // one rank has nothing to complete
  const OwnedPlan plan = derive<Step<3>>(Mesh{data = 2});
  CHECK(plan->backward.calls(all_reduce(data)) == layers);
  CHECK(plan->backward.messages(all_reduce(data)) == 4 * layers * size * size);
}

TEST_CASE("they take no room beside the sums of the micro-batches") {
  const std::int64_t bytes = 4 * layers * size * size;
  for (const int ranks : {1, 2, 4}) {
    CHECK(derive<Step<3>>(Mesh{data = ranks})->memory.of(Use::gradients) == bytes);
    CHECK(derive<Step<3, Recompute<2>>>(Mesh{data = ranks})->memory.of(Use::gradients) == bytes);
  }
  // parts of a stage of ZeRO lie elsewhere, and only when all else is over
  const OwnedPlan whole = derive<Step<3>>(Mesh{data = 2}), parts = derive<Parts<3>>(Mesh{data = 2});
  CHECK(parts->memory.of(Use::gradients) == bytes + bytes / 2);
  CHECK(parts->peak_memory() == whole->peak_memory());
}

TEST_CASE("every value is where it is read, whatever else the layers have") {
  check_memory<Looping<2>>(6);
  check_memory<Looping<3, Recompute<>>>(6);
  check_memory<Looping<3, Recompute<2>>>(9);  // two layers in an iteration of the first loop
}

TEST_CASE("all but the last lie under the layer before") {
  // a layer's two products backward take two seconds: the next one's reduction of half a second is under the first
  const OwnedPlan plan = derive<Step<3>>(Mesh{data = 2});
  const Overlap some = overlap(simulate(*plan, machine(0.5)));
  CHECK(some.seconds == doctest::Approx(layers * 0.5).epsilon(1e-3));
  CHECK(some.under_computation == doctest::Approx((layers - 1) * 0.5).epsilon(1e-3));
  const double at_once = simulate(*plan, machine(1e-9)).seconds;
  CHECK(simulate(*plan, machine(0.5)).seconds == doctest::Approx(at_once + 0.5).epsilon(1e-3));
  // as where each layer of one micro-batch is
  const Overlap one = overlap(simulate(derive<Step<1>>(Mesh{data = 2}), machine(0.5)));
  CHECK(one.under_computation == doctest::Approx(some.under_computation).epsilon(1e-3));
}

TEST_CASE(
    "a graph from a file says of moves in a loop over micro-batches alone that they happen in its last iteration") {
  const Graph sound = build<Step<3>>();
  int checked = 0;
  object::check_graph(sound);
  for (int n = 0; n < sound.nodes.size(); ++n) {
    if (sound.nodes[n].in_last < 0) continue;
    for (int region = 0; region < sound.regions.size(); ++region) {
      Graph other = sound;
      other.nodes[n].in_last = region;
      if (region == sound.nodes[n].in_last)
        object::check_graph(other);
      else
        CHECK_THROWS_AS(object::check_graph(other), object::Damaged);
      ++checked;
    }
  }
  CHECK(checked >= layers);
  for (int n = 0; n < sound.nodes.size(); ++n)
    if (!sound.nodes[n].is(Structural::move)) {
      Graph other = sound;
      other.nodes[n].in_last = 1;
      CHECK_THROWS_AS(object::check_graph(other), object::Damaged);
    }
}
