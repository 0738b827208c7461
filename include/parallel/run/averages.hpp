// The averages that an optimizer has remembered (`Averaged`), whole where parameters are whole, to be evaluated.
#pragma once
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <parallel/algebra/notation.hpp>
#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/communicator.hpp>
#include <parallel/run/executor.hpp>
#include <parallel/run/whole.hpp>

namespace parallel::internals {

namespace averaging {
constexpr std::string_view suffix = ".average";

/// The axes on which ranks hold more of a parameter than of its average.
inline AxisList gathered_on(const Plan& plan, const Layout& average, const Layout& parameter) {
  AxisList axes;
  for (int i = 0; i < plan.mesh.count; ++i) {
    const Axis* const axis = plan.mesh.axes[i].axis;
    if (plan.mesh.axes[i].size > 1 && !(average.on(axis) == parameter.on(axis))) axes.push_back(axis);
  }
  return axes;
}
/// A rank's part of a whole tensor, whose other elements are nothing, out of what ranks have of an average. `groups`:
/// by their axes, made where they are first needed. Called by all ranks together.
template <Communicator World>
std::vector<std::byte> whole_of(World& world, std::map<std::string, World>& groups, const Plan& plan,
                                const Type& average, const AxisList& axes, const std::vector<char>& part) {
  std::vector<std::byte> whole(static_cast<std::size_t>(average.layout.elements() * bytes_of(average.dtype)));
  const HandedOver to{average.dtype, whole.data(), static_cast<std::size_t>(average.layout.elements())};
  const auto take = [&](int rank, const char* bytes) {
    read_part(plan, average.layout, rank, reinterpret_cast<const std::byte*>(bytes), to);
  };
  if (axes.empty()) {
    take(world.rank(), part.data());
    return whole;
  }
  auto others = groups.find(text(axes));
  if (others == groups.end()) others = groups.emplace(text(axes), group(world, plan.mesh, axes)).first;
  const std::size_t bytes = part.size();
  const std::vector<char> all = agreeing::gathered(others->second, part, "averages of parameters");
  for (int rank = 0; rank < world.size(); ++rank) {  // those of the group, who number their coordinates
    bool among = true;
    for (int i = 0; i < plan.mesh.count; ++i)
      if (const Axis* const axis = plan.mesh.axes[i].axis; !axes.contains(axis))
        among = among && plan.mesh.coordinate(rank, axis) == plan.mesh.coordinate(world.rank(), axis);
    if (among) take(rank, all.data() + static_cast<std::size_t>(plan.mesh.coordinate(rank, axes)) * bytes);
  }
  return whole;
}
}  // namespace averaging

/// Writes what an executor's optimizer remembers as averages (`Averaged`) into `averages`, parameters of the same plan,
/// or of another program that shares them, which an evaluation then takes; members that are not trained are as they
/// are. Called by all ranks together; where averages are stored in parts ranks exchange them. Throws Misuse where
/// nothing is averaged.
template <Communicator World, class Device>
void take_averages(World& world, Executor<World, Device>& executor, ParametersIn<MemoryOf<Device>>& averages,
                   Here here = {}) {
  using namespace averaging;
  const Plan& plan = executor.plan();
  const GraphView& g = plan.graph;
  struct Averaging {
    const Member* parameter;
    const Member* from;  ///< its average, or itself
    std::vector<char> part{};
  };
  std::vector<Averaging> all;
  bool any = false;
  for (const Member& m : g.members) {
    if (m.role != Role::parameter) continue;
    all.push_back({&m, &m});
    for (const Member& state : g.members)
      if (g.path(state) == std::string(g.path(m)) + std::string(suffix)) all.back().from = &state, any = true;
  }
  if (!any) throw Misuse("the program's optimizer remembers no averages; train by Averaged<AdamW>, or another's");
  executor.each_part([&](const NamedTensor&, const Member& m, const std::byte* bytes, std::int64_t count) {
    for (Averaging& source : all) {
      if (source.from != &m) continue;
      source.part.resize(static_cast<std::size_t>(count));
      if (bytes != nullptr) std::memcpy(source.part.data(), bytes, source.part.size());
    }
  });
  std::map<std::string, World> groups;
  for (const Averaging& source : all) {
    const Member& m = *source.parameter;
    const AxisList axes = gathered_on(plan, source.from->type.layout, m.type.layout);
    const std::vector<std::byte> whole = whole_of(world, groups, plan, source.from->type, axes, source.part);
    const auto count = static_cast<std::size_t>(m.type.layout.elements());
    const std::string path(g.path(m));
    if (m.type.dtype == DType::f64)
      averages.set(plan, world.rank(), path, std::span(reinterpret_cast<const double*>(whole.data()), count), here);
    else
      averages.set(plan, world.rank(), path, std::span(reinterpret_cast<const float*>(whole.data()), count), here);
  }
}
template <class... Given>
void take_averages(Given&&...) {
  static_assert(sizeof...(Given) > 99,
                "parallel: take_averages takes the communicator, the trainer's executor and the parameters that become "
                "the averages; write take_averages(world, step.executor(), averages)");
}

}  // namespace parallel::internals

namespace parallel {
using internals::take_averages;
}  // namespace parallel
