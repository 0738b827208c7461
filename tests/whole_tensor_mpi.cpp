// A whole tensor over processes: on each the bits that threads fill together.
#include <cstring>
#include <map>

#include <parallel/communicator/mpi.hpp>
#include <parallel/run/whole_tensor.hpp>

#include "kept.hpp"

using namespace kept;

namespace {

using Tensors = std::map<std::string, std::vector<double>>;

/// Behind a step, calls body(executor, tensor) for each parameter and state of f64, in the plan's order.
template <class Program, Communicator World, class Body>
void each_tensor(World& world, const Mesh& mesh, Body body) {
  const OwnedPlan plan = derive<Program>(mesh, world.rank());
  under_test::Parameters parameters(plan, world.rank(), 5);
  Trainer<World, OnDevice> step(plan, world, parameters, {.learning_rate = 0.02}, 1);
  step(batch(0, 0.7), batch(0, 0.3));
  for (const NamedTensor& t : step.executor().tensors())
    if (t.type.dtype == DType::f64) body(step.executor(), t);
}
template <class Program>
void check_whole(const Mesh& mesh) {
  INFO(text(mesh));
  Tensors filled;
  run_threads(mesh.ranks(), [&](Threads& world) {
    each_tensor<Program>(world, mesh, [&](const auto& executor, const NamedTensor& t) {
      for (int rank = 0; rank < world.size(); ++rank, world.barrier()) {
        if (rank != world.rank()) continue;
        filled[t.name].resize(static_cast<std::size_t>(t.type.layout.elements()), -7);
        executor.get(t.name, filled[t.name]);
      }
    });
  });
  Mpi world;
  std::size_t seen = 0;
  each_tensor<Program>(world, mesh, [&](const auto& executor, const NamedTensor& t) {
    const std::vector<double> whole = whole_tensor<double>(world, executor, t.name), &expected = filled.at(t.name);
    INFO("rank " << world.rank() << ": " << t.name);
    REQUIRE(whole.size() == expected.size());
    CHECK(std::memcmp(whole.data(), expected.data(), whole.size() * sizeof(double)) == 0);
    ++seen;
  });
  CHECK(seen == filled.size());
  CHECK(seen >= 10);
}

}  // namespace

TEST_CASE("each process has all of a parameter and of the optimizer's states") {
  if (Mpi().size() == 2) {
    check_whole<Step>(Mesh{data = 2});
    check_whole<InOrder>(Mesh{tensor = 2});
    check_whole<AllStored<Step, Stored<data>>>(Mesh{data = 2});
  } else {
    check_whole<AllStored<Step, Stored<data, Zero::states>>>(Mesh{data = 2, tensor = 2});
    check_whole<Staged>(Mesh{stage = 2, data = 2});
  }
}
