// Layers that do not divide into stages are refused with the extents that do, or cut by cost where that is asked for;
// none is dropped.
#include <doctest/doctest.h>

#include "pipeline_training.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using namespace pipelines;

namespace {

constexpr int odd = 7;
template <Dim depth>
using Odd = Accumulate<micro_batches, Training<Gpt<double, depth>, AdamW, Tokens, Tokens, Tokens>>;

std::vector<int> cut_of(const Graph& graph, int stages) {
  std::vector<int> result;
  for (int s = 0; s < stages; ++s) {
    const OwnedPlan plan = plan_of(graph, Mesh{stage = stages}, s);
    for (const Region& r : plan->graph.regions)
      if (r.staged && !r.reversed) result.push_back(r.count);
  }
  return result;
}

}  // namespace

TEST_CASE("seven layers on two, three and four stages compute what one rank computes") {
  const std::vector<double> one = losses(build<Odd<odd>>(), Mesh{data = 1});
  const Graph graph = build<Balanced<Odd<odd / stage>>>();
  for (const Schedule* schedule : synchronous)
    for (const Mesh& mesh :
         {Mesh{stage = 2}, Mesh{stage = 3}, Mesh{stage = 4}, Mesh{stage = 3, data = 2}, Mesh{stage = 2, tensor = 2}}) {
      if (schedule->chunks > 1 || micro_batches % mesh.extent(&stage) != 0) continue;
      INFO(schedule->name << " on " << text(mesh));
      check_losses(losses(with_schedule(graph, *schedule), mesh), one, 1e-10);
    }
}
TEST_CASE("stages with an embedding or a head have fewer layers, and together they are all") {
  CHECK(cut_of(build<Balanced<Odd<odd / stage>>>(), 3) == std::vector<int>{2, 3, 2});
  CHECK(cut_of(build<Balanced<Odd<odd / stage>>>(), 7) == std::vector<int>(7, 1));
  CHECK(balanced({0, 1, 0}, 30, 4)[0] + balanced({0, 1, 0}, 30, 4)[1] + balanced({0, 1, 0}, 30, 4)[2] +
            balanced({0, 1, 0}, 30, 4)[3] ==
        30);
  const Vector<int> heavy_head = balanced({0, 1, 3}, 33, 4);
  CHECK(heavy_head[3] == 6);
  CHECK(heavy_head[0] == 9);
  const OwnedPlan last = plan_of(build<Balanced<Odd<odd / stage>>>(), Mesh{stage = 3}, 2);
  const std::int64_t layer =
      8 * (2 * channels + 3 * channels * channels + channels * channels + 4 * channels * channels + channels);
  CHECK(last->memory.of(Use::parameters) == 2 * layer + 8 * vocabulary * channels + 8 * channels);
}
TEST_CASE("without it, layers that do not divide are refused with the extents that do") {
  std::string sentence;
  try {
    plan_of(build<Odd<odd / stage>>(), Mesh{stage = 2}, 0);
  } catch (const MeshRefused& e) {
    sentence = e.what();
  }
  CHECK(sentence.find("does not divide") != std::string::npos);
  CHECK(sentence.find("valid extents of stage: 1, 7") != std::string::npos);
}
