// From a program and a mesh to its plan: `plan<Program, mesh>` for the compiler, `derive<Program>(mesh)` at start-up. Both run the same passes.
#pragma once
#include <array>
#include <memory>
#include <stdexcept>
#include <string>

#include <parallel/algebra/notation.hpp>
#include <parallel/plan/balance.hpp>
#include <parallel/plan/demands.hpp>
#include <parallel/plan/object.hpp>
#include <parallel/plan/refused_plan.hpp>
#include <parallel/plan/stage.hpp>

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

namespace constants {
// Each pass is a constant of its own, so that a step with many operations keeps within the limits of compilers on the evaluation of one.
template <int nodes>
struct Scheduled {
  std::array<Event, static_cast<std::size_t>(3 * nodes)> events;  ///< at most a start and two waits for every node
  int count;
};
template <int values, int nodes>
struct Assigned {
  std::array<Storage, static_cast<std::size_t>(values)> storage;
  std::array<int, static_cast<std::size_t>(values)> allocation_of;
  std::array<int, static_cast<std::size_t>(nodes)> packing_of;
  std::array<Allocation, static_cast<std::size_t>(values + nodes)> allocations;
  int count;
  Memory memory;
};
template <int values, int nodes>
struct Packed {
  std::array<Storage, static_cast<std::size_t>(values)> storage;
  std::array<std::int64_t, static_cast<std::size_t>(nodes)> packing;
  Memory memory;
};
template <class To, class From>
constexpr void copy(To& to, const From& from) {
  for (int i = 0; i < static_cast<int>(from.size()); ++i) to[static_cast<std::size_t>(i)] = from[i];
}

// The order, loops and work of a stage, where the program has stages.
struct Shares {
  int order, regions, slots;
};
template <class Program, Mesh mesh>
constexpr Shares shares_of() {
  const Located l = locate(view_of(graph<Program>), mesh);
  return {l.order.size(), l.regions.size(), l.slots.size()};
}
template <Shares n>
struct Share {
  std::array<int, static_cast<std::size_t>(n.order)> order;
  std::array<Region, static_cast<std::size_t>(n.regions)> regions;
  std::array<Slot, static_cast<std::size_t>(n.slots)> slots;
  int parts;
};
template <class Program, Mesh mesh, Shares n = shares_of<Program, mesh>()>
constexpr Share<n> share_constant() {
  const Located l = locate(view_of(graph<Program>), mesh);
  return {frozen<int, n.order>(l.order), frozen<Region, n.regions>(l.regions), frozen<Slot, n.slots>(l.slots), l.parts};
}
template <class Program, Mesh mesh>
inline constexpr auto share = share_constant<Program, mesh>();
/// The graph of a program as the mesh's stage sees it.
template <class Program, Mesh mesh>
constexpr GraphView view_on() {
  GraphView view = view_of(graph<Program>);
  if constexpr (graph<Program>.stages != nullptr)
    view.order = share<Program, mesh>.order, view.regions = share<Program, mesh>.regions, view.slots = share<Program, mesh>.slots, view.parts = share<Program, mesh>.parts;
  return view;
}

template <class Program, Mesh mesh>
constexpr auto schedule_constant() {
  constexpr int room = graph<Program>.stages == nullptr ? sizes<Program>.nodes : static_cast<int>(view_on<Program, mesh>().order.size());
  Scheduled<room> result{};
  const Vector<Event> events = schedule(view_on<Program, mesh>(), mesh);
  copy(result.events, events);
  result.count = events.size();
  return result;
}
template <class Program, Mesh mesh>
inline constexpr auto scheduled = schedule_constant<Program, mesh>();
template <class Program, Mesh mesh>
constexpr std::span<const Event> events_of() {
  return std::span<const Event>(scheduled<Program, mesh>.events).first(static_cast<std::size_t>(scheduled<Program, mesh>.count));
}

template <class Program, Mesh mesh>
constexpr auto assign_constant() {
  const GraphView view = view_on<Program, mesh>();
  Placing placing(view, mesh);
  placing.assign(events_of<Program, mesh>());
  placing.live(events_of<Program, mesh>());
  Assigned<sizes<Program>.values, sizes<Program>.nodes> result{};
  copy(result.storage, placing.storage), copy(result.allocation_of, placing.allocation_of), copy(result.packing_of, placing.packing_of);
  copy(result.allocations, placing.allocations);
  result.count = placing.allocations.size();
  result.memory = placing.memory;
  return result;
}
template <class Program, Mesh mesh>
inline constexpr auto assigned = assign_constant<Program, mesh>();

template <class Program, Mesh mesh>
constexpr auto pack_constant() {
  const GraphView view = view_on<Program, mesh>();
  constexpr auto& from = assigned<Program, mesh>;
  Placing placing(view, mesh);
  for (const Storage& s : from.storage) placing.storage.push_back(s);
  for (const int a : from.allocation_of) placing.allocation_of.push_back(a);
  for (const int p : from.packing_of) placing.packing_of.push_back(p);
  for (int i = 0; i < from.count; ++i) placing.allocations.push_back(from.allocations[static_cast<std::size_t>(i)]);
  placing.memory = from.memory;
  placing.pack();
  Packed<sizes<Program>.values, sizes<Program>.nodes> result{};
  copy(result.storage, placing.packed_storage());
  copy(result.packing, placing.packed_packing());
  result.memory = placing.memory;
  return result;
}
template <class Program, Mesh mesh>
inline constexpr auto packed = pack_constant<Program, mesh>();

template <class Program, Mesh mesh>
inline constexpr Plan passed{view_on<Program, mesh>(),      mesh,                         events_of<Program, mesh>(), packed<Program, mesh>.storage,
                             packed<Program, mesh>.packing, packed<Program, mesh>.memory};

template <class Program, Mesh mesh, class... Beside>
struct Judged {
  static constexpr std::array<GraphView, sizeof...(Beside)> beside{view_of(graph<Beside>)...};
  static constexpr Fault value = check(view_of(graph<Program>), mesh, beside, demands_of<Program>());
};
template <class Program, Mesh mesh>
struct Budgeted {
  static constexpr Fault value = over_budget(passed<Program, mesh>, demands_of<Program>());
};
template <class Program, Mesh mesh>
inline constexpr ScheduleRefusal refused_tasks = checked_by_compiler(view_of(graph<Program>), mesh) ? check_tasks(view_of(graph<Program>), mesh) : ScheduleRefusal{};
template <class Program, Mesh mesh>
inline constexpr ScheduleRefusal refused_waits =
    checked_by_compiler(view_of(graph<Program>), mesh) && !refused_tasks<Program, mesh> ? check_waits(view_of(graph<Program>), mesh) : ScheduleRefusal{};
/// Whether the compiler refuses the schedule; asking is then the one error.
template <class Program, Mesh mesh>
constexpr bool refuses_schedule() {
  constexpr auto& refusal = refused_tasks<Program, mesh> ? refused_tasks<Program, mesh> : refused_waits<Program, mesh>;
  using scheduled [[maybe_unused]] = typename RefusedSchedule<refusal.reason, refusal>::type;
  return static_cast<bool>(refusal);
}
template <class Program, Mesh mesh, class... Beside>
constexpr auto made() {
  if constexpr (building::refused<Program>(typename Program::Inputs{}) || (building::refused<Beside>(typename Beside::Inputs{}) || ...)) {
    return RefusedPlan{};
  } else {
    using accepted [[maybe_unused]] = checked<Judged<Program, mesh, Beside...>>;
    if constexpr (Judged<Program, mesh, Beside...>::value.refusal) {
      return RefusedPlan{};
    } else if constexpr (refuses_schedule<Program, mesh>()) {
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
inline constexpr auto plan = constants::made<Program, with_cut(constants::view_of(constants::graph<Program>), mesh), Beside...>();

/// A plan that was derived at start-up, with its memory. Copies share it.
class OwnedPlan {
 public:
  OwnedPlan(std::shared_ptr<const Planned> planned, const GraphView& graph, const Mesh& mesh)
      : planned_(std::move(planned)), plan_(graph, mesh, planned_->events, planned_->storage, planned_->packing, planned_->memory) {}
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
    std::string valid;
    for (std::int64_t n = 1; n <= most_named; ++n)
      if (dim.size % n == 0 && divides(g, mesh, fault.refusal.axis, n)) valid += (valid.empty() ? "" : ", ") + std::to_string(n);
    const int member = g.value(fault.value).member;
    const int chunks = chunks_of(g, dim, mesh);
    result += ": " + text(mesh) + (chunks > 1 ? " with " + std::to_string(chunks) + " chunks on each stage, for " + text(*g.schedule) + "," : "") + " does not divide dimension " +
              std::to_string(fault.dim) + " (" + std::to_string(dim.size) + ") of " + text(type);
    if (member >= 0) result += " (" + std::string(g.member(member).path.view()) + ")";
    return result + (valid.empty() ? "; no extent of " + axis + " does" : "; valid extents of " + axis + ": " + valid);
  }
  if (fault.refusal.reason == Reason::no_member) return result;
  if (fault.refusal.reason == Reason::staged_twice || fault.refusal.reason == Reason::stages_named || fault.refusal.reason == Reason::no_such_stage ||
      fault.refusal.reason == Reason::asynchronous)
    return result + ": " + text(mesh) + ", stages on " + axis;
  if (fault.refusal.reason == Reason::outside_layers || fault.refusal.reason == Reason::remembered) return result + ": " + std::string(g.member(g.misused).path.view());
  if (fault.refusal.reason == Reason::strict) {
    const Node& node = g.node(fault.node);
    const Source source = g.origin(node).source;
    return result + ": " + std::string(name_of(node.transition.collective)) + " on " + axis + " of " + text(g.value(node.operands[0]).type) + " to " +
           text(g.value(node.result).type) + ", " + std::to_string(fault.refusal.figures[2]) + " bytes, at " + source.file + ":" +
           std::to_string(source.line);
  }
  if (fault.refusal.reason == Reason::over_memory || fault.refusal.reason == Reason::over_bytes)
    return result + ": " + std::to_string(fault.refusal.figures[0]) + " bytes" + (axis.empty() ? "" : " on " + axis) + " with " + text(mesh) +
           ", the budget is " + std::to_string(fault.refusal.figures[1]);
  AxisList named;
  for (const Value& v : g.values) v.type.layout.collect(named);
  std::string valid;
  for (const Axis* a : named) valid += (valid.empty() ? "" : ", ") + std::string(a->text());
  return result + ": " + axis + " in " + text(mesh) + "; the program's axes: " + valid;
}

/// The passes on a graph at start-up. Throws MeshRefused where its types, the mesh or a demand refuse it.
inline OwnedPlan derive(Graph graph, const Mesh& given, std::span<const GraphView> beside, const Demands& demands) {
  const Mesh mesh = with_cut(graph, given);
  auto planned = std::make_shared<Planned>();
  planned->graph = std::move(graph);
  const Fault fault = check(planned->graph, mesh, beside, demands);
  if (fault.refusal) throw MeshRefused(fault.refusal.reason, explain(fault, planned->graph, mesh));
  if (const ScheduleRefusal refusal = check_schedule(planned->graph, mesh)) throw MeshRefused(Reason::none, text(refusal) + ", for " + text(mesh));
  const GraphView graph_here = plan_into(*planned, planned->graph, mesh);
  OwnedPlan made(std::move(planned), graph_here, mesh);
  const Fault over = over_budget(made, demands);
  if (over.refusal) throw MeshRefused(over.refusal.reason, explain(over, made.get().graph, mesh));
  return made;
}

/// The plan of a program on a mesh that is known at start-up only, as its first rank sees it: where the program has no stages, all see the same.
/// Throws MeshRefused.
template <class Program, class... Beside>
OwnedPlan derive(const Mesh& mesh) {
  if constexpr (!building::refused<Program>(typename Program::Inputs{})) {
    [[maybe_unused]] constexpr auto& carried = object::program<Program>;
  }
  const std::array<GraphView, sizeof...(Beside)> beside{constants::view_of(constants::graph<Beside>)...};
  return derive(build<Program>(), mesh, beside, demands_of<Program>());
}
/// The same as one rank of the mesh sees it: the plan of its stage.
template <class Program, class... Beside>
OwnedPlan derive(const Mesh& mesh, int rank) {
  for (const Extent& e : mesh.axes)
    if (e.axis != nullptr && e.size < 1) return derive<Program, Beside...>(mesh);  // refused there
  if (rank < 0 || rank >= mesh.ranks()) throw MeshRefused(Reason::none, "parallel::derive: there is no rank " + std::to_string(rank) + " in " + text(mesh));
  const Axis* axis = constants::graph<Program>.stages;
  return derive<Program, Beside...>(axis == nullptr ? mesh : mesh.on_stage(mesh.coordinate(rank, axis)));
}

}  // namespace parallel
