// All-to-alls: what every rank was asked is the plan, in memory and as files that tools/plan lays over it; and the
// numbers are those of one rank.
#include <filesystem>

#include <doctest/doctest.h>

#include "../tools/planner/overlay.hpp"
#include "program.hpp"
#include "turning.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

/// What is wrong on each rank; nothing where its record of a step is the plan.
std::vector<std::string> laid(const Mesh& mesh, const std::string& file) {
  const OwnedPlan plan = derive<turning::Step>(mesh);
  const auto x = program::numbers<double>(turning::elements, 1);
  std::vector<std::string> wrong(static_cast<std::size_t>(mesh.ranks()));
  run_threads(mesh.ranks(), [&](Threads& world) {
    Parameters parameters(plan, world.rank(), 5);
    Executor<Threads, CpuDouble> executor(plan, world, parameters);
    Recording recording(file, *plan, world.rank());
    executor.record(recording);
    std::map<std::string, std::vector<Record>> records;
    executor.each_group([&](const std::string& axes, Threads& group) { group.record(&records[axes]); });
    executor.input(0, x);
    executor.scalar("clip_norm", 0);
    executor.run();
    recording.write();
    std::string& mine = wrong[static_cast<std::size_t>(world.rank())];
    for (const auto& group : records)
      if (group.second != program::planned(plan, [&](const std::string& asked) { return asked == group.first; }))
        mine += "the calls on " + group.first + "; ";
    mine += planner::lay(plan, planner::read_record(file, world.rank())).differs;
  });
  return wrong;
}

}  // namespace

TEST_CASE("the record of all-to-alls is the plan") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("record-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  for (const Mesh& mesh : {Mesh{tensor = 2}, Mesh{tensor = 3}, Mesh{tensor = 4}, Mesh{data = 2, tensor = 2}}) {
    INFO(text(mesh));
    const OwnedPlan plan = derive<turning::Step>(mesh);
    CHECK(plan->forward.collectives(tensor, Collective::all_to_all) == 4);
    CHECK(plan->backward.collectives(tensor, Collective::all_to_all) == 4);
    CHECK(plan->forward.largest_message(all_to_all(tensor)) == turning::elements * 8 / mesh.extent(&data));
    for (const std::string& wrong : laid(mesh, (folder / "run").string())) CHECK(wrong == "");
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("what was turned is what one rank has") {
  const auto x = program::numbers<double>(turning::elements, 1);
  const auto on = [&](const Mesh& mesh) {
    return program::outputs<turning::Step>(mesh, [&](auto& executor) { executor.input(0, x); });
  };
  const auto one = on(Mesh{});
  for (const Mesh& mesh : {Mesh{tensor = 2}, Mesh{tensor = 3}, Mesh{tensor = 4}, Mesh{data = 2, tensor = 2}}) {
    INFO(text(mesh));
    const auto many = on(mesh);
    REQUIRE(many.size() == one.size());
    for (std::size_t o = 0; o < one.size(); ++o)
      for (std::size_t i = 0; i < one[o].data.size(); ++i)
        CHECK(many[o].data[i] == doctest::Approx(one[o].data[i]).epsilon(1e-12));
  }
}
