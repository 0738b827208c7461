// What docs/exercises.md prints: memory with each optimizer, what would make the larger fit, and steps on CPUs.
#include "print_exercises.hpp"

#include <parallel/cost/predict.hpp>

#include "../../tools/planner/advice.hpp"
#include "../../tools/planner/machine_file.hpp"
#include "../../tools/planner/over_time.hpp"
#include "blocks.hpp"
#include "exercises.hpp"

namespace exercises {
namespace {

std::string bytes(double n) { return printing::bytes(n); }

/// tools/plan tests/docs/exercises.hpp --program AdamW --advise 2 --machine dgx-a100 --memory 2GB
void print_fits() {
  using As = Step<AdamW>;
  planner::Advice advice;
  const planner::Question question{2, machines::dgx_a100, budget};
  const std::vector<const Axis*> axes{&data};
  planner::advise(advice, internals::build<As>(), axes, {}, question, [&](const std::string& words, auto f) {
    const std::vector<internals::GraphView> none;
    if (words == "recompute") f(internals::build<Step<AdamW, Recompute<>>>(), axes, none);
    if (words == "states data") f(internals::build<AllStored<As, Stored<data, Zero::states>>>(), axes, none);
    if (words == "gradients data") f(internals::build<AllStored<As, Stored<data, Zero::gradients>>>(), axes, none);
    if (words == "parameters data") f(internals::build<AllStored<As, Stored<data>>>(), axes, none);
  });
  blocks::print_block(
      "exercise fits",
      planner::advice_text(advice, "Training<exercises::Network<>, AdamW>(f32[8/data, 256, 768])", question));
}

/// A row of a step on a machine; `alone`: the step that it is compared with.
template <class Program>
double print_step(const char* on, const char* rank, const Machine& machine, int ranks, double alone) {
  const OwnedPlan plan = derive<Program>(Mesh{data = ranks});
  const Simulation step = simulate(*plan, machine);
  double waits = 0;
  for (const double seconds : step.exposed) waits += seconds;
  std::printf("| %s | %d | %s | %s | %s | %.1f | %s |\n", on, ranks, rank, planner::duration(step.seconds).c_str(),
              planner::percent(waits / step.seconds).c_str(), (alone > 0 ? alone : step.seconds) / step.seconds,
              bytes(static_cast<double>(ranks) * static_cast<double>(plan->peak_memory())).c_str());
  return step.seconds;
}
void print_cpus() {
  using As = Step<AdamW>;
  using States = AllStored<As, Stored<data, Zero::states>>;
  blocks::begin("exercise cpus");
  std::puts(
      "| on | ranks | each | predicted step | of it waiting | times as fast | memory of all |\n|---|---|---|---|---|---|---|");
  const double alone = print_step<As>("one memory", "eight cores", one_rank, 1, 0);
  for (const int n : {1, 2, 4, 8}) print_step<As>("one memory", "a core", ranks_of_a_core, n, alone);
  print_step<States>("one memory", "a core, `Zero::states`", ranks_of_a_core, 8, alone);
  for (const int n : {2, 4, 8}) print_step<As>("10 Gb/s Ethernet", "eight cores", ethernet, n, alone);
  for (const int n : {2, 4, 8}) print_step<As>("200 Gb/s InfiniBand", "eight cores", infiniband, n, alone);
  const double gpu = print_step<As>("200 Gb/s InfiniBand", "an A100", machines::dgx_a100, 1, 0);
  print_step<As>("200 Gb/s InfiniBand", "an A100", machines::dgx_a100, 8, gpu);
}

}  // namespace
}  // namespace exercises

void print_exercises() {
  using namespace exercises;
  blocks::print_block("exercise sgd", planner::phases_then(with_sgd));
  blocks::print_block("exercise adam", planner::phases_then(with_adam));
  print_fits();
  blocks::print_block("exercise desk", planner::machine_to_json(ranks_of_a_core).dump());
  print_cpus();
}
