// From a program and a mesh to its plan at start-up: `derive<Program>(mesh)`. compiled.hpp runs the same passes in the
// compiler.
#pragma once
#include <array>
#include <memory>
#include <string>

#include <parallel/algebra/notation.hpp>
#include <parallel/meta/failure.hpp>
#include <parallel/meta/library.hpp>
#include <parallel/meta/nothing.hpp>
#include <parallel/plan/compiled.hpp>

namespace parallel::internals {

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
constexpr GraphView plan_into(Planned& planned, const GraphView& program, const Mesh& mesh) {
  const bool unrolls = has_rings(program);
  if (unrolls) planned.graph = unrolled(program, mesh);
  const GraphView whole = unrolls ? GraphView(planned.graph) : program;
  if (whole.stages != nullptr) planned.located = locate(whole, mesh);
  const GraphView graph = whole.stages != nullptr ? seen(whole, planned.located) : whole;
  planned.events = events_in_order(graph, mesh);
  Placing placing(graph, mesh);
  placing.assign(planned.events);
  placing.live(planned.events);
  placing.pack();
  planned.storage = placing.packed_storage();
  planned.packing = placing.packed_packing();
  planned.memory = placing.memory;
  return graph;
}

/// A plan that was derived at start-up, with its memory. Copies share it, and what runs it.
class OwnedPlan {
 public:
  PARALLEL_INLINE OwnedPlan(std::shared_ptr<const Planned> planned, const GraphView& graph, const Mesh& mesh);
  OwnedPlan(const OwnedPlan&) = default;  // to move is to copy: what was moved away is still a plan
  OwnedPlan& operator=(const OwnedPlan&) = default;
  const Plan& get() const { return *plan_; }
  operator const Plan&() const { return *plan_; }
  const Plan* operator->() const { return plan_.get(); }
  const Plan& operator*() const& { return *plan_; }
  template <int is_kept = 0>
  const Plan& operator*() const&& {
    static_assert(is_kept > 0,
                  "parallel: a plan that nobody keeps is gone at the end of the line; write const auto plan = "
                  "derive<Step>(mesh), and *plan where a Plan is asked for");
    return *plan_;
  }

 private:
  std::shared_ptr<const Plan> plan_;
};

/// What keeps the memory of a derived plan while it is held. Null of a constant, which needs nothing, and where the
/// plan is a copy of one that is there no more.
PARALLEL_INLINE std::shared_ptr<const Plan> keep(const Plan& plan);

/// A program or a mesh that is refused at start-up, with the sentence that the compiler would have printed, the thing
/// and the valid choices. Exit code 78.
struct MeshRefused : Failure {
  Reason reason;
  MeshRefused(Reason r, const std::string& sentence)
      : Failure(sentence, parallel::exit_code::configuration), reason(r) {}
};

/// Says what is wrong and which choices are valid.
PARALLEL_INLINE std::string explain(const Fault& fault, const GraphView& g, const Mesh& mesh);

/// The passes on a graph at start-up, a constant or one that the plan keeps. Throws MeshRefused where its types, the
/// mesh or a demand refuse it.
PARALLEL_INLINE OwnedPlan derive(const GraphView& graph, const Mesh& mesh, std::span<const GraphView> beside,
                                 const Demands& demands);
PARALLEL_INLINE OwnedPlan derive(Graph graph, const Mesh& mesh, std::span<const GraphView> beside,
                                 const Demands& demands);

/// The plan of a program on a mesh that is known at start-up only, from the graph that the compiler made, as its first
/// rank sees it: where the program has no stages, all see the same. Throws MeshRefused.
template <class Program, class... Beside>
OwnedPlan derive(const Mesh& mesh) {
  if constexpr (!constants::refused<Program>()) {
    [[maybe_unused]] constexpr auto& carried = object::program<Program>;
  }
  static constexpr GraphView graph(constants::graph<Program>);
  static constexpr std::array<GraphView, sizeof...(Beside)> beside{GraphView(constants::graph<Beside>)...};
  static constexpr Demands demands = demands_of<Program>();
  return derive(graph, mesh, beside, demands);
}
template <class... Program, class Given>
requires(sizeof...(Program) == 0 || !std::is_convertible_v<const Given&, const Mesh&>) OwnedPlan
    derive(const Given&, int = 0) {
  static_assert(
      sizeof...(Program) > 99,
      "parallel: derive takes the program as its template argument, and a mesh; write derive<Step>(Mesh{data = "
      "2}), with mesh_argument(text, {&data}) for one of the command line");
  return nothing<OwnedPlan>();
}
/// Of a mesh in <>: refused.
template <class Program, Mesh mesh>
OwnedPlan derive() {
  static_assert(mesh.count > 99,
                "parallel: derive takes the mesh as an argument, since only the program's start knows it; write "
                "derive<Step>(mesh), and of a constant plan<Step, mesh>");
  return nothing<OwnedPlan>();
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

}  // namespace parallel::internals

namespace parallel {
using internals::derive;
using internals::MeshRefused;
using internals::OwnedPlan;
}  // namespace parallel

#ifndef PARALLEL_LIBRARY
#include <parallel/plan/derive.ipp>
#endif
