// A whole step over MPI: what MPI was called for, counted between the library and MPI, is the plan, call by call and
// byte by byte.
#include <algorithm>
#include <map>

#include <doctest/doctest.h>

#include <parallel/communicator/mpi.hpp>

#include "models.hpp"
#include "mpi_calls.hpp"
#include "program.hpp"
#include "turning.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using mpi_calls::Called;

namespace {

using Model = models::Gpt<float, models::multiples_of(12)>;
using Step = Accumulate<2, Training<Model, AdamW, Model::Tokens, Model::Tokens>>;

/// The ranks of the world that lie with this one on a set of axes, by the definition of a mesh.
std::vector<int> with(int rank, const Mesh& mesh, const std::string& axes) {
  std::vector<int> result;
  for (int other = 0; other < mesh.ranks(); ++other) {
    bool together = true;
    for (int a = 0; a < mesh.count; ++a) {
      const std::string name(mesh.axes[a].axis->text());
      if (("+" + axes + "+").find("+" + name + "+") == std::string::npos)
        together = together && mesh.coordinate(rank, mesh.axes[a].axis) == mesh.coordinate(other, mesh.axes[a].axis);
    }
    if (together) result.push_back(other);
  }
  return result;
}
/// Parts are gathered when an all-reduce ends, and one may end while another has begun: those are compared apart.
bool ends(const Called& c) { return c.name == "Iallgatherv"; }
std::vector<Called> only(std::vector<Called> all, bool ending) {
  std::erase_if(all, [&](const Called& c) { return ends(c) != ending; });
  if (ending) std::sort(all.begin(), all.end());
  return all;
}

/// What MPI was called for in `step` against the plan.
template <class Running, class Step>
void check(const Plan& plan, const Mesh& mesh, Mpi& world, Running& executor, Step step) {
  mpi_calls::calls.clear();
  step();
  std::vector<Called> seen = mpi_calls::calls;
  const auto begins_with = [&](const Comparison& beside, const char* called, std::int64_t given) {
    if (beside.calls() == 0) return;
    const Called first = seen.empty() ? Called{} : seen.front();
    CHECK(first == Called{called, given, beside.messages()});
    CHECK(static_cast<int>(first.ranks.size()) == mesh.ranks());
    if (!seen.empty()) seen.erase(seen.begin());
  };
  begins_with(plan.agreement.counter, "Iallreduce MAX", plan.agreement.counter.messages());
  REQUIRE(executor.steps() == 1);  // before which inputs are compared
  begins_with(plan.agreement.inputs, "Iallgather", plan.agreement.inputs.messages() / mesh.ranks());
  std::map<std::vector<int>, int> groups;  // this rank's groups by their members, and its place there
  executor.each_group(
      [&](const std::string& axes, Mpi& group) { groups[with(world.rank(), mesh, axes)] = group.rank(); });
  std::size_t accounted = 0;
  for (const auto& group : groups) {
    const std::vector<int>& ranks = group.first;
    std::vector<Called> mine;
    for (const Called& c : seen)
      if (c.ranks == ranks) mine.push_back(c);
    const auto planned =
        program::planned(plan, [&](const std::string& axes) { return with(world.rank(), mesh, axes) == ranks; });
    const std::vector<Called> expected = mpi_calls::promised(planned, group.second, 0);
    CHECK(only(mine, false) == only(expected, false));
    CHECK(only(mine, true) == only(expected, true));
    CHECK(!mine.empty());
    accounted += mine.size();
  }
  CHECK(accounted == seen.size());
}
void check_gpt(const Mesh& mesh) {
  const OwnedPlan plan = derive<Step>(mesh);
  const auto count = std::int64_t{2} * Model::batch * Model::context;
  const auto tokens = program::numbers<int>(count, 1, Model::vocabulary),
             targets = program::numbers<int>(count, 2, Model::vocabulary);
  Mpi world({.shared_memory = false});  // as between machines: MPI sees all
  REQUIRE(world.size() == mesh.ranks());
  Parameters parameters(plan, world.rank(), 5);
  Trainer<Mpi, Cpu> trainer(plan, world, parameters, {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 1);
  trainer.executor().input(0, tokens);
  trainer.executor().input(1, targets);
  check(plan, mesh, world, trainer.executor(), [&] { trainer.step(1e-3); });
}
void check_turning(const Mesh& mesh) {
  const OwnedPlan plan = derive<turning::Step>(mesh);
  const auto x = program::numbers<double>(turning::elements, 1);
  Mpi world({.shared_memory = false});  // as between machines: MPI sees all
  REQUIRE(world.size() == mesh.ranks());
  Parameters parameters(plan, world.rank(), 5);
  Executor<Mpi, CpuDouble> executor(plan, world, parameters);
  executor.input(0, x);
  executor.scalar("clip_norm", 0);
  check(plan, mesh, world, executor, [&] { executor.run(); });
}

}  // namespace

TEST_CASE("MPI is called for the plan of a GPT's step, and for nothing else") {
  const int n = Mpi().size();
  for (const Axis* axis : {&data, &tensor, &sequence}) {
    INFO(axis->name);
    check_gpt(Mesh{Extent(axis, n)});
  }
  if (n == 4) check_gpt(Mesh{data = 2, tensor = 2});
}

TEST_CASE("MPI is called for the plan of all-to-alls, and for nothing else") {
  const int n = Mpi().size();
  check_turning(Mesh{tensor = n});
  if (n == 4) check_turning(Mesh{data = 2, tensor = 2});
}
