// Gradients of older parameters: what trains is the definition, written in plain loops, however the parameters are
// stored, and what is pulled is on its way while others compute.
#include "stale.hpp"

#include <parallel/communicator/threads.hpp>

using namespace stale;

namespace {

template <class Program>
Left trained(const Mesh& mesh) {
  Left left;
  run_threads(mesh.ranks(), [&](Threads& world) { train<Program>(world, mesh, left); });
  return left;
}
Weights initial() {
  Weights w;
  run_threads(1, [&](Threads&) {
    const OwnedPlan plan = derive<Step<NetOf<Layers<layers, BlockAt<>>>, Momentum>>(Mesh{});
    Parameters parameters(plan, 0, 5);
    parameters.get(plan, 0, "in", w.in);
    parameters.get(plan, 0, "blocks.*.w", w.w);
    parameters.get(plan, 0, "blocks.*.b", w.b);
    parameters.get(plan, 0, "out", w.out);
  });
  return w;
}
template <class Program>
void check(const char* way, const Left& defined, const std::vector<Mesh>& meshes) {
  for (const Mesh& mesh : meshes) {
    INFO(way << " on " << text(mesh));
    const Left left = trained<Program>(mesh);
    double worst = 0;
    REQUIRE(left.numbers.size() == defined.numbers.size());
    for (std::size_t i = 0; i < left.numbers.size(); ++i)
      worst = std::max(worst, std::abs(left.numbers[i] - defined.numbers[i]));
    for (const auto& [name, numbers] : defined.tensors) {
      INFO(name);
      REQUIRE(left.tensors.contains(name));
      for (std::size_t i = 0; i < numbers.size(); ++i)
        worst = std::max(worst, std::abs(left.tensors.at(name)[i] - numbers[i]));
    }
    CHECK(worst < 1e-12);
  }
}
template <int s>
void check_ways() {
  const Left defined = simulated(initial(), s);
  const std::vector<Mesh> on_data{{data = 1}, {data = 2}, {data = 3}, {data = 4}}, several{{data = 2}, {data = 4}};
  using By = Stale<s, Momentum>;
  using Whole = NetOf<Layers<layers, BlockAt<>>>;
  check<Step<Whole, By>>("whole", defined, on_data);
  check<AllStored<Step<Whole, By>, Stored<data, At<0>>>>("one server", defined, on_data);
  check<AllStored<Step<Whole, By>, Stored<data, At<-1>, Gathered::per_pass>>>("per pass", defined, several);
  check<AllStored<Step<Whole, By>, Stored<data, At<0>, Zero::gradients>>>("gradients", defined, several);
  check<AllStored<Step<Whole, By>, Stored<data, At<0>, Zero::states>>>("states", defined, on_data);
  check<AllStored<Step<Whole, By>, Stored<data, At<0, 1>>>>("the same at two", defined, several);
  check<Step<Spread<1>, By>>("several servers", defined, several);
  check<AllStored<Step<Whole, By>, Stored<data>>>("split", defined, several);
  check<AllStored<Step<Whole, By>, Stored<data, Zero::states>>>("states split", defined, several);
  check<AllStored<Step<Whole, By>, Stored<host>>>("on the host", defined, several);
  check<AllStored<Step<Whole, By, 2>, Stored<data, At<0>>>>("micro-batches", defined, {{data = 2}, {data = 3}});
  check<AllStored<Step<Whole, By, 2>, Stored<data, At<0>, Zero::states>>>("micro-batches, states", defined, {{data = 2}, {data = 3}});
  using Staged = NetOf<Layers<layers / stage, BlockAt<>>>;
  check<AllStored<Step<Staged, By, 2>, Stored<data, At<0>, Zero::states>>>(
      "stages", defined, {{stage = 2}, {stage = 2, data = 2}});
}

}  // namespace

TEST_CASE("by 0 steps it is the optimizer itself, bit for bit") {
  using Whole = NetOf<Layers<layers, BlockAt<>>>;
  for (const Mesh& mesh : {Mesh{data = 2}, Mesh{data = 4}}) {
    const Left plain = trained<AllStored<Step<Whole, AdamW>, Stored<data, At<0>>>>(mesh),
               by_none = trained<AllStored<Step<Whole, Stale<0, AdamW>>, Stored<data, At<0>>>>(mesh);
    CHECK(plain.numbers == by_none.numbers);
    CHECK(plain.tensors == by_none.tensors);
  }
}
TEST_CASE("by none, one, two and three steps it is its definition") {
  check_ways<0>();
  check_ways<1>();
  check_ways<2>();
  check_ways<3>();
}
