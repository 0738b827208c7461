// From a program and a mesh to its plan in the compiler: `plan<Program, mesh>`. derive.hpp runs the same passes at
// start-up.
#pragma once
#include <array>

#include <parallel/plan/balance.hpp>
#include <parallel/plan/demands.hpp>
#include <parallel/plan/object.hpp>
#include <parallel/plan/refused_plan.hpp>
#include <parallel/plan/stage.hpp>
#include <parallel/plan/unrolled.hpp>

namespace parallel::internals {

namespace constants {
// Each pass is a constant of its own, so that a step with many operations keeps within the limits of compilers on the
// evaluation of one.
template <int nodes>
struct Ordered {
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

template <class Program, Mesh mesh>
constexpr parallel::internals::Graph unrolled_graph() {
  return unrolled(GraphView(graph<Program>), mesh);
}
template <class Program, Mesh mesh, bool unrolls = has_rings(GraphView(graph<Program>))>
struct OnMesh {
  static constexpr const auto& graph = constants::graph<Program>;
};
template <class Program, Mesh mesh>
struct OnMesh<Program, mesh, true> {
  static constexpr auto graph = Made<&unrolled_graph<Program, mesh>>::graph();
};
/// The graph of a program on a mesh: with ring attention one of its own, else the program's.
template <class Program, Mesh mesh>
inline constexpr const auto& graph_on = OnMesh<Program, mesh>::graph;

// The order, loops and work of a stage, where the program has stages.
struct Shares {
  int order, regions, parts, slots;
};
template <class Program, Mesh mesh>
constexpr Shares shares_of() {
  const Located l = locate(GraphView(graph_on<Program, mesh>), mesh);
  return {l.order.size(), l.regions.size(), l.parts.size(), l.slots.size()};
}
template <Shares n>
struct Share {
  std::array<IndexOf<Node>, static_cast<std::size_t>(n.order)> order;
  std::array<Region, static_cast<std::size_t>(n.regions)> regions;
  std::array<StagePart, static_cast<std::size_t>(n.parts)> parts;
  std::array<Slot, static_cast<std::size_t>(n.slots)> slots;
};
template <class Program, Mesh mesh, Shares n = shares_of<Program, mesh>()>
constexpr Share<n> share_constant() {
  const Located l = locate(GraphView(graph_on<Program, mesh>), mesh);
  return {frozen<IndexOf<Node>, n.order>(l.order), frozen<Region, n.regions>(l.regions),
          frozen<StagePart, n.parts>(l.parts), frozen<Slot, n.slots>(l.slots)};
}
template <class Program, Mesh mesh>
inline constexpr auto share = share_constant<Program, mesh>();
/// The graph of a program as the mesh's stage sees it.
template <class Program, Mesh mesh>
constexpr GraphView view_on() {
  if constexpr (graph_on<Program, mesh>.stages != nullptr)
    return seen(GraphView(graph_on<Program, mesh>), share<Program, mesh>);
  else
    return GraphView(graph_on<Program, mesh>);
}

template <class Program, Mesh mesh>
constexpr auto order_constant() {
  constexpr auto room = static_cast<int>(view_on<Program, mesh>().order.size());
  Ordered<room> result{};
  const Vector<Event> events = events_in_order(view_on<Program, mesh>(), mesh);
  copy(result.events, events);
  result.count = events.size();
  return result;
}
template <class Program, Mesh mesh>
inline constexpr auto ordered = order_constant<Program, mesh>();
template <class Program, Mesh mesh>
constexpr std::span<const Event> events_of() {
  return std::span<const Event>(ordered<Program, mesh>.events)
      .first(static_cast<std::size_t>(ordered<Program, mesh>.count));
}

template <class Program, Mesh mesh>
constexpr auto assign_constant() {
  const GraphView view = view_on<Program, mesh>();
  Placing placing(view, mesh);
  placing.assign(events_of<Program, mesh>());
  placing.live(events_of<Program, mesh>());
  Assigned<static_cast<int>(graph_on<Program, mesh>.values.size()),
           static_cast<int>(graph_on<Program, mesh>.nodes.size())>
      result{};
  copy(result.storage, placing.storage);
  copy(result.allocation_of, placing.allocation_of);
  copy(result.packing_of, placing.packing_of);
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
  Packed<static_cast<int>(graph_on<Program, mesh>.values.size()),
         static_cast<int>(graph_on<Program, mesh>.nodes.size())>
      result{};
  copy(result.storage, placing.packed_storage());
  copy(result.packing, placing.packed_packing());
  result.memory = placing.memory;
  return result;
}
template <class Program, Mesh mesh>
inline constexpr auto packed = pack_constant<Program, mesh>();

template <class Program, Mesh mesh>
inline constexpr Plan passed{view_on<Program, mesh>(),      mesh,
                             events_of<Program, mesh>(),    packed<Program, mesh>.storage,
                             packed<Program, mesh>.packing, packed<Program, mesh>.memory};

template <class Program, Mesh mesh, class... Beside>
struct Judged {
  static constexpr std::array<GraphView, sizeof...(Beside)> beside{GraphView(graph<Beside>)...};
  static constexpr Fault value = check(GraphView(graph<Program>), mesh, beside, demands_of<Program>());
};
template <class Program, Mesh mesh>
struct Budgeted {
  static constexpr Fault value = over_budget(passed<Program, mesh>, demands_of<Program>());
};
template <class Program, Mesh mesh>
inline constexpr ScheduleRefusal refused_tasks = checked_by_compiler(GraphView(graph<Program>), mesh)
                                                     ? check_tasks(GraphView(graph<Program>), mesh)
                                                     : ScheduleRefusal{};
template <class Program, Mesh mesh>
inline constexpr ScheduleRefusal refused_waits = checked_by_compiler(GraphView(graph<Program>), mesh) &&
                                                         !refused_tasks<Program, mesh>
                                                     ? check_waits(GraphView(graph<Program>), mesh)
                                                     : ScheduleRefusal{};
/// Whether the compiler refuses the schedule; asking is then the one error.
template <class Program, Mesh mesh>
constexpr bool refuses_schedule() {
  constexpr auto& refusal = refused_tasks<Program, mesh> ? refused_tasks<Program, mesh> : refused_waits<Program, mesh>;
  using ordered [[maybe_unused]] = typename RefusedSchedule<refusal.reason, refusal>::type;
  return static_cast<bool>(refusal);
}
/// Whether the compiler does not get through a pass. Asking is then the one error.
template <class Program, Mesh mesh>
constexpr bool refuses_size() {
  constexpr bool unrolls = has_rings(GraphView(graph<Program>));  // as large as the mesh
  if constexpr (!unrolls && building::applied<Program> < limits::asked_from)
    return false;
  else if constexpr (unrolls && !limits::Computable<&in_room<&unrolled_graph<Program, mesh>>>)
    return too_large<Program>();
  else if constexpr (!limits::Computable<&order_constant<Program, mesh>>)
    return too_large<Program>();
  else if constexpr (!limits::Computable<&assign_constant<Program, mesh>>)
    return too_large<Program>();
  else if constexpr (!limits::Computable<&pack_constant<Program, mesh>>)
    return too_large<Program>();
  else
    return false;
}
/// Where none is said.
inline constexpr Mesh no_mesh = Mesh().on_stage(-1);
template <class Program, Mesh mesh, class... Beside>
constexpr auto made() {
  if constexpr (mesh == no_mesh) {
    static_assert(sizeof...(Beside) > 99,
                  "parallel: a plan is of a program and a mesh, both in <>; write plan<Step, Mesh{data = 2}>, and "
                  "derive<Step>(mesh) where only the program's start knows the mesh");
    return RefusedPlan{};
  } else if constexpr (refused<Program>() || (refused<Beside>() || ...)) {
    return RefusedPlan{};
  } else {
    using accepted [[maybe_unused]] = checked<Judged<Program, mesh, Beside...>>;
    if constexpr (Judged<Program, mesh, Beside...>::value.refusal) {
      return RefusedPlan{};
    } else if constexpr (refuses_schedule<Program, mesh>()) {
      return RefusedPlan{};
    } else if constexpr (refuses_size<Program, mesh>()) {
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

/// The plan of a program on a mesh, as a constant: `static_assert` can ask it anything. `Beside`: other programs over
/// the same parameters, whose annotations may use axes that this one does not name.
template <class Program, Mesh mesh = constants::no_mesh, class... Beside>
inline constexpr auto plan =
    constants::made<Program, with_cut(GraphView(constants::graph<Program>), mesh), Beside...>();

}  // namespace parallel::internals

namespace parallel {
using internals::plan;
}  // namespace parallel
