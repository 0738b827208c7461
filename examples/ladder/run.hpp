// What all rungs of the ladder share and none is about: the data, the steps, and the plan in a few lines.
#pragma once
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>
#include <parallel/schedule/picture.hpp>

namespace ladder {
using namespace parallel;

/// What a rank sends in a step: "data 99.8 KiB in 6 calls".
inline std::string sent(const Plan& plan) {
  std::string words;
  for (int i = 0; i < plan.mesh.count; ++i) {
    const Axis& axis = *plan.mesh.axes[i].axis;
    if (plan.calls(axis) == 0) continue;
    words += (words.empty() ? "" : ", ") + std::string(axis.text()) + " " + printing::bytes(plan.sent(axis)) + " in " +
             std::to_string(plan.calls(axis)) + " calls";
  }
  return words.empty() ? "nothing" : words;
}

/// What stages do in a step, over time: F3 is forward with micro-batch 3, B3 backward, which takes twice as long; dots
/// are waits.
inline std::string order(const Schedule& schedule, int stages, int micro_batches) {
  std::string rows = picture(timed(schedule, stages, micro_batches));
  // a stage may be several ranks
  for (std::size_t at = 0; (at = rows.find("rank", at)) != std::string::npos;) rows.replace(at, 4, "stage");
  return rows;
}

/// A line for each stage, as every stage has a plan of its own; one for all ranks, where there are none. Then what the
/// stages do in a step.
template <class Step>
void print_plan(const Mesh& mesh) {
  const int stages = mesh.extent(&axes::stage);
  printing::Table table{{}, {{{"", "sent in a step", "parameters", "activations", "peak"}}}};
  for (int s = 0; s < stages; ++s) {
    const OwnedPlan plan = derive<Step>(mesh.on_stage(s));
    const auto memory = [&](Use use) { return printing::bytes(static_cast<double>(plan->memory.of(use))); };
    table.rows.push_back({{stages > 1 ? "stage " + std::to_string(s) : "each rank", sent(plan), memory(Use::parameters),
                           memory(Use::activations), printing::bytes(static_cast<double>(plan->peak_memory()))}});
  }
  std::printf("%s: %d rank%s\n\n%s\n", text(mesh).c_str(), mesh.ranks(), mesh.ranks() > 1 ? "s" : "",
              table.text().c_str());
  if (const OwnedPlan plan = derive<Step>(mesh); stages > 1)
    std::printf("%s\n", order(*plan->graph.schedule, stages, Step::micro_batches).c_str());
}

/// Plans, then trains on threads: the model is to shift a row by one place and square it.
template <class Step>
void train(const Mesh& mesh, const std::string& record) {
  print_plan<Step>(mesh);
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive<Step>(mesh, world.rank());
    Parameters parameters(plan, world.rank(), 9);
    Trainer<Threads, Cpu> trainer(plan, world, parameters, {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 1);
    Recording recording(record, plan, world.rank());
    trainer.executor().record(recording);
    const View batch = trainer.executor().input(0);  // this rank's part, and the sizes of the whole
    const auto numbers = static_cast<std::size_t>(batch.whole[batch.rank - 1]);
    std::size_t elements = 1;
    for (int d = 0; d < batch.rank; ++d) elements *= static_cast<std::size_t>(batch.whole[d]);
    std::vector<float> x(elements), y(elements);
    for (int step = 0; step <= 30; ++step) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<float>(2 * random_uniform(7, static_cast<std::uint64_t>(step), i) - 1);
        y[i / numbers * numbers + (i + 1) % numbers] = x[i] * x[i];
      }
      trainer.executor().input(0, x);
      trainer.executor().input(1, y);
      const StepResult result = trainer.step(1e-2);
      if (world.rank() == 0 && step % 10 == 0) std::printf("step %2d  loss %.4f\n", step, result.loss);
    }
    recording.write();
  });
}
/// `--one-rank`: the same program on one rank.
template <class Step>
int run(const char* name, const Mesh& mesh, int argc, char** argv) {
  return guarded(name, [&] {
    if (argc == 2 && std::string_view(argv[1]) == "--one-rank")
      train<Step>(Mesh{}, "");
    else
      train<Step>(mesh, record_argument(argc, argv));
    return exit_code::done;
  });
}

}  // namespace ladder
