// Values that only some ranks hold: every move to them, from them and between them, forward and backward, and their
// updates, on two to four ranks against one, and beside another axis; parameter servers against data parallelism.
#include "at.hpp"

using namespace at_some;

namespace {

/// Runs a graph on a mesh of threads.
void check(const Graph& graph, const std::vector<double>& one, const Mesh& mesh, const std::string& name) {
  const OwnedPlan plan = derive(Graph(graph), mesh, {}, {});
  std::vector<Compared> ranks(static_cast<std::size_t>(mesh.ranks()));
  run_threads(mesh.ranks(), [&](Threads& world) {
    ranks[static_cast<std::size_t>(world.rank())] = compared(trained(plan, world), one);
  });
  INFO(name << " on " << text(mesh));
  std::size_t held = 0;
  for (const Compared& c : ranks) {
    CHECK(c.worst < 1e-12);
    held += c.held;
  }
  CHECK(held >= extent * extent);  // all of the parameter is somewhere
}

using axes::data;

template <class... At>
struct Block {
  Parameter<float, Shape<8, 8>, At...> w{normal(0.3)};
  Parameter<float, Shape<8>, At...> b{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const { return x + gelu(matmul(x, w) + b); }
};
template <class First, class Middle, class Last>
struct Net {
  First in{normal(0.3)};
  Layers<3, Middle> blocks;
  Last out{normal(0.3)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(matmul(x, in)), out) - y));
  }
};
template <class Model>
using Step = Training<Model, AdamW, Tensor<float, Shape<8 / data, 6>>, Tensor<float, Shape<8 / data, 4>>>;
using Ring = Step<Net<Parameter<float, Shape<6, 8>>, Block<>, Parameter<float, Shape<8, 4>>>>;
template <auto... word>
using Served = AllStored<Ring, Stored<data, word...>>;
using Several = Step<Net<Parameter<float, Shape<6, 8>, Stored<data, At<0>>>, Block<Stored<data, At<1>>>,
                         Parameter<float, Shape<8, 4>, Stored<data, At<-1>>>>>;

// Pulled where they are used, forward and backward, and pushed once.
constexpr auto& served = plan<Served<At<0>>, Mesh{data = 4}>;
static_assert(equals<served.forward.calls(broadcast), 2 + 3 * 2>);
static_assert(equals<served.backward.calls(reduce), 2 + 3 * 2>);
static_assert(equals<served.backward.elements(data, Collective::reduce), 6 * 8 + 3 * (8 * 8 + 8) + 8 * 4>);
// The server's link has what all others pull and push; the ring's links are all alike.
constexpr auto& all_alike = plan<Ring, Mesh{data = 4}>;
constexpr double model = 4 * (6 * 8 + 3 * (8 * 8 + 8) + 8 * 4), pulled = model + 4 * (3 * 8 * 8 + 8 * 4),
                 completed = 1.5 * (4 + 8);
static_assert(served.link(data, 0) == Traffic{3 * pulled + completed, 3 * model + completed});
static_assert(served.link(data, 3) == Traffic{model + completed, pulled + completed});
static_assert(all_alike.link(data, 0) == all_alike.link(data, 3) && all_alike.link(data, 0).sent == 1.5 * (model + 4));
static_assert(served.all.one_sided_on(data) && !all_alike.all.one_sided_on(data));

/// What three steps leave of losses, norms and parameters.
struct Left {
  std::vector<double> numbers{};
  std::vector<std::vector<float>> parameters{};
  bool operator==(const Left&) const = default;
};
template <class Program>
Left trained(int ranks, double clip_norm) {
  const auto plan = derive<Program>(Mesh{data = ranks});
  Left left;
  run_threads(ranks, [&](Threads& world) {
    Parameters parameters(*plan, world.rank(), 1);
    Trainer<Threads, Cpu> trainer(*plan, world, parameters, {.weight_decay = 0.1, .clip_norm = clip_norm}, 1);
    const int batches = Program::micro_batches;
    trainer.executor().inputs(
        {{program::numbers<float>(batches * 8 * 6, 1), program::numbers<float>(batches * 8 * 4, 2)}});
    std::vector<double> own;
    for (int step = 0; step < 3; ++step) {
      const StepResult r = trainer.step(1e-2);
      own.insert(own.end(), {r.loss, r.gradient_norm});
    }
    if (world.rank() == 0) left.numbers = own;
    const auto tensors = trainer.executor().tensors();
    if (world.rank() == 0)
      for (const NamedTensor& t : tensors) left.parameters.emplace_back(t.type.layout.elements(), -1.0F);
    for (int r = 0; r < world.size(); ++r) {
      world.barrier();
      for (std::size_t i = 0; i < tensors.size() && r == world.rank(); ++i)
        trainer.executor().get(tensors[i].name, left.parameters[i]);
    }
  });
  return left;
}
double apart(const Left& a, const Left& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.numbers.size(); ++i) worst = std::max(worst, std::abs(a.numbers[i] - b.numbers[i]));
  for (std::size_t i = 0; i < a.parameters.size(); ++i)
    for (std::size_t k = 0; k < a.parameters[i].size(); ++k)
      worst = std::max(worst, static_cast<double>(std::abs(a.parameters[i][k] - b.parameters[i][k])));
  return worst;
}

}  // namespace

TEST_CASE("every way of a parameter over two moves trains as on one rank") {
  int ways = 0;
  each_way([&](const std::vector<Placement>& placements) {
    const Graph graph = Course(placements).graph;
    const std::vector<double> one = alone(graph);
    for (const int ranks : {2, 3, 4}) check(graph, one, Mesh{some = ranks}, text_of(placements));
    ++ways;
  });
  CHECK(ways > 300);
}
TEST_CASE("and beside another axis, by which it is split, or on which some ranks hold it, too") {
  int ways = 0;
  for (const Placement& beside : {Split<0>, Split<1>, At<0>, At<1>, At<-1, 0>})
    for (const Placement& rest : at_rest)
      for (const Placement& way : on_the_way) {
        const auto splits_same = [&](const Placement& p) { return p.split() && beside.split() && p.dim == beside.dim; };
        const bool at =
            rest.kind == PlacementKind::at || way.kind == PlacementKind::at || beside.kind == PlacementKind::at;
        if (!at || !moves(rest, way) || splits_same(rest) || splits_same(way)) continue;
        const Graph graph = Course({rest, way}, beside).graph;
        const std::vector<double> one = alone(graph);
        for (const Mesh& mesh : {Mesh{some = 2, other = 2}, Mesh{other = 2, some = 3}})
          check(graph, one, mesh, text_of({rest, way}) + " beside " + text(beside));
        ++ways;
      }
  CHECK(ways > 100);
}
TEST_CASE("a parameter server trains bit for bit as data parallelism does") {
  for (const int ranks : {1, 2, 4})
    for (const double clip_norm : {0.0, 0.1}) {
      INFO(ranks << " ranks, clipped at " << clip_norm);
      const Left ring = trained<Ring>(ranks, clip_norm);
      CHECK(ring.numbers[0] > ring.numbers[4]);  // it learns
      CHECK(trained<Served<At<0>>>(ranks, clip_norm) == ring);
      CHECK(trained<Served<At<-1>>>(ranks, clip_norm) == ring);
      CHECK(trained<Served<At<0>, Gathered::per_pass>>(ranks, clip_norm) == ring);
      CHECK(trained<Served<At<0>, Zero::states>>(ranks, clip_norm) == ring);
    }
}
TEST_CASE("several servers do but for the order in which the norm adds up, by which gradients are clipped") {
  for (const int ranks : {2, 4}) {
    INFO(ranks << " ranks");
    CHECK(trained<Several>(ranks, 0).parameters == trained<Ring>(ranks, 0).parameters);
    CHECK(apart(trained<Several>(ranks, 0.1), trained<Ring>(ranks, 0.1)) < 1e-5);
  }
}
TEST_CASE("servers take each micro-batch's gradient, or their sum") {
  const Left ring = trained<Accumulate<3, Ring>>(2, 0.1);
  CHECK(apart(trained<Accumulate<3, Served<At<1>>>>(2, 0.1), ring) < 1e-5);
  CHECK(apart(trained<Accumulate<3, Served<At<1>, Gathered::per_step>>>(2, 0.1), ring) < 1e-5);
  CHECK(apart(trained<Accumulate<3, Served<At<1>, Zero::gradients>>>(2, 0.1), ring) < 1e-5);
  CHECK(trained<Accumulate<3, Served<At<1>, Zero::states>>>(2, 0.1) == ring);
}
