// Random programs with linear layers, biases that are computed, slices that are put together, rows that are looked up:
// what is fused has an order in which everything is made before it is read, and computes what the operations compute
// alone.
#include "random_fusions.hpp"

#include <doctest/doctest.h>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using lockstep::Array;
using random_fusions::Program, random_fusions::ranks;

namespace {

bool made_before_read(const Graph& g) {
  std::vector<bool> made(static_cast<std::size_t>(g.values.size()));
  for (const int n : g.order) {
    const Node& node = g.nodes[n];
    for (const int o : node.operands)
      if (!made[static_cast<std::size_t>(o)]) return false;
    for (int r = 0; r < node.results; ++r) made[static_cast<std::size_t>(node.result + r)] = true;
  }
  return true;
}

}  // namespace

TEST_CASE("random programs compute fused what they compute without") {
  int sums = 0, concatenations = 0, rows = 0, slices = 0, by_element = 0, compared = 0;
  for (unsigned seed = 0; seed < 800; ++seed) {
    INFO("seed " << seed);
    const Program program(seed);
    const Graph fused = fuse(program.trace.graph);
    REQUIRE(made_before_read(fused));
    for (const int n : fused.order) {
      const Node& node = fused.nodes[n];
      sums += node.then >= 0 && fused.nodes[node.then].operation == &operation::sum_to;
      by_element += node.then >= 0 && node.operation->element_by_element != 0;
      rows += node.operation == &operation::accumulate_rows;
      slices += node.operation == &operation::accumulate_slice;
      concatenations += node.operation == &operation::concatenate && node.phase == Phase::backward;
    }
    if (seed % 8 != 0) continue;
    for (const int n : {1, 2}) {
      const auto run = [&](const Graph& graph) {
        const OwnedPlan plan = derive(graph, Mesh{ranks = n}, {}, {});
        return program::outputs(*plan, [&](auto& executor, auto&) {
          for (std::size_t i = 0; i < program.inputs.size(); ++i)
            executor.input(static_cast<int>(i), program::numbers<double>(program.elements(i), i + 1));
          executor.input(static_cast<int>(program.inputs.size()), std::vector<int>{3, 0, 3, 7, 1, 3, 0, 5});
        });
      };
      const std::vector<Array> whole = run(fused), apart = run(program.trace.graph);
      for (std::size_t i = 0; i < whole.size(); ++i) {
        // a gradient that is zero in exact arithmetic
        const bool noise = lockstep::absolute_difference(whole[i], apart[i]) < 1e-11;
        CHECK((noise || lockstep::difference(whole[i], apart[i]) < 1e-9));
        ++compared;
      }
    }
  }
  CHECK(sums > 400);
  CHECK(by_element > 5000);
  CHECK(concatenations > 200);
  CHECK(rows > 100);
  CHECK(slices > 100);
  CHECK(compared > 500);
}
