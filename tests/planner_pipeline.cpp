// What tools/plan says of a pipeline: the loop over micro-batches in parts, a run that is laid over each stage's plan,
// the step of all stages in time.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include <doctest/doctest.h>

#include <parallel/cost/predict.hpp>
#include <parallel/cost/published_machines.hpp>

#include "../tools/planner/json.hpp"
#include "../tools/planner/lock.hpp"
#include "../tools/planner/measured.hpp"
#include "../tools/planner/schedule_svg.hpp"
#include "../tools/planner/timeline.hpp"
#include "../tools/planner/why_member.hpp"
#include "pipeline_training.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using namespace pipelines;

namespace {

OwnedPlan on_stage(const Schedule& schedule, Mesh mesh, int k) {
  return derive(with_schedule(build<Train<float>>(), schedule), mesh.on_stage(k), {}, {});
}

/// The lines of a tree that head something, and its edges.
std::string headings(const Plan& plan) {
  std::string result;
  std::istringstream lines(planner::tree(plan));
  for (std::string line; std::getline(lines, line);) {
    const std::string words = line.substr(std::min(line.size(), line.find_first_not_of(' ')));
    if (words.starts_with("<- ") || words.starts_with("-> send"))
      result += words.substr(0, words.find(" on ")) + "\n";
    else if (words.find("micro-batches") != std::string::npos || words.find("layers ") == 0)
      result += words + "\n";
    else
      for (const char* head : {"forward", "backward", "weight", "update", "optimizer"})
        if (words == head || words.starts_with(std::string(head) + " of chunk")) result += words + "\n";
  }
  return result;
}

std::vector<OwnedPlan> all_stages(const Schedule& schedule, const Mesh& mesh) {
  std::vector<OwnedPlan> result;
  for (int k = 0; k < mesh.extent(&stage); ++k) result.push_back(on_stage(schedule, mesh, k));
  return result;
}

/// A record whose tasks took `times` as long as the spans, step by step. What a task does before and between its waits
/// takes as long as what it does behind them.
planner::RankRecord recorded(const Plan& plan, const Vector<Span>& spans, double clock,
                             std::initializer_list<double> times) {
  planner::RankRecord record{"made", text(plan.mesh), plan.mesh.here, {}};
  int step = 0;
  for (const double by : times) {
    const double origin = clock + 1000 * ++step;
    double now = origin;
    std::vector<bool> waits;
    const auto event = [&](const Event& e) {
      if (e.kind != EventKind::begin && e.kind != EventKind::end)
        waits.push_back(e.kind == EventKind::wait && plan.graph.node(e.node).transition.along != 0);
    };
    const auto lasts = [&](const Span& span) {
      const auto waiting = static_cast<double>(std::count(waits.begin(), waits.end(), true)),
                 working = static_cast<double>(waits.size()) - waiting;
      if (waiting == 0) now = origin + by * span.begin;
      const double each_wait = (origin + by * span.begin - now) / waiting,
                   each_work = by * (span.end - span.begin) / working;
      for (const bool wait : waits) {
        planner::Recorded r;
        r.step = step;
        r.begin = now;
        r.end = now += wait ? each_wait : each_work;
        record.lines.push_back(r);
      }
      waits.clear();
    };
    each_event(plan, event, [&](int slot) { lasts(slot == 0 ? Span{0, 0} : spans[slot - 1]); });
    lasts({spans.back().end, spans.back().end + 1});
  }
  return record;
}

}  // namespace

TEST_CASE("the tree of a stage has the parts of its work") {
  CHECK(
      headings(on_stage(schedules::one_forward_one_backward, Mesh{stage = 2}, 1)) ==
      "8 micro-batches, F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7\nforward\n<- receive\nlayers 4-7, 4 times\nbackward\n"
      "layers 4-7, 4 times, the last first\n-> send\nafter the 8 micro-batches, once: what they added up\nbackward\nforward\noptimizer\n");
  CHECK(
      headings(on_stage(schedules::interleaved<2>, Mesh{stage = 2}, 0)) ==
      "8 micro-batches, F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a F4a B2b F5a B3b F4b B2a ... B7a\n"
      "forward of chunk a\nlayers 0-1, 2 times\n-> send\nbackward of chunk a\n<- receive\nlayers 0-1, 2 times, the last first\n"
      "forward of chunk b\n<- receive\nlayers 4-5, 2 times\n-> send\nbackward of chunk b\n<- receive\nlayers 4-5, 2 times, the last first\n-> send\n"
      "after the 8 micro-batches, once: what they added up\nbackward\nforward\noptimizer\n");
  const std::string apart = headings(on_stage(schedules::zero_bubble_h1, Mesh{stage = 4}, 1));
  CHECK(
      apart.find(
          "\nforward\n<- receive\nlayers 2-3, 2 times\n-> send\nbackward\n<- receive\nlayers 2-3, 2 times, the last first\n-> send\nweight\nlayers 2-3, ") !=
      std::string::npos);
}

TEST_CASE("why a stage sends and receives") {
  const OwnedPlan plan = on_stage(schedules::interleaved<2>, Mesh{stage = 2}, 0);
  const std::string edges = planner::why(*plan, "blocks.*.bias"), token = planner::why(*plan, "token");
  for (const char* words : {"forward: send on stage of f32[4/data, 8, 16], charged to blocks.0-1,4-5.bias",
                            "what those of this stage return goes to the next one.",
                            "Price: 2 KiB, 16 times a step, for each of 8 micro-batches, in each of 2 chunks.",
                            "comes from the next one.", "which the other stage counts"})
    CHECK_MESSAGE(edges.find(words) != std::string::npos, words << " in " << edges);
  // both chunks are told once
  CHECK(edges.find("forward: send", edges.find("forward: send") + 1) == std::string::npos);
  for (const char* words : {"backward: all_reduce on stage of f32[16/tensor, 16] At<0, -1>@stage, charged to token",
                            "Several stages use this parameter", "among 2 ranks"})
    CHECK_MESSAGE(token.find(words) != std::string::npos, words << " in " << token);
}

TEST_CASE("a lock of a stage is read as it was written") {
  std::vector<planner::Lock> locks;
  for (int k = 0; k < 2; ++k)
    locks.push_back(planner::lock_of(on_stage(schedules::interleaved<2>, Mesh{stage = 2}, k), "Program"));
  const std::string words = planner::written(locks);
  CHECK(words.find("\n[Program on stage=2; stage 1]\nschedule  interleaved<2>  layers 2-3,6-7  F0a F1a F0b B0b ") !=
        std::string::npos);
  const std::vector<planner::Lock> read = planner::read_locks(words, "lock");
  CHECK(read[1].stage == "stage 1");
  CHECK(read[1].mesh == "stage=2");
  CHECK(planner::difference(read, locks) == "");
  const std::string differs = planner::difference(
      read, {locks[0], planner::lock_of(on_stage(schedules::one_forward_one_backward, Mesh{stage = 2}, 1), "Program")});
  CHECK(differs.starts_with("[Program on stage=2; stage 1]\n"));
  CHECK(differs.find("schedule  one_forward_one_backward  layers 4-7  F0 B0 F1 B1 ") != std::string::npos);
}

TEST_CASE("a run is laid over the plan of each rank's stage") {
  const Mesh mesh{stage = 4};
  const std::string file = (std::filesystem::temp_directory_path() / "pipeline_record").string();
  for (const Schedule* schedule : {&schedules::one_forward_one_backward, &schedules::interleaved<2>}) {
    const Graph graph = with_schedule(build<Train<double>>(), *schedule);
    run_threads(mesh.ranks(), [&](Threads& world) {
      const OwnedPlan plan = plan_of(graph, mesh, world.rank());
      Parameters parameters(plan, world.rank(), 5);
      Trainer<Threads, CpuDouble> trainer(plan, world, parameters, {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1},
                                          1);
      Recording recording(file, plan, world.rank());
      trainer.executor().record(recording);
      feed(trainer.executor());
      for (int step = 0; step < 2; ++step) trainer.step(1e-3);
      recording.write();
    });
    std::vector<OwnedPlan> plans;
    std::vector<planner::RankRecord> records;
    std::vector<std::pair<const Plan*, const planner::RankRecord*>> stages;
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      plans.push_back(plan_of(graph, mesh, rank));
      records.push_back(planner::read_record(file, rank));
      CHECK(planner::lay(*plans.back(), records.back()).differs == "");
      CHECK(planner::lay(plan_of(graph, mesh, 3 - rank), records.back()).differs != "");  // on the other stage
      std::filesystem::remove(records.back().file);
    }
    for (std::size_t k = 0; k < 4; ++k) stages.emplace_back(&*plans[k], &records[k]);
    const planner::Measured run = planner::measured(tasks_of(*schedule, 4, micro_batches), stages, {});
    CHECK(run.step == 2);
    CHECK(run.one_clock);
    CHECK(run.timing.ideal > 0);
    for (const Vector<Span>& spans : run.timing.spans)
      for (int i = 0; i < spans.size(); ++i)
        CHECK((spans[i].begin < spans[i].end && spans[i].begin >= (i == 0 ? 0 : spans[i - 1].end)));
  }
}

TEST_CASE("a task of a run is what its stage did, less its waits for other stages") {
  for (const Schedule* schedule :
       {&schedules::one_forward_one_backward, &schedules::interleaved<2>, &schedules::zero_bubble_h1}) {
    INFO(schedule->name);
    const std::vector<OwnedPlan> plans = all_stages(*schedule, Mesh{stage = 4});
    const Timing truth = timed(*schedule, 4, micro_batches, {1, 1.5, 0.75, 0, 0.25});
    for (const double apart : {0.0, 1e6}) {  // how far the clocks are from each other
      std::vector<planner::RankRecord> records;
      std::vector<std::pair<const Plan*, const planner::RankRecord*>> stages;
      for (int k = 0; k < 4; ++k)
        records.push_back(recorded(*plans[static_cast<std::size_t>(k)], truth.spans[k], 5 + k * apart, {9, 3, 1, 2}));
      for (std::size_t k = 0; k < 4; ++k) stages.emplace_back(&*plans[k], &records[k]);
      const planner::Measured run = planner::measured(truth.tasks, stages, {});
      CHECK(run.step == 4);  // the first does not count
      CHECK(run.one_clock == (apart == 0));
      for (int k = 0; k < 4; ++k)
        for (int i = 0; i < truth.spans[k].size(); ++i) {
          CHECK(run.timing.spans[k][i].begin == doctest::Approx(2 * truth.spans[k][i].begin).epsilon(1e-6));
          CHECK(run.timing.spans[k][i].end == doctest::Approx(2 * truth.spans[k][i].end).epsilon(1e-6));
        }
      CHECK(run.timing.bubble() == doctest::Approx(truth.bubble()).epsilon(1e-6));
      CHECK(planner::measured(truth.tasks, stages, {4}).step == 2);
      CHECK_THROWS_WITH_AS(
          planner::measured(truth.tasks, stages, {2, 3, 4}),
          "the record 'made' has no step to draw: all, or all but the first, where caches fill, were skipped, as their gradients were no finite numbers",
          Failure);
      records[2].lines.resize(records[2].lines.size() / 4);
      CHECK_THROWS_WITH_AS(planner::measured(truth.tasks, stages, {}),
                           "the record 'made' has no step 4, which others have; record the run again", Failure);
    }
  }
}

TEST_CASE("a run is drawn below its schedule, on one axis of time") {
  const Timing planned = timed(schedules::one_forward_one_backward, 2, 2);
  const Timing run = timed(schedules::one_forward_one_backward, 2, 2, {1, 1, 1, 0, 1});
  CHECK(planner::picture(planned, run, "stage") ==
        "stage 0  F0 F1 .. .. B0    .. B1\n"
        "  run 0  F0 F1 .. .. .. .. B0    .. B1\n"
        "stage 1  .. F0 B0    F1 B1    .. ..\n"
        "  run 1  .. .. F0 B0    F1 B1    .. .. ..\n");
  CHECK(planner::picture(planned, run, "p").starts_with("  p 0  F0 "));
  const Timing scaled = planner::scaled(planned, timed(schedules::one_forward_one_backward, 2, 2, {2, 3, 1}));
  CHECK(scaled.bubble() == doctest::Approx(planned.bubble()));
  CHECK(scaled.cost == doctest::Approx(2 * planned.cost));
  const std::string drawn = planner::svg(planned, "stage", &run), alone = planner::svg(planned, "stage");
  CHECK(drawn.find(">run 0</text>") < drawn.find(">stage 1</text>"));
  CHECK(drawn.find("<title>B1</title>", drawn.find(">run 1</text>")) != std::string::npos);
  CHECK(drawn.find("planned and run") != std::string::npos);
  CHECK(alone.find("run ") == std::string::npos);
}

TEST_CASE("on a machine no stage works before it has what it needs") {
  const Machine& machine = machines::h100;
  for (const Schedule* schedule :
       {&schedules::one_forward_one_backward, &schedules::interleaved<2>, &schedules::zero_bubble_h1}) {
    const std::vector<OwnedPlan> plans = all_stages(*schedule, Mesh{stage = 4});
    const Prediction all = predict(with_schedule(build<Train<float>>(), *schedule), Mesh{stage = 4}, machine);
    CHECK(all.timing.bubble() > 0);
    CHECK(all.timing.bubble() < 0.5);
    double latest = 0;
    for (int k = 0; k < 4; ++k) {
      const Plan& plan = *plans[static_cast<std::size_t>(k)];
      const Simulation own = simulate(plan, machine, all);
      CHECK(own.seconds > simulate(plan, machine).seconds);  // alone it would wait for nobody
      latest = std::max(latest, own.seconds);
      for (const int along : {1, -1}) {  // what is received, in its order, is what these tasks need
        Vector<double> sent;
        for (const Slot& slot : plan.graph.slots) {
          const Task task = task_of(plan.graph, slot);
          const StageTask from = all.timing.tasks.sender(task, k);
          if (from.stage < 0 || (task.work == Work::forward) != (along > 0)) continue;
          const double end = all.timing.spans[from.stage][all.timing.tasks.place(from.task, from.stage)].end;
          // kinds: the first, two between, the last
          const Vector<double>& arrives = all.stages[from.stage == 0 ? 0 : from.stage < 3 ? 1 : 2].arrives;
          sent.push_back(all.before + end + arrives[part_of(plan.graph.parts, from.task)]);
        }
        int at = 0;
        for (const Slice& s : own.slices)
          if (const Transition& t = plan.graph.node(s.node).transition;
              s.track > 0 && t.collective == Collective::receive && t.along == along)
            CHECK(s.begin >= sent[at++] - 1e-12);
        CHECK(at == sent.size());
      }
    }
    CHECK(latest == doctest::Approx(all.seconds));
  }
}

TEST_CASE("the timeline shows ranks of every stage") {
  const Mesh mesh{stage = 2, data = 16};
  using Sixteen = Tensor<int, Shape<16 / data, context>>;
  const Graph graph =
      with_schedule(build<Accumulate<8, Training<Gpt<float>, AdamW, Sixteen, Sixteen, Sixteen>>>(), schedules::gpipe);
  std::vector<OwnedPlan> plans;
  for (int k = 0; k < 2; ++k) plans.push_back(derive(graph, mesh.on_stage(k), {}, {}));
  const Prediction all = predict(graph, mesh, machines::h100);
  std::vector<planner::Simulated> stages;
  for (const OwnedPlan& plan : plans) stages.push_back({plan, simulate(*plan, machines::h100, all)});
  std::map<int, double> first;  // of each rank's products of the backward pass
  const planner::Json trace = planner::timeline(stages, "");
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] == "backward" && event["name"] == "matmul" && !first.contains(event["pid"]))
      first[event["pid"]] = event["ts"];
  CHECK(first.size() == 16);
  CHECK(first.contains(7));
  CHECK(first.contains(16));
  CHECK_FALSE(first.contains(8));
  CHECK(first.at(0) > first.at(16));  // the last stage goes back first
}
