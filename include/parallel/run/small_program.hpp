// A program of a few nodes that is made while another program runs, with what it takes: values that a rank has.
#pragma once
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parallel/run/executor.hpp>
#include <parallel/run/parameters.hpp>

namespace parallel::internals::eagerly {

/// What a rank has of a value.
struct Held {
  const Type* type = nullptr;  ///< outlives it
  Kind kind = Kind::data;
  std::shared_ptr<std::byte[]> own{};
  const std::byte* data = nullptr;  ///< null: it was forgotten, or is a value of no iteration
  std::int64_t bytes = 0;
};

inline Held room_for(const Type* type, Kind kind, const Mesh& mesh) {
  Held held{type, kind, {}, nullptr, local_bytes(*type, mesh)};
  held.own = std::make_shared_for_overwrite<std::byte[]>(static_cast<std::size_t>(held.bytes));
  held.data = held.own.get();
  return held;
}

/// An input of a program that is a value here.
inline int declare_held(Trace& trace, const Held& held, bool differentiable) {
  Member member;
  member.role = Role::input;
  member.path = trace.graph.name({}, {"input"});
  member.type = *held.type;
  return trace.declare(operation::input, member, held.kind == Kind::activation ? Kind::activation : Kind::data,
                       differentiable);
}

/// A graph that names every axis of a mesh: beside it no axis is unused.
inline Graph naming(const Mesh& mesh) {
  Trace trace;
  Type scalar;
  for (int i = 0; i < mesh.count; ++i) scalar.layout = scalar.layout.with(mesh.axes[i].axis, Broadcast);
  trace.emit(operation::constant, {}, {scalar}, Kind::constant);
  return std::move(trace.graph);
}

/// A program of a few nodes, with all that runs it.
template <Communicator World, Device Device>
class Small {
 public:
  /// `beside`: of `naming`.
  Small(Graph graph, const GraphView& beside, const Mesh& mesh, World& world,
        ParametersIn<MemoryOf<Device>>* parameters, const Device& device, Here here)
      : plan_(derive(std::move(graph), mesh, std::span(&beside, 1), Demands{})), executor_([&] {
          if (parameters == nullptr) none_.emplace(plan_, world.rank(), 0, device);
          return std::make_unique<Executor<World, Device>>(plan_, world, parameters == nullptr ? *none_ : *parameters,
                                                           device, nullptr, std::vector<Fact>{}, here, false);
        }()) {}

  /// Runs it on these inputs. `numbers`: of the run, by name.
  void run(std::span<const Held> inputs, const std::map<std::string, double, std::less<>>& numbers, Here here) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const View to = executor_->input(static_cast<int>(i));
      if (static_cast<std::int64_t>(to.bytes()) != inputs[i].bytes)
        throw CannotRun("a tensor of " + std::to_string(inputs[i].bytes) + " bytes was met where " +
                        std::to_string(to.bytes()) + " are; use values of one call of a model only within it");
      if (to.data != nullptr) std::memcpy(to.data, inputs[i].data, to.bytes());
    }
    for (const Name& name : plan_.get().graph.scalars)
      if (const auto known = numbers.find(plan_.get().graph.text(name)); known != numbers.end())
        executor_->scalar(known->first, known->second);
    executor_->run(here);
  }
  View output(int i) { return executor_->output(i); }

  int draws = 0;  ///< how many random operations it has

 private:
  OwnedPlan plan_;
  std::optional<ParametersIn<MemoryOf<Device>>> none_{};
  std::unique_ptr<Executor<World, Device>> executor_;
};

}  // namespace parallel::internals::eagerly
