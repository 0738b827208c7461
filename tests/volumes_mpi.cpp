// What ranks send in a step by each stage of ZeRO: 2, 2, m + 1 and 3 m times the parameters' bytes less each rank's own
// share, in m micro-batches (Rajbhandari et al., 2020, section 7), and beside that padding, the loss, the norm. Alike in
// the plan, in the communicators' record and in what MPI was called for, byte by byte, over all ranks.
#include <map>

#include <doctest/doctest.h>

#include <parallel/communicator/mpi.hpp>

#include "mpi_calls.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

inline constexpr Axis replica{"replica"};

/// Every parameter is needed backward, too. No size divides by two.
struct Model {
  struct Block {
    Parameter<float, Shape<5>> gain{normal(1)};
    Parameter<float, Shape<5, 9>> up{normal(0.3)};
    Parameter<float, Shape<9, 5>> down{normal(0.3)};
    constexpr auto operator()(Distributed auto x) const {
      return x + matmul(gelu(matmul(rms_norm(x, gain), up)), down);
    }
  };
  Parameter<float, Shape<7, 5>> in{normal(0.3)};
  Layers<3, Block> blocks;
  Parameter<float, Shape<5, 3>> out{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(blocks(matmul(x, in)), out))); }
};
constexpr std::int64_t sizes[] = {35, 5, 45, 45, 5, 45, 45, 5, 45, 45, 15};  // of the parameters, layer by layer
constexpr std::int64_t width = sizeof(float), loss = width, norm = 8;        // bytes

template <int m, class... S>
using Step = AllStored<Accumulate<m, Training<Model, AdamW, Wanted<float, Shape<8 / replica / data, 7>>>>, S...>;

/// How often, by what was published, a rank sends the parameters' bytes less its own share.
struct Stage {
  std::string name;
  int times;
  Graph graph;
  bool stored = true;
};
template <int m>
std::vector<Stage> stages() {
  std::vector<Stage> all;
  all.push_back({"no ZeRO", 2, build<Step<m>>(), false});
  all.push_back({"stage 1", 2, build<Step<m, Stored<data, Zero::states>>>()});
  all.push_back({"stage 2", m + 1, build<Step<m, Stored<data, Zero::gradients>>>()});
  all.push_back({"stage 3", 3 * m, build<Step<m, Stored<data>>>()});
  all.push_back({"stage 3, per pass", 2 * m, build<Step<m, Stored<data, Gathered::per_pass>>>()});
  all.push_back({"stage 3, per step", m + 1, build<Step<m, Stored<data, Gathered::per_step>>>()});
  return all;
}

/// Bytes of the parameters, each but for `n` = 1 padded to a multiple of so many elements.
std::int64_t bytes_of_all(std::int64_t n) {
  std::int64_t elements = 0;
  for (const std::int64_t e : sizes) elements += (e + n - 1) / n * n;
  return width * elements;
}
/// What all ranks of the mesh send in a step.
std::int64_t expected(const Stage& stage, const Mesh& mesh) {
  const std::int64_t all = mesh.ranks(), n = mesh.extent(&data), groups = mesh.extent(&replica);
  const std::int64_t parameters = bytes_of_all(1), padding = bytes_of_all(n) - parameters;
  if (!stage.stored) return stage.times * (all - 1) * parameters + 2 * (all - 1) * loss;
  const std::int64_t published = groups * stage.times * (n - 1) * parameters,
                     padded = groups * stage.times * (n - 1) * padding;
  const std::int64_t between = 2 * (groups - 1) * (parameters + padding);  // groups, once a step: all-reduced parts
  return published + padded + between + 2 * (all - 1) * loss + groups * 2 * (n - 1) * norm;
}

std::int64_t over_all(std::int64_t mine) {
  std::int64_t sum = 0;
  PMPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}
/// Bytes that leave a rank by a call of MPI: what it gives to others, not what the call counts of it to itself.
std::int64_t left(const mpi_calls::Called& c) {
  const auto n = static_cast<std::int64_t>(c.ranks.size());
  if (c.name == "Ialltoallv") return c.given;
  if (c.name == "Ialltoall") return c.given / n * (n - 1);
  if (c.name == "Iallgather" || c.name == "Iallgatherv") return c.given * (n - 1);
  FAIL("a step needs no MPI_" << c.name);
  return 0;
}
/// Bytes that leave all ranks of a group by what one of them recorded.
std::int64_t left(const Record& r) { return (r.kind == Collective::all_reduce ? 2 : 1) * r.bytes * (r.ranks - 1); }

void check(const Stage& stage, const Mesh& mesh, Mpi& world) {
  const OwnedPlan plan = derive(stage.graph, mesh, {}, {});
  const std::int64_t bytes = expected(stage, mesh);
  CHECK(plan->sent() * mesh.ranks() == doctest::Approx(static_cast<double>(bytes)).epsilon(1e-12));

  Parameters parameters(plan, world.rank(), 5);
  Trainer<Mpi, Cpu> trainer(plan, world, parameters, {.clip_norm = 1}, 1);
  trainer.executor().input(0, program::numbers<float>(static_cast<std::int64_t>(program::input_elements(*plan)), 1));
  std::map<std::string, std::vector<Record>> records;
  trainer.executor().each_group([&](const std::string& axes, Mpi& group) { group.record(&records[axes]); });
  mpi_calls::calls.clear();
  trainer.step(1e-3);
  const std::vector<mpi_calls::Called> calls = mpi_calls::calls;

  std::int64_t recorded = 0, called = 0;
  for (const auto& group : records)
    for (const Record& r : group.second) recorded += left(r) * (world.size() / r.ranks);
  CHECK(over_all(recorded) == bytes * world.size());
  REQUIRE(calls.front() == mpi_calls::Called{"Iallreduce MAX", 16, 16});  // that all are at the same step
  for (std::size_t i = 1; i < calls.size(); ++i) called += left(calls[i]);
  CHECK(over_all(called) == bytes);
}
template <int m>
void check_stages() {
  Mpi world({.shared_memory = false});  // as between machines: MPI sees all
  std::vector<Mesh> meshes{Mesh{data = world.size()}};
  if (world.size() == 4) meshes.push_back(Mesh{replica = 2, data = 2});
  for (const Stage& stage : stages<m>())
    for (const Mesh& mesh : meshes) {
      INFO(stage.name << " with " << m << " micro-batches on " << text(mesh));
      check(stage, mesh, world);
    }
}

}  // namespace

TEST_CASE("the published volumes of each stage of ZeRO, in plan, record and calls of MPI") { check_stages<1>(); }
TEST_CASE("the same with two micro-batches") { check_stages<2>(); }
TEST_CASE("the same with four micro-batches") { check_stages<4>(); }
