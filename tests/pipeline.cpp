// Pipelines: the losses of ten training steps on stages are those of one rank, for every synchronous schedule.
#include <doctest/doctest.h>

#include "pipeline_training.hpp"

using namespace parallel;
using namespace parallel::axes;
using namespace pipelines;

TEST_CASE("every synchronous schedule computes what one rank computes") {
  const std::vector<double> one = losses(build<Alone<double>>(), Mesh{data = 1});
  CHECK(one[0] > 1);
  CHECK(one[2 * steps - 2] < one[0]);
  const Graph graph = build<Train<double>>();
  for (const Schedule* schedule : synchronous)
    for (const Mesh& mesh : {Mesh{stage = 1}, Mesh{stage = 2}, Mesh{stage = 4}, Mesh{stage = 2, data = 2}, Mesh{stage = 2, tensor = 2}, Mesh{data = 2, stage = 2, tensor = 2},
                             Mesh{stage = 4, data = 2}}) {
      INFO(schedule->name << " on " << text(mesh));
      check_losses(losses(with_schedule(graph, *schedule), mesh), one, 1e-10);
    }
}
