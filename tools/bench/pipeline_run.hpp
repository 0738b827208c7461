// The derived step of pipeline_model.hpp by any schedule, on one rank.
#pragma once
#include <Eigen/Core>

#include <parallel/device/cpu.hpp>
#include <parallel/run/trainer.hpp>

#include "pipeline_model.hpp"

namespace bench {

namespace piped {
inline const Schedule* const schedules[] = {&parallel::schedules::naive, &parallel::schedules::gpipe,
                                            &parallel::schedules::one_forward_one_backward,
                                            &parallel::schedules::interleaved<2>, &parallel::schedules::zero_bubble_h1};
}  // namespace piped

/// The program with another schedule: the same graph as `Pipelined<schedule, Step>` has.
inline Graph with(Graph graph, const Schedule& schedule) {
  graph.schedule = &schedule;
  graph.chunks = schedule.chunks;
  for (Node& n : graph.nodes)
    if (n.transition.along != 0) n.transition.chunks = schedule.chunks;
  return graph;
}

/// As many stages as there are ranks.
template <Communicator World, class Device = Cpu>
class PipelineRun {
 public:
  PipelineRun(const Graph& graph, World& world, const Device& device = {})
      : world_(world),
        plan_(derive(graph, Mesh{stage = world.size()}.on_stage(world.rank()), {}, {})),
        parameters_(plan_, world.rank(), 1),
        trainer_(plan_, world, parameters_, KeepGradients::Hyperparameters{.clip_norm = 1}, 1, device) {
    int which = 0, position = 0;
    for (const Member& m : plan_->graph.members) {
      const Numbers& n = piped::numbers[static_cast<std::size_t>(which)];
      const View v = m.role == Role::parameter ? executor().member(which) : executor().input(position++);
      if (m.role == Role::parameter && plan_->graph.path(m) != n.name)
        throw Failure("pipeline: the model's parameters are not those of pipeline_model.hpp");
      if (v.data != nullptr)
        each_run(plan_, m.type.layout, world.rank(), [&](std::int64_t at, std::int64_t index, std::int64_t length) {
          for (std::int64_t i = 0; i < length; ++i) v.as<float>()[at + i] = number(n, which, index + i);
        });
      ++which;
    }
  }
  StepResult step() { return trainer_.step(0); }
  Executor<World, Device>& executor() { return trainer_.executor(); }
  const Plan& plan() const { return plan_; }

  /// Called by all ranks.
  std::vector<Checked> checked(const StepResult& result) {
    std::vector<Checked> all{{"loss", result.loss}, {"norm", result.gradient_norm}};
    for (int i = 0; i < piped::input; ++i) {
      const View v = executor().output(2 + i);
      double squares = Eigen::Map<const Eigen::ArrayXf>(v.as<float>(), v.elements()).cast<double>().square().sum(),
             sum = 0;
      Exchange e;
      e.in = &squares;
      e.out = &sum;
      e.count = 1;
      e.dtype = DType::f64;
      exchange(world_, e);
      all.push_back({piped::numbers[static_cast<std::size_t>(i)].name, std::sqrt(sum)});
    }
    return all;
  }

 private:
  World& world_;
  OwnedPlan plan_;
  Parameters parameters_;
  Trainer<World, Device> trainer_;
};

}  // namespace bench
