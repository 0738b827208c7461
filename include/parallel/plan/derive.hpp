// From a program and a mesh to its plan: `plan<Program, mesh>` for the compiler, `derive<Program>(mesh)` at start-up. Both run the same passes.
#pragma once
#include <memory>
#include <stdexcept>
#include <string>

#include <parallel/algebra/notation.hpp>
#include <parallel/plan/demands.hpp>
#include <parallel/plan/object.hpp>
#include <parallel/plan/refused_plan.hpp>

namespace parallel {

/// A plan's own memory, at run time.
struct Planned {
  Graph graph{};
  Vector<Event> events{};
  Vector<Storage> storage{};
  Vector<std::int64_t> packing{};
  Memory memory{};
};

/// The passes behind the trace, on any mesh that has been checked.
constexpr void plan_into(Planned& planned, const GraphView& graph, const Mesh& mesh) {
  planned.events = schedule(graph, mesh);
  const Placing placing = placed(graph, mesh, planned.events);
  planned.storage = placing.storage;
  for (int v = 0; v < placing.storage.size(); ++v)
    if (placing.allocation_of[v] >= 0) planned.storage[v].offset += placing.allocations[placing.allocation_of[v]].offset;
  planned.packing.resize(static_cast<int>(graph.nodes.size()), 0);
  for (int n = 0; n < planned.packing.size(); ++n)
    if (placing.packing_of[n] >= 0) planned.packing[n] = placing.allocations[placing.packing_of[n]].offset;
  planned.memory = placing.memory;
}

namespace constants {
struct PlanSizes {
  int events, values, nodes;
};
template <PlanSizes n>
struct Passes {
  std::array<Event, static_cast<std::size_t>(n.events)> events;
  std::array<Storage, static_cast<std::size_t>(n.values)> storage;
  std::array<std::int64_t, static_cast<std::size_t>(n.nodes)> packing;
  Memory memory;
};
template <class Program, Mesh mesh>
inline constexpr PlanSizes plan_sizes{schedule(view_of(graph<Program>), mesh).size(), sizes<Program>.values, sizes<Program>.nodes};
template <class Program, Mesh mesh>
constexpr auto frozen_passes() {
  constexpr PlanSizes n = plan_sizes<Program, mesh>;
  Planned planned;
  plan_into(planned, view_of(graph<Program>), mesh);
  return Passes<n>{frozen<Event, n.events>(planned.events), frozen<Storage, n.values>(planned.storage),
                   frozen<std::int64_t, n.nodes>(planned.packing), planned.memory};
}
template <class Program, Mesh mesh>
inline constexpr auto passes = frozen_passes<Program, mesh>();

template <class Program, Mesh mesh>
inline constexpr Plan passed{view_of(graph<Program>), mesh, passes<Program, mesh>.events, passes<Program, mesh>.storage, passes<Program, mesh>.packing,
                      passes<Program, mesh>.memory};

template <class Program, Mesh mesh, class... Beside>
struct Judged {
  static constexpr Fault value = check<Program>(view_of(graph<Program>), mesh, {view_of(graph<Beside>)...});
};
template <class Program, Mesh mesh>
struct Budgeted {
  static constexpr Fault value = over_budget(passed<Program, mesh>, demands_of<Program>());
};
template <class Program, Mesh mesh, class... Beside>
constexpr auto made() {
  if constexpr (building::refused<Program>(typename Program::Inputs{}) || (building::refused<Beside>(typename Beside::Inputs{}) || ...)) {
    return RefusedPlan{};
  } else {
    using accepted [[maybe_unused]] = checked<Judged<Program, mesh, Beside...>>;
    if constexpr (Judged<Program, mesh, Beside...>::value.refusal) {
      return RefusedPlan{};
    } else {
      using within [[maybe_unused]] = checked<Budgeted<Program, mesh>>;
      if constexpr (Budgeted<Program, mesh>::value.refusal) {
        return RefusedPlan{};
      } else {
        [[maybe_unused]] constexpr auto& carried = object::mesh<Program, mesh>;
        return passed<Program, mesh>;
      }
    }
  }
}
}  // namespace constants

/// The plan of a program on a mesh, as a constant: `static_assert` can ask it anything. `Beside`: other programs over the same parameters,
/// whose annotations may use axes that this one does not name.
template <class Program, Mesh mesh, class... Beside>
inline constexpr auto plan = constants::made<Program, mesh, Beside...>();

/// A plan that was derived at start-up, with its memory. Copies share it.
class OwnedPlan {
 public:
  OwnedPlan(std::shared_ptr<const Planned> planned, const Mesh& mesh)
      : planned_(std::move(planned)), plan_(planned_->graph, mesh, planned_->events, planned_->storage, planned_->packing, planned_->memory) {}
  const Plan& get() const { return plan_; }
  operator const Plan&() const { return plan_; }
  const Plan* operator->() const { return &plan_; }
  const Plan& operator*() const { return plan_; }

 private:
  std::shared_ptr<const Planned> planned_;
  Plan plan_;
};

/// A program or a mesh that is refused at start-up, with the sentence that the compiler would have printed, the thing and the valid choices.
struct MeshRefused : std::invalid_argument {
  Reason reason;
  MeshRefused(Reason r, const std::string& sentence) : std::invalid_argument(sentence), reason(r) {}
};

/// Says what is wrong and which choices are valid.
inline std::string explain(const Fault& fault, const GraphView& g, const Mesh& mesh) {
  std::string result(sentence_of(fault.refusal.reason));
  const std::string axis = fault.refusal.axis != nullptr ? std::string(fault.refusal.axis->text()) : "";
  if (fault.refusal.reason == Reason::not_divisible) {
    const Type& type = g.value(fault.value).type;
    const Dim& dim = type.layout.dims[fault.dim];
    const std::int64_t others = degree(dim, mesh) / mesh.extent(fault.refusal.axis);
    std::string valid;
    for (std::int64_t n = 1; n <= dim.size && n <= 1024; ++n)
      if (dim.size % (n * others) == 0) valid += (valid.empty() ? "" : ", ") + std::to_string(n);
    const int member = g.value(fault.value).member;
    result += ": " + text(mesh) + " does not divide dimension " + std::to_string(fault.dim) + " (" + std::to_string(dim.size) + ") of " + text(type);
    if (member >= 0) result += " (" + std::string(g.member(member).path.view()) + ")";
    return result + (valid.empty() ? "; no extent of " + axis + " does" : "; valid extents of " + axis + ": " + valid);
  }
  if (fault.refusal.reason == Reason::outside_layers) return result + ": " + std::string(g.member(g.misused).path.view());
  if (fault.refusal.reason == Reason::strict) {
    const Node& node = g.node(fault.node);
    const Source source = g.origin(node).source;
    return result + ": " + std::string(name_of(node.transition.collective)) + " on " + axis + " of " + text(g.value(node.operands[0]).type) + " to " +
           text(g.value(node.result).type) + ", " + std::to_string(fault.refusal.figures[2]) + " bytes, at " + source.file + ":" + std::to_string(source.line);
  }
  if (fault.refusal.reason == Reason::over_memory || fault.refusal.reason == Reason::over_bytes)
    return result + ": " + std::to_string(fault.refusal.figures[0]) + " bytes" + (axis.empty() ? "" : " on " + axis) + " with " + text(mesh) + ", the budget is " +
           std::to_string(fault.refusal.figures[1]);
  AxisList named;
  for (const Value& v : g.values) v.type.layout.collect(named);
  std::string valid;
  for (const Axis* a : named) valid += (valid.empty() ? "" : ", ") + std::string(a->text());
  return result + ": " + axis + " in " + text(mesh) + "; the program's axes: " + valid;
}

/// The plan of a program on a mesh that is known at start-up only. Throws MeshRefused.
template <class Program, class... Beside>
OwnedPlan derive(const Mesh& mesh) {
  auto planned = std::make_shared<Planned>();
  planned->graph = build<Program>();
  const Fault fault = check<Program>(planned->graph, mesh, {constants::view_of(constants::graph<Beside>)...});
  if (fault.refusal) throw MeshRefused(fault.refusal.reason, explain(fault, planned->graph, mesh));
  if constexpr (!building::refused<Program>(typename Program::Inputs{})) {
    [[maybe_unused]] constexpr auto& carried = object::program<Program>;
  }
  plan_into(*planned, planned->graph, mesh);
  OwnedPlan made(std::move(planned), mesh);
  const Fault over = over_budget(made, demands_of<Program>());
  if (over.refusal) throw MeshRefused(over.refusal.reason, explain(over, made.get().graph, mesh));
  return made;
}

}  // namespace parallel
