// Predictions of GPTs that the literature trained, and advice for one of them: docs/prices.md, docs/plan-tool.md and
// docs/gpu.md.
#include "print_published.hpp"

#include <map>

#include <parallel/model/gpt2.hpp>

#include "../../tools/planner/advice.hpp"
#include "../gpt_published.hpp"
#include "blocks.hpp"

namespace {
using namespace published;

void print_steps() {
  blocks::begin("published steps");
  std::puts("| model | predicted | printed | error |\n|---|---|---|---|");
  const std::vector<Compared> all = compared_steps();
  for (const Compared& c : all)
    std::printf("| %s | %.2f s | %.2f s | %+.1f %% |\n", c.model.c_str(), c.predicted, c.printed, 100 * c.error());
  std::printf("| mean of the absolute errors | | | %.1f %% |\n", 100 * mean_error(all));
}

/// A step of the program that tools/gpu measures, by what is computed.
void print_gpt2_step() {
  constexpr models::Gpt2Sizes sizes{.dropped = 0};
  using Batch = Tensor<int, Shape<32 / data, 1024>>;
  const OwnedPlan plan = derive<Training<models::Gpt2<sizes, bfloat16>, AdamW, Batch, Batch>>(Mesh{data = 1});
  struct Part {
    double seconds = 0;
    int runs = 0;
  };
  std::map<std::string, Part> parts;
  double whole = 0;
  for (const Event& e : plan->events) {
    if (e.kind != EventKind::compute) continue;
    const Node& node = plan->graph.node(e.node);
    const auto times = static_cast<int>(plan->graph.times(node));
    const double seconds = compute_seconds(*plan, e, machines::h100) * times;
    Part& part = parts[operations(plan->graph, e) + (node.phase == Phase::backward ? ", backward" : "")];
    part.seconds += seconds;
    part.runs += times;
    whole += seconds;
  }
  std::vector<std::pair<std::string, Part>> sorted(parts.begin(), parts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  blocks::begin("gpt2 step");
  std::puts("| computed | times | predicted | of the step |\n|---|---|---|---|");
  Part others;
  for (const auto& [name, part] : sorted)
    if (part.seconds >= 0.01 * whole)
      std::printf("| `%s` | %d | %.1f ms | %.1f %% |\n", name.c_str(), part.runs, 1e3 * part.seconds,
                  100 * part.seconds / whole);
    else {
      others.seconds += part.seconds;
      others.runs += part.runs;
    }
  std::printf("| what is below 1 %% | %d | %.1f ms | %.1f %% |\n| the step | | %.1f ms | |\n", others.runs,
              1e3 * others.seconds, 100 * others.seconds / whole, 1e3 * whole);
}

/// GPT-3 with two sequences in a micro-batch, so that two replicas can share it.
void print_advice() {
  constexpr Gpt gpt3 = [] {
    Gpt n = gpt175(Saved::selective, true);
    n.batch = 2;
    return n;
  }();
  planner::Advice advice;
  const planner::Question question{64, machines::dgx_a100, 80'000'000'000};
  planner::advise(advice, build<Step<gpt3>>(), {&data, &tensor, &stage}, {}, question);
  blocks::print_block(
      "advice", planner::advice_text(advice, "Training<Gpt3, AdamW>(i32[2/data, 2048], i32[2/data, 2048])", question));
}
}  // namespace

void print_published() {
  print_steps();
  print_gpt2_step();
  print_advice();
}
