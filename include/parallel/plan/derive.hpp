// From a program and a mesh to its plan at start-up: `derive<Program>(mesh)`. compiled.hpp runs the same passes in the
// compiler.
#pragma once
#include <array>
#include <memory>
#include <string>

#include <parallel/algebra/notation.hpp>
#include <parallel/meta/failure.hpp>
#include <parallel/plan/compiled.hpp>

namespace parallel {

/// A plan's own memory, at run time.
struct Planned {
  Graph graph{};
  Located located{};  ///< where the program has stages
  Vector<Event> events{};
  Vector<Storage> storage{};
  Vector<std::int64_t> packing{};
  Memory memory{};
};

/// The passes behind the trace, on any mesh that has been checked.
constexpr GraphView plan_into(Planned& planned, const GraphView& whole, const Mesh& mesh) {
  if (whole.stages != nullptr) planned.located = locate(whole, mesh);
  const GraphView graph = whole.stages != nullptr ? seen(whole, planned.located) : whole;
  planned.events = schedule(graph, mesh);
  Placing placing(graph, mesh);
  placing.assign(planned.events);
  placing.live(planned.events);
  placing.pack();
  planned.storage = placing.packed_storage();
  planned.packing = placing.packed_packing();
  planned.memory = placing.memory;
  return graph;
}

/// A plan that was derived at start-up, with its memory. Copies share it.
class OwnedPlan {
 public:
  OwnedPlan(std::shared_ptr<const Planned> planned, const GraphView& graph, const Mesh& mesh)
      : planned_(std::move(planned)),
        plan_(graph, mesh, planned_->events, planned_->storage, planned_->packing, planned_->memory) {}
  const Plan& get() const { return plan_; }
  operator const Plan&() const { return plan_; }
  const Plan* operator->() const { return &plan_; }
  const Plan& operator*() const { return plan_; }

 private:
  std::shared_ptr<const Planned> planned_;
  Plan plan_;
};

/// A program or a mesh that is refused at start-up, with the sentence that the compiler would have printed, the thing
/// and the valid choices. Exit code 78.
struct MeshRefused : Failure {
  Reason reason;
  MeshRefused(Reason r, const std::string& sentence)
      : Failure(sentence, parallel::exit_code::configuration), reason(r) {}
};

/// Says what is wrong and which choices are valid.
inline std::string explain(const Fault& fault, const GraphView& g, const Mesh& mesh) {
  std::string result(sentence_of(fault.refusal.reason));
  const std::string axis = fault.refusal.axis != nullptr ? std::string(fault.refusal.axis->text()) : "";
  if (fault.refusal.reason == Reason::not_divisible) {
    const Type& type = g.value(fault.value).type;
    const Dim& dim = type.layout.dims[fault.dim];
    std::string valid;
    for (std::int64_t n = 1; n <= most_named; ++n)
      if (dim.size % n == 0 && divides(g, mesh, fault.refusal.axis, n))
        valid += (valid.empty() ? "" : ", ") + std::to_string(n);
    const int member = g.value(fault.value).member;
    const int chunks = chunks_of(g, dim, mesh);
    result += ": " + text(mesh) +
              (chunks > 1 ? " with " + std::to_string(chunks) + " chunks on each stage, for " + text(*g.schedule) + ","
                          : "") +
              " does not divide dimension " + std::to_string(fault.dim) + " (" + std::to_string(dim.size) + ") of " +
              text(type);
    if (member >= 0) result += " (" + std::string(g.path(member)) + ")";
    return result + (valid.empty() ? "; no extent of " + axis + " does" : "; valid extents of " + axis + ": " + valid);
  }
  if (fault.refusal.reason == Reason::no_member) return result;
  if (fault.refusal.reason == Reason::staged_twice || fault.refusal.reason == Reason::stages_named ||
      fault.refusal.reason == Reason::no_such_stage || fault.refusal.reason == Reason::asynchronous)
    return result + ": " + text(mesh) + ", stages on " + axis;
  if (fault.refusal.reason == Reason::outside_layers || fault.refusal.reason == Reason::remembered)
    return result + ": " + std::string(g.path(g.misused));
  if (fault.refusal.reason == Reason::strict) {
    const Node& node = g.node(fault.node);
    const Source source = g.origin(node).source;
    return result + ": " + std::string(name_of(node.transition.collective)) + " on " + axis + " of " +
           text(g.value(node.operands[0]).type) + " to " + text(g.value(node.result).type) + ", " +
           std::to_string(fault.refusal.figures[2]) + " bytes, at " + source.file + ":" + std::to_string(source.line);
  }
  if (fault.refusal.reason == Reason::over_memory || fault.refusal.reason == Reason::over_bytes)
    return result + ": " + std::to_string(fault.refusal.figures[0]) + " bytes" + (axis.empty() ? "" : " on " + axis) +
           " with " + text(mesh) + ", the budget is " + std::to_string(fault.refusal.figures[1]);
  AxisList named;
  for (const Value& v : g.values) v.type.layout.collect(named);
  std::string valid;
  for (const Axis* a : named) valid += (valid.empty() ? "" : ", ") + std::string(a->text());
  return result + ": " + axis + " in " + text(mesh) + "; the program's axes: " + valid;
}

/// The passes on a graph at start-up; `planned` has the graph, where nothing else keeps it. Throws MeshRefused where
/// its types, the mesh or a demand refuse it.
inline OwnedPlan derive(const std::shared_ptr<Planned>& planned, const GraphView& graph, const Mesh& given,
                        std::span<const GraphView> beside, const Demands& demands) {
  const Mesh mesh = with_cut(graph, given);
  const Fault fault = check(graph, mesh, beside, demands);
  if (fault.refusal) throw MeshRefused(fault.refusal.reason, explain(fault, graph, mesh));
  if (const ScheduleRefusal refusal = check_schedule(graph, mesh))
    throw MeshRefused(Reason::none, text(refusal) + ", for " + text(mesh));
  const GraphView graph_here = plan_into(*planned, graph, mesh);
  OwnedPlan made(planned, graph_here, mesh);
  const Fault over = over_budget(made, demands);
  if (over.refusal) throw MeshRefused(over.refusal.reason, explain(over, made.get().graph, mesh));
  return made;
}
inline OwnedPlan derive(Graph graph, const Mesh& mesh, std::span<const GraphView> beside, const Demands& demands) {
  auto planned = std::make_shared<Planned>();
  planned->graph = std::move(graph);
  return derive(planned, planned->graph, mesh, beside, demands);
}

/// The plan of a program on a mesh that is known at start-up only, from the graph that the compiler made, as its first
/// rank sees it: where the program has no stages, all see the same. Throws MeshRefused.
template <class Program, class... Beside>
OwnedPlan derive(const Mesh& mesh) {
  if constexpr (!building::refused<Program>(typename Program::Inputs{})) {
    [[maybe_unused]] constexpr auto& carried = object::program<Program>;
  }
  const std::array<GraphView, sizeof...(Beside)> beside{GraphView(constants::graph<Beside>)...};
  return derive(std::make_shared<Planned>(), GraphView(constants::graph<Program>), mesh, beside, demands_of<Program>());
}
/// The same as one rank of the mesh sees it: the plan of its stage.
template <class Program, class... Beside>
OwnedPlan derive(const Mesh& mesh, int rank) {
  for (const Extent& e : mesh.axes)
    if (e.axis != nullptr && e.size < 1) return derive<Program, Beside...>(mesh);  // refused there
  if (rank < 0 || rank >= mesh.ranks())
    throw MeshRefused(Reason::none, "parallel::derive: there is no rank " + std::to_string(rank) + " in " + text(mesh));
  const Axis* axis = constants::graph<Program>.stages;
  return derive<Program, Beside...>(axis == nullptr ? mesh : mesh.on_stage(mesh.coordinate(rank, axis)));
}

}  // namespace parallel
