// What a stage is asked and what it holds: its record is its plan, call by call, and no stage has memory for another's
// parameters.
#include <doctest/doctest.h>

#include "pipeline_training.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using namespace pipelines;

TEST_CASE("on every rank the record is the plan") {
  const Graph graph = build<Train<double>>();
  for (const Schedule* schedule : synchronous)
    for (const Mesh& mesh : {Mesh{stage = 2}, Mesh{stage = 4, data = 2}, Mesh{data = 2, stage = 2, tensor = 2}}) {
      INFO(schedule->name << " on " << text(mesh));
      const Graph scheduled = with_schedule(graph, *schedule);
      std::vector<std::string> wrong(static_cast<std::size_t>(mesh.ranks()));
      run_threads(mesh.ranks(), [&](Threads& world) {
        const OwnedPlan plan = plan_of(scheduled, mesh, world.rank());
        Parameters parameters(plan, world.rank(), 5);
        Trainer<Threads, CpuDouble> trainer(plan, world, parameters,
                                            {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 1);
        std::map<std::string, std::vector<Record>> records;
        trainer.executor().each_group([&](const std::string& name, Threads& group) { group.record(&records[name]); });
        feed(trainer.executor());
        trainer.step(1e-3);
        std::int64_t calls = 0, started = 0;
        for (const auto& [name, record] : records) {
          const std::string asked = name;
          if (record != program::planned(plan, [&](const std::string& other) { return other == asked; }))
            wrong[static_cast<std::size_t>(world.rank())] += name + "; ";
          calls += static_cast<std::int64_t>(record.size());
        }
        each_event(*plan, [&](const Event& e) { started += e.kind == EventKind::start ? 1 : 0; });
        if (calls != started || calls < 2 * micro_batches) wrong[static_cast<std::size_t>(world.rank())] += "calls";
      });
      for (const std::string& w : wrong) CHECK(w == "");
    }
}

TEST_CASE("a stage holds its own parameters and nothing of the others'") {
  const Mesh mesh{stage = 4};
  const Graph graph = build<Train<double>>();
  const std::int64_t layer =
      8 * (2 * channels + 3 * channels * channels + channels * channels + 4 * channels * channels + channels);
  const std::int64_t token = 8 * vocabulary * channels, position = 8 * context * channels, gain = 8 * channels;
  for (int rank = 0; rank < 4; ++rank) {
    INFO("stage " << rank);
    const OwnedPlan plan = plan_of(graph, mesh, rank);
    const std::int64_t own = layers / 4 * layer + (rank == 0 ? token + position : rank == 3 ? token + gain : 0);
    CHECK(plan->memory.of(Use::parameters) == own);
    CHECK(plan->memory.of(Use::optimizer_state) == 2 * own);
    for (const Member& m : plan->graph.members) {
      const bool here = plan->storage[static_cast<std::size_t>(m.value)].block != MemoryBlock::none;
      if (plan->graph.path(m) == "token") CHECK(here == (rank == 0 || rank == 3));
      if (plan->graph.path(m) == "position" || plan->graph.path(m) == "position.mean") CHECK(here == (rank == 0));
      if (plan->graph.path(m) == "gain" || plan->graph.path(m) == "gain.variance") CHECK(here == (rank == 3));
      if (plan->graph.path(m) == "input.1") CHECK(here);
      if (plan->graph.path(m) == "input.2") CHECK(here == (rank == 3));
    }
  }
}

TEST_CASE("in flight are as many micro-batches as the schedule has") {
  const Graph graph = build<Train<double>>();
  for (int rank = 0; rank < 4; ++rank) {
    const Mesh mesh{stage = 4};
    CHECK(plan_of(with_schedule(graph, schedules::gpipe), mesh, rank)->graph.lanes() == micro_batches);
    CHECK(plan_of(with_schedule(graph, schedules::one_forward_one_backward), mesh, rank)->graph.lanes() == 4 - rank);
    CHECK(plan_of(with_schedule(graph, schedules::naive), mesh, rank)->graph.lanes() == 1);
  }
  CHECK(plan_of(with_schedule(graph, schedules::interleaved<2>), Mesh{stage = 4}, 0)->graph.lanes() == 2 * 3 + 4 + 1);
}
