// Gradients of older parameters: what trains is the definition, written in plain loops, however the parameters are
// stored, and what is pulled is on its way while others compute.
#include "stale.hpp"

#include <parallel/model/averaged.hpp>

#include "kept.hpp"

using namespace stale;

namespace {

template <class Program>
Left trained(const Mesh& mesh, int skipped = -1, int still = 0) {
  Left left;
  run_threads(mesh.ranks(), [&](Threads& world) { train<Program>(world, mesh, left, skipped, still); });
  return left;
}
template <class Program>
void check(const char* way, const Left& defined, const std::vector<Mesh>& meshes) {
  for (const Mesh& mesh : meshes) {
    INFO(way << " on " << text(mesh));
    CHECK(apart(trained<Program>(mesh), defined) < 1e-12);
  }
}
using Whole = NetOf<Layers<layers, BlockAt<>>>;
template <class Optimizer>
using Served = AllStored<Step<Whole, Optimizer>, Stored<data, At<0>>>;
template <class Optimizer>
using ServedStates = AllStored<Step<Whole, Optimizer>, Stored<data, At<0>, Zero::states>>;
struct One {
  Parameter<float, Shape<4>> w{normal(1)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(w - x)); }
};
template <int s>
void check_ways() {
  const Left defined = simulated(initial(), s);
  const std::vector<Mesh> on_data{{data = 1}, {data = 2}, {data = 3}, {data = 4}}, several{{data = 2}, {data = 4}};
  using By = Stale<s, Momentum>;
  check<Step<Whole, By>>("whole", defined, on_data);
  check<Served<By>>("one server", defined, on_data);
  check<AllStored<Step<Whole, By>, Stored<data, At<-1>, Gathered::per_pass>>>("per pass", defined, several);
  check<AllStored<Step<Whole, By>, Stored<data, At<0>, Zero::gradients>>>("gradients", defined, several);
  check<ServedStates<By>>("states", defined, on_data);
  check<AllStored<Step<Whole, By>, Stored<data, At<0, 1>>>>("the same at two", defined, several);
  check<Step<Spread, By>>("several servers", defined, several);
  check<AllStored<Step<Whole, By>, Stored<data>>>("split", defined, several);
  check<AllStored<Step<Whole, By>, Stored<data, Zero::states>>>("states split", defined, several);
  check<AllStored<Step<Whole, By>, Stored<host>>>("on the host", defined, several);
  check<AllStored<Step<Whole, By, 2>, Stored<data, At<0>>>>("micro-batches", defined, {{data = 2}, {data = 3}});
  check<AllStored<Step<Whole, By, 2>, Stored<data, At<0>, Zero::states>>>("micro-batches, states", defined,
                                                                          {{data = 2}, {data = 3}});
  using Staged = NetOf<Layers<layers / stage, BlockAt<>>>;
  check<AllStored<Step<Staged, By, 2>, Stored<data, At<0>, Zero::states>>>("stages", defined,
                                                                           {{stage = 2}, {stage = 2, data = 2}});
}

}  // namespace

TEST_CASE("by no steps it is the optimizer itself, bit for bit") {
  for (const Mesh& mesh : {Mesh{data = 2}, Mesh{data = 4}}) {
    const Left plain = trained<Served<AdamW>>(mesh), by_none = trained<Served<Stale<0, AdamW>>>(mesh);
    CHECK(plain.numbers == by_none.numbers);
    CHECK(plain.tensors == by_none.tensors);
  }
}
TEST_CASE("it is its definition, by none, one, two and three steps") {
  check_ways<0>();
  check_ways<1>();
  check_ways<2>();
  check<ServedStates<Stale<3, Momentum>>>("three steps", simulated(initial(), 3), {{data = 2}});
}
TEST_CASE("a step that is skipped is none, the first also") {
  for (const int skipped : {0, 1, 3}) {
    INFO("step " << skipped);
    const Left defined = simulated(initial(), 2, skipped);
    CHECK(apart(trained<Served<Stale<2, Momentum>>>(Mesh{data = 2}, skipped), defined) < 1e-12);
    CHECK(apart(trained<ServedStates<Stale<2, Momentum>>>(Mesh{data = 2}, skipped), defined) < 1e-12);
  }
}
TEST_CASE("steps at a learning rate of 0 bring the newest into the parameters") {
  const Mesh mesh{data = 2};
  Left left = trained<ServedStates<Stale<2, Momentum>>>(mesh),
       still = trained<ServedStates<Stale<2, Momentum>>>(mesh, -1, 2);
  for (const char* const name : {"in", "blocks.*.w", "blocks.*.b", "out"}) {
    CHECK(still.tensors[name] == left.tensors[std::string(name) + ".newest"]);
    CHECK(still.tensors[name] != left.tensors[name]);
  }
}
TEST_CASE_TEMPLATE("any optimizer is made of, on every mesh as on one rank", Optimizer, AdamW, Adafactor, Muon) {
  using By = Stale<1, Optimizer>;
  const Left one = trained<Step<Whole, By>>(Mesh{});
  CHECK(one.numbers.back() != trained<Step<Whole, Optimizer>>(Mesh{}).numbers.back());
  for (const Mesh& mesh : {Mesh{data = 2}, Mesh{data = 4}}) {
    INFO(text(mesh));
    CHECK(apart(trained<Served<By>>(mesh), one) < 1e-10);
    CHECK(apart(trained<ServedStates<By>>(mesh), one) < 1e-10);
    CHECK(apart(trained<AllStored<Step<Whole, By>, Stored<data>>>(mesh), one) < 1e-10);
  }
}
TEST_CASE_TEMPLATE("averages are of the newest", Optimizer, Stale<2, Averaged<Momentum>>,
                   Averaged<Stale<2, Momentum>>) {
  Left left = trained<ServedStates<Optimizer>>(Mesh{data = 2});
  for (const std::string name : {"in", "blocks.*.w", "blocks.*.b", "out"})
    CHECK(left.tensors[name + ".average"] == left.tensors[name + ".newest"]);
}
TEST_CASE_TEMPLATE("versions are as precise as parameters, whatever states are kept in", Optimizer,
                   StatesIn<bfloat16, Stale<1, Momentum>>, Stale<1, StatesIn<bfloat16, Momentum>>) {
  const OwnedPlan plan = derive<Training<One, Optimizer, Tensor<float, Shape<4>>>>(Mesh{});
  std::map<std::string, DType> types;
  for (const Member& m : plan->graph.members) types[std::string(plan->graph.path(m))] = m.type.dtype;
  CHECK(types["w.newest"] == DType::f32);
  CHECK(types["w.momentum"] == DType::bf16);
}
TEST_CASE("what is kept is gone on with on other meshes, otherwise stored") {
  using By = Stale<2, AdamW>;
  using At0 = AllStored<kept::By<By>, Stored<data, At<0>>>;
  using States = AllStored<kept::By<By>, Stored<data, At<1>, Zero::states>>;
  constexpr int all_steps = 6;
  for (const int saved : {1, 3}) {
    const kept::Folder folder, nothing;
    const std::vector<double> all = kept::train<At0, By>(folder.path, Mesh{data = 2}, all_steps, saved),
                              rest = kept::behind(all, saved);
    CHECK(kept::train<At0, By>(folder.path, Mesh{data = 2}, all_steps, 0) == rest);
    CHECK(kept::near(kept::train<kept::By<By>, By>(folder.path, Mesh{data = 1}, all_steps, 0), rest));
    CHECK(kept::near(kept::train<States, By>(folder.path, Mesh{data = 4}, all_steps, 0), rest));
  }
}

// Where workers keep parameters, and the server the states, a plan has what is pulled on its way for the whole step:
// each broadcast starts before anything is computed, and is waited for by the updates.
constexpr auto& ahead = plan<ServedStates<Stale<1, Momentum>>, Mesh{data = 4}>;
constexpr auto& in_step = plan<ServedStates<Momentum>, Mesh{data = 4}>;
constexpr bool lie_under_the_step(const auto& plan) {
  int pulls = 0;
  bool computes = false, waited = false;
  for (const Event& e : plan.events) {
    const Node& node = plan.graph.node(e.node);
    if (node.transition.collective == Collective::broadcast) {
      if (e.kind == EventKind::start && computes) return false;
      pulls += e.kind == EventKind::start;
      waited = waited || e.kind == EventKind::wait;
    } else if (e.kind == EventKind::compute) {
      computes = true;
      if (waited && node.phase != Phase::optimizer) return false;
    }
  }
  return pulls == 4;
}
static_assert(lie_under_the_step(ahead) && !lie_under_the_step(in_step));
static_assert(ahead.all.elements(data, Collective::broadcast) == in_step.all.elements(data, Collective::broadcast));
static_assert(ahead.memory.of(Use::optimizer_state) == 2 * in_step.memory.of(Use::optimizer_state));
