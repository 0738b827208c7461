// ZeRO beside tensor and pipeline parallelism: by every schedule, ten steps of a GPT are those of one rank.
#include <doctest/doctest.h>

#include "pipeline_training.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using namespace pipelines;

TEST_CASE("a pipeline whose parameters, gradients or states are stored split") {
  const std::vector<double> one = losses(build<Alone<double>>(), Mesh{data = 1});
  for (const Graph& graph : {build<AllStored<Train<double>, Stored<data, Zero::states>>>(),
                             build<AllStored<Train<double>, Stored<data, Zero::gradients>>>(),
                             build<AllStored<Train<double>, Stored<data>>>(),
                             build<AllStored<Train<double>, Stored<data, Gathered::per_pass>>>(),
                             build<AllStored<Train<double>, Stored<data, Gathered::per_step>>>()})
    for (const Schedule* schedule : synchronous)
      for (const Mesh& mesh :
           {Mesh{data = 2, stage = 2}, Mesh{data = 2, tensor = 2, stage = 2}, Mesh{data = 4, stage = 2}}) {
        INFO(schedule->name << " on " << text(mesh));
        check_losses(losses(with_schedule(graph, *schedule), mesh), one, 1e-10);
      }
}

TEST_CASE("a pipeline whose parameters are stored on the host, over data and alone") {
  const std::vector<double> one = losses(build<Alone<double>>(), Mesh{data = 1});
  for (const Graph& graph :
       {build<AllStored<Train<double>, Stored<host, Zero::states>>>(), build<AllStored<Train<double>, Stored<host>>>(),
        build<AllStored<Train<double>, Stored<data, Zero::gradients>, Stored<host, Zero::gradients>>>(),
        build<AllStored<Train<double>, Stored<data>, Stored<host>>>()})
    for (const Schedule* schedule : synchronous)
      for (const Mesh& mesh : {Mesh{data = 2, stage = 2}, Mesh{tensor = 2, stage = 2}}) {
        INFO(schedule->name << " on " << text(mesh));
        check_losses(losses(with_schedule(graph, *schedule), mesh), one, 1e-10);
      }
}
