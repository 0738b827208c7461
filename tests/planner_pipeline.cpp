// What tools/plan says of a pipeline: the loop over micro-batches in parts, a run that is laid over each stage's plan, the step of all stages in time.
#include <doctest/doctest.h>

#include <filesystem>
#include <parallel/plan/predict.hpp>
#include <parallel/plan/published_machines.hpp>
#include <sstream>

#include "../tools/planner/json.hpp"
#include "../tools/planner/lock.hpp"
#include "../tools/planner/overlay.hpp"
#include "../tools/planner/timeline.hpp"
#include "../tools/planner/why_member.hpp"
#include "pipeline_training.hpp"

using namespace parallel;
using namespace parallel::axes;
using namespace pipelines;

namespace {

OwnedPlan on_stage(const Schedule& schedule, Mesh mesh, int k) { return derive(with_schedule(build<Train<float>>(), schedule), mesh.on_stage(k), {}, {}); }

/// The lines of a tree that head something, and its edges.
std::string headings(const Plan& plan) {
  std::string result;
  std::istringstream lines(planner::tree(plan));
  for (std::string line; std::getline(lines, line);) {
    const std::string words = line.substr(std::min(line.size(), line.find_first_not_of(' ')));
    if (words.starts_with("<- ") || words.starts_with("-> send")) result += words.substr(0, words.find(" on ")) + "\n";
    else if (words.find("micro-batches") != std::string::npos || words.find("layers ") == 0) result += words + "\n";
    else for (const char* head : {"forward", "backward", "weight", "update", "optimizer"})
      if (words == head || words.starts_with(std::string(head) + " of chunk")) result += words + "\n";
  }
  return result;
}

std::vector<OwnedPlan> all_stages(const Schedule& schedule, const Mesh& mesh) {
  std::vector<OwnedPlan> result;
  for (int k = 0; k < mesh.extent(&stage); ++k) result.push_back(on_stage(schedule, mesh, k));
  return result;
}

}  // namespace

TEST_CASE("the tree of a stage has the parts of its work") {
  CHECK(headings(*on_stage(schedules::one_forward_one_backward, Mesh{stage = 2}, 1)) ==
        "8 micro-batches, F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7\nforward\n<- receive\nlayers 4-7, 4 times\nbackward\n"
        "layers 4-7, 4 times, the last first\n-> send\nafter the 8 micro-batches, once: what they added up\nbackward\nforward\noptimizer\n");
  CHECK(headings(*on_stage(schedules::interleaved<2>, Mesh{stage = 2}, 0)) ==
        "8 micro-batches, F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a F4a B2b F5a B3b F4b B2a ... B7a\n"
        "forward of chunk a\nlayers 0-1, 2 times\n-> send\nbackward of chunk a\n<- receive\nlayers 0-1, 2 times, the last first\n"
        "forward of chunk b\n<- receive\nlayers 4-5, 2 times\n-> send\nbackward of chunk b\n<- receive\nlayers 4-5, 2 times, the last first\n-> send\n"
        "after the 8 micro-batches, once: what they added up\nbackward\nforward\noptimizer\n");
  const std::string apart = headings(*on_stage(schedules::zero_bubble_h1, Mesh{stage = 4}, 1));
  CHECK(apart.find("\nforward\n<- receive\nlayers 2-3, 2 times\n-> send\nbackward\n<- receive\nlayers 2-3, 2 times, the last first\n-> send\nweight\nlayers 2-3, ") !=
        std::string::npos);
}

TEST_CASE("why a stage sends and receives") {
  const OwnedPlan plan = on_stage(schedules::interleaved<2>, Mesh{stage = 2}, 0);
  const std::string edges = planner::why(*plan, "blocks.*.bias"), token = planner::why(*plan, "token");
  for (const char* words : {"forward: send on stage of f32[4/data, 8, 16], charged to blocks.0-1,4-5.bias", "what those of this stage return goes to the next one.",
                            "Price: 2 KiB, 16 times a step, for each of 8 micro-batches, in each of 2 chunks.", "comes from the next one.", "which the other stage counts"})
    CHECK_MESSAGE(edges.find(words) != std::string::npos, words << " in " << edges);
  CHECK(edges.find("forward: send", edges.find("forward: send") + 1) == std::string::npos);  // both chunks are told once
  for (const char* words : {"backward: all_reduce on stage of f32[16/tensor, 16] At<0, -1>@stage, charged to token", "Several stages use this parameter", "among 2 ranks"})
    CHECK_MESSAGE(token.find(words) != std::string::npos, words << " in " << token);
}

TEST_CASE("a lock of a stage is read as it was written") {
  std::vector<planner::Lock> locks;
  for (int k = 0; k < 2; ++k) locks.push_back(planner::lock_of(*on_stage(schedules::interleaved<2>, Mesh{stage = 2}, k), "Program"));
  const std::string words = planner::written(locks);
  CHECK(words.find("\n[Program on stage=2; stage 1]\nschedule  interleaved<2>  layers 2-3,6-7  F0a F1a F0b B0b ") != std::string::npos);
  const std::vector<planner::Lock> read = planner::read_locks(words, "lock");
  CHECK(read[1].stage == "stage 1");
  CHECK(read[1].mesh == "stage=2");
  CHECK(planner::difference(read, locks) == "");
  const std::string differs = planner::difference(read, {locks[0], planner::lock_of(*on_stage(schedules::one_forward_one_backward, Mesh{stage = 2}, 1), "Program")});
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
      Trainer<Threads, CpuDouble> trainer(plan, world, parameters, {}, 1);
      Recording recording(file, plan, world.rank());
      trainer.executor().record(recording);
      feed(trainer.executor());
      for (int step = 0; step < 2; ++step) trainer.step(1e-3);
      recording.write();
    });
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      const planner::RankRecord record = planner::read_record(file, rank);
      CHECK(planner::lay(*plan_of(graph, mesh, rank), record).differs == "");
      CHECK(planner::lay(*plan_of(graph, mesh, 3 - rank), record).differs != "");  // on the other stage
      std::filesystem::remove(record.file);
    }
  }
}

TEST_CASE("on a machine no stage works before it has what it needs") {
  const Machine& machine = machines::h100;
  for (const Schedule* schedule : {&schedules::one_forward_one_backward, &schedules::interleaved<2>, &schedules::zero_bubble_h1}) {
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
          const Vector<double>& arrives = all.stages[from.stage == 0 ? 0 : from.stage < 3 ? 1 : 2].arrives;  // kinds: the first, two between, the last
          sent.push_back(all.before + end + arrives[from.task.chunk * plan.graph.parts + static_cast<int>(from.task.work)]);
        }
        int at = 0;
        for (const Slice& s : own.slices)
          if (const Transition& t = plan.graph.node(s.node).transition; s.track > 0 && t.collective == Collective::receive && t.along == along) CHECK(s.begin >= sent[at++] - 1e-12);
        CHECK(at == sent.size());
      }
    }
    CHECK(latest == doctest::Approx(all.seconds));
  }
}

TEST_CASE("the timeline shows ranks of every stage") {
  const Mesh mesh{stage = 2, data = 16};
  using Sixteen = Tensor<int, Shape<16 / data, context>>;
  const Graph graph = with_schedule(build<Accumulate<8, Training<Gpt<float>, AdamW, Sixteen, Sixteen, Sixteen>>>(), schedules::gpipe);
  std::vector<OwnedPlan> plans;
  for (int k = 0; k < 2; ++k) plans.push_back(derive(graph, mesh.on_stage(k), {}, {}));
  const Prediction all = predict(graph, mesh, machines::h100);
  std::vector<planner::Simulated> stages;
  for (const OwnedPlan& plan : plans) stages.push_back({plan, simulate(*plan, machines::h100, all)});
  std::map<int, double> first;  // of each rank's products of the backward pass
  const planner::Json trace = planner::timeline(stages, "");
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] == "backward" && event["name"] == "matmul" && !first.contains(event["pid"])) first[event["pid"]] = event["ts"];
  CHECK(first.size() == 16);
  CHECK(first.contains(7));
  CHECK(first.contains(16));
  CHECK_FALSE(first.contains(8));
  CHECK(first.at(0) > first.at(16));  // the last stage goes back first
}
