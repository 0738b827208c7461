// Pipelines beside sequence parallelism: the hidden state crosses from stage to stage in slices of the sequence.
#include <doctest/doctest.h>

#include "pipeline_training.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using namespace pipelines;

TEST_CASE("with sequence parallelism a cut sends a slice, and the losses stay") {
  const std::vector<double> one = losses(build<Alone<double>>(), Mesh{data = 1});
  const Graph graph = build<Trained<Gpt<double, layers / stage, context / tensor>>>();
  for (const Schedule* schedule : synchronous)
    for (const Mesh& mesh :
         {Mesh{stage = 2, tensor = 2}, Mesh{stage = 4, tensor = 2}, Mesh{data = 2, stage = 2, tensor = 2}}) {
      INFO(schedule->name << " on " << text(mesh));
      check_losses(losses(with_schedule(graph, *schedule), mesh), one, 1e-10);
      const OwnedPlan plan = plan_of(with_schedule(graph, *schedule), mesh, 0);
      CHECK(plan->forward.largest_message(stage) == 8 * batch / mesh.extent(&data) * context * channels / 2);
    }
}
TEST_CASE("a cut that is scattered over tensor sends a slice, too, and is gathered behind") {
  const std::vector<double> one = losses(build<Alone<double>>(), Mesh{data = 1});
  using Scattered =
      Accumulate<micro_batches,
                 Training<Gpt<double, layers / stage, context, On<tensor, Split<2>>>, AdamW, Tokens, Tokens, Tokens>>;
  const Graph graph = build<Scattered>(), whole = build<Train<double>>();
  for (const Schedule* schedule : synchronous)
    for (const Mesh& mesh : {Mesh{stage = 2}, Mesh{stage = 2, tensor = 2}, Mesh{stage = 2, tensor = 4},
                             Mesh{data = 2, stage = 2, tensor = 2}}) {
      INFO(schedule->name << " on " << text(mesh));
      check_losses(losses(with_schedule(graph, *schedule), mesh), one, 1e-10);
    }
  const Mesh mesh{stage = 4, tensor = 4};
  for (int rank = 0; rank < mesh.ranks(); rank += 4) {
    const OwnedPlan scattered = plan_of(graph, mesh, rank), sent = plan_of(whole, mesh, rank);
    CHECK(scattered->forward.sent(stage, parallel::Collective::send) * 4 ==
          sent->forward.sent(stage, parallel::Collective::send));
    CHECK(scattered->backward.sent(stage, parallel::Collective::send) * 4 ==
          sent->backward.sent(stage, parallel::Collective::send));
    CHECK(scattered->forward.calls(all_gather(tensor)) >= micro_batches);
  }
}
