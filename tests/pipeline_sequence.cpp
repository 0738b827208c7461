// Pipelines beside sequence parallelism, in both element types: the hidden state crosses from stage to stage in slices of the sequence.
#include <doctest/doctest.h>

#include "pipeline_training.hpp"

using namespace parallel;
using namespace parallel::axes;
using namespace pipelines;

TEST_CASE("with sequence parallelism a cut sends a slice, and the losses stay") {
  const std::vector<double> one = losses(build<Alone<double>>(), Mesh{data = 1});
  const Graph graph = build<Train<double, context / tensor>>();
  for (const Schedule* schedule : synchronous)
    for (const Mesh& mesh : {Mesh{stage = 2, tensor = 2}, Mesh{stage = 4, tensor = 2}, Mesh{data = 2, stage = 2, tensor = 2}}) {
      INFO(schedule->name << " on " << text(mesh));
      check_losses(losses(with(graph, *schedule), mesh), one, 1e-10);
      const OwnedPlan plan = plan_of(with(graph, *schedule), mesh, 0);
      CHECK(plan->forward.largest_message(stage) == 8 * batch / mesh.extent(&data) * context * channels / 2);
    }
}
TEST_CASE("losses in float") {
  const std::vector<double> one = losses(build<Alone<float>>(), Mesh{data = 1});
  for (const Schedule* schedule : synchronous)
    for (const Mesh& mesh : {Mesh{stage = 4}, Mesh{data = 2, stage = 2, tensor = 2}}) {
      INFO(schedule->name << " on " << text(mesh));
      check_losses(losses(with(build<Train<float>>(), *schedule), mesh), one, 1e-5);
    }
}
