// Predictions of GPTs that the literature trained, and advice for one of them: docs/prices.md and docs/plan-tool.md.
#include "../../tools/planner/advice.hpp"
#include "../gpt_published.hpp"
#include "blocks.hpp"
#include "print_published.hpp"

namespace {
using namespace published;

void print_steps() {
  blocks::begin("published steps");
  std::puts("| model | predicted | printed | error |\n|---|---|---|---|");
  const std::vector<Compared> all = compared_steps();
  for (const Compared& c : all) std::printf("| %s | %.2f s | %.2f s | %+.1f %% |\n", c.model.c_str(), c.predicted, c.printed, 100 * c.error());
  std::printf("| mean of the absolute errors | | | %.1f %% |\n", 100 * mean_error(all));
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
  blocks::print_block("advice", planner::advice_text(advice, "Training<Gpt3, AdamW>(i32[2/data, 2048], i32[2/data, 2048])", question));
}
}  // namespace

void print_published() {
  print_steps();
  print_advice();
}
