// Runs a program on a mesh of thread ranks and puts the ranks' parts of its outputs together.
#pragma once
#include <parallel/plan/walk.hpp>

#include "device_under_test.hpp"
#include "lockstep.hpp"

namespace program {

using namespace parallel;
using namespace parallel::internals;
using lockstep::Array;

/// A layer whose result is weighed by a cotangent and summed up: if the cotangent is a Wanted input, its gradient is
/// the layer's result.
template <class Layer>
struct Weighed {
  Layer layer;
  constexpr auto operator()(Distributed auto cotangent, Distributed auto... x) const {
    return sum(layer(x...) * cotangent);
  }
};

/// Writes a rank's part into the whole.
template <class T>
void gather(const View& v, Array& whole) {
  if (v.data == nullptr) return;  // this rank's stage has nothing of it
  std::int64_t at[max_rank + 1]{};
  for (std::int64_t i = 0; i < v.elements(); ++i) {
    std::int64_t global = 0;
    for (int d = 0; d < v.rank; ++d) global = global * v.whole[d] + v.at(d, at[d]);
    if constexpr (Half<T>)
      whole.data[static_cast<std::size_t>(global)] = static_cast<double>(static_cast<float>(v.as<T>()[i]));
    else
      whole.data[static_cast<std::size_t>(global)] = static_cast<double>(v.as<T>()[i]);
    for (int d = v.rank - 1; d >= 0 && ++at[d] == v.size[d]; --d) at[d] = 0;
  }
}

template <class T>
std::vector<T> numbers(std::int64_t count, std::uint64_t stream, int below = 0) {
  std::vector<T> result(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = below > 0 ? static_cast<T>(random_uniform(11, stream, i) * below)
                          : static_cast<T>(2 * random_uniform(11, stream, i) - 1);
  return result;
}

/// How many elements the first input has, whole.
inline std::size_t input_elements(const Plan& plan) {
  for (const Member& m : plan.graph.members)
    if (m.role == Role::input) return static_cast<std::size_t>(m.type.layout.elements());
  return 0;
}

/// Gives every parameter numbers between -1 and 1, whatever it would begin with: biases that are zero hide what happens
/// to them.
template <class T>
void randomize(const Plan& plan, int rank, under_test::Parameters& parameters) {
  for (std::size_t i = 0; i < plan.graph.members.size(); ++i) {
    const Member& m = plan.graph.members[i];
    if (m.role == Role::parameter)
      parameters.set(plan, rank, plan.graph.path(m), numbers<T>(m.type.layout.elements(), 100 + i));
  }
}

/// Writes a rank's parts of the outputs into `whole`. All ranks call it alike: one writes at a time, as several may
/// hold the same elements.
template <Communicator World, class Running>
void gather_outputs(World& world, Running& executor, std::vector<Array>& whole) {
  for (int rank = 0; rank < world.size(); ++rank) {
    world.barrier();
    if (rank != world.rank()) continue;
    for (int o = 0; o < executor.outputs(); ++o) {
      std::vector<std::byte> room;
      const View v = executor.on_host(executor.output(o), room);
      if (v.dtype == DType::f64)
        gather<double>(v, whole[static_cast<std::size_t>(o)]);
      else if (v.dtype == DType::bf16)
        gather<bfloat16>(v, whole[static_cast<std::size_t>(o)]);
      else if (v.dtype == DType::f16)
        gather<float16>(v, whole[static_cast<std::size_t>(o)]);
      else
        gather<float>(v, whole[static_cast<std::size_t>(o)]);
    }
  }
}
/// Runs a plan once on one of its ranks and writes the rank's parts of the outputs into `whole`.
template <Communicator World, class Feed>
void run_rank(const Plan& plan, World& world, Feed feed, std::vector<Array>& whole) {
  under_test::Parameters parameters(plan, world.rank(), 5);
  Executor<World, under_test::Device> executor(plan, world, parameters);
  for (const auto& [name, value] : {std::pair{"seed", 3}, {"step", 1}, {"clip_norm", 1}})
    if (executor.reads(name)) executor.scalar(name, value);
  feed(executor, parameters);
  executor.run();
  gather_outputs(world, executor, whole);
}
inline std::vector<Array> empty_outputs(const Plan& plan) {
  std::vector<Array> whole;
  for (const Output& o : plan.graph.outputs) {
    std::vector<std::int64_t> size;
    for (const Dim& d : plan.graph.value(o.value).type.layout.dims) size.push_back(d.size);
    whole.push_back(lockstep::zeros(size));
  }
  return whole;
}
/// Every output of a plan, whole, from thread ranks. `feed(executor, parameters)` gives inputs on every rank.
template <class Feed>
std::vector<Array> outputs(const Plan& plan, Feed feed) {
  std::vector<Array> whole = empty_outputs(plan);
  run_threads(plan.mesh.ranks(), [&](Threads& world) { run_rank(plan, world, feed, whole); });
  return whole;
}
/// The same from a program; `feed(executor)`.
template <class Program, class Feed>
std::vector<Array> outputs(const Mesh& mesh, Feed feed) {
  const OwnedPlan plan = derive<Program>(mesh);
  return outputs(*plan, [&](auto& executor, auto&) { feed(executor); });
}

/// What the plan says some groups are asked, in order: `chosen(name)`.
template <class Chosen>
std::vector<Record> planned(const Plan& plan, Chosen chosen) {
  std::vector<Record> calls;
  each_event(plan, [&](const Event& e) {
    const Node& node = plan.graph.node(e.node);
    if (e.kind != EventKind::start || !chosen(name_of_group(node.transition))) return;
    calls.push_back(
        {node.transition.collective, plan.all.message(node), plan.graph.value(node.operands[0]).type.dtype,
         node.transition.along != 0 ? plan.mesh.extent(node.transition.axes) : participants(node.transition, plan.mesh),
         node.transition.maximum});
  });
  return calls;
}

}  // namespace program
