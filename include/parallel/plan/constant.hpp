// The differentiated graph of a program as a constant of the program.
#pragma once
#include <array>

#include <parallel/plan/program.hpp>
#include <parallel/plan/view.hpp>

namespace parallel {

namespace constants {
template <class T, int n, class Source>
constexpr std::array<T, static_cast<std::size_t>(n)> frozen(const Source& source) {
  std::array<T, static_cast<std::size_t>(n)> result{};
  T* to = result.data();
  const T* from = source.begin();  // few calls are few steps of the compiler
  for (int i = 0; i < n; ++i) to[i] = from[i];
  return result;
}

struct Sizes {
  int values, nodes, order, regions, carries, stacks, origins, members, scalars, characters, outputs;
};
/// A graph with exactly the room that it needs, so that it can be a constant.
template <Sizes n>
struct Graph {
  std::array<Value, static_cast<std::size_t>(n.values)> values;
  std::array<Node, static_cast<std::size_t>(n.nodes)> nodes;
  std::array<int, static_cast<std::size_t>(n.order)> order;
  std::array<Region, static_cast<std::size_t>(n.regions)> regions;
  std::array<Carry, static_cast<std::size_t>(n.carries)> carries;
  std::array<Stack, static_cast<std::size_t>(n.stacks)> stacks;
  std::array<Origin, static_cast<std::size_t>(n.origins)> origins;
  std::array<Member, static_cast<std::size_t>(n.members)> members;
  std::array<Name, static_cast<std::size_t>(n.scalars)> scalars;
  std::array<char, static_cast<std::size_t>(n.characters)> characters;
  int scalar_value;
  std::array<int, static_cast<std::size_t>(n.outputs)> outputs;
  int commit;
  int misused;
  const Axis* stages;
  const Schedule* schedule;
  bool balanced;
};
constexpr Sizes sizes_of(const parallel::Graph& g) {
  return {g.values.size(),  g.nodes.size(),   g.order.size(),   g.regions.size(),    g.carries.size(), g.stacks.size(),
          g.origins.size(), g.members.size(), g.scalars.size(), g.characters.size(), g.outputs.size()};
}
template <Sizes n>
constexpr Graph<n> frozen_graph(const parallel::Graph& g) {
  return {frozen<Value, n.values>(g.values),
          frozen<Node, n.nodes>(g.nodes),
          frozen<int, n.order>(g.order),
          frozen<Region, n.regions>(g.regions),
          frozen<Carry, n.carries>(g.carries),
          frozen<Stack, n.stacks>(g.stacks),
          frozen<Origin, n.origins>(g.origins),
          frozen<Member, n.members>(g.members),
          frozen<Name, n.scalars>(g.scalars),
          frozen<char, n.characters>(g.characters),
          g.scalar_value,
          frozen<int, n.outputs>(g.outputs),
          g.commit,
          g.misused,
          g.stages,
          g.schedule,
          g.balanced};
}
template <Sizes n>
constexpr GraphView view_of(const Graph<n>& g) {
  GraphView v;
  v.values = g.values;
  v.nodes = g.nodes;
  v.order = g.order;
  v.regions = g.regions;
  v.carries = g.carries;
  v.stacks = g.stacks;
  v.origins = g.origins;
  v.members = g.members;
  v.scalars = g.scalars;
  v.scalar_value = g.scalar_value;
  v.outputs = g.outputs;
  v.commit = g.commit;
  v.misused = g.misused;
  v.characters = {g.characters.data(), g.characters.size()};
  v.stages = g.stages;
  v.schedule = g.schedule;
  v.balanced = g.balanced;
  return v;
}

template <class T, class Source>
constexpr Vector<T> thawed(const Source& source) {
  Vector<T> result;
  const int n = static_cast<int>(source.size());
  T* to = result.extend(n);
  const T* from = source.data();
  for (int i = 0; i < n; ++i) to[i] = from[i];
  return result;
}
template <Sizes n>
constexpr parallel::Graph thawed_graph(const Graph<n>& g) {
  return {thawed<Value>(g.values),
          thawed<Node>(g.nodes),
          thawed<int>(g.order),
          thawed<Region>(g.regions),
          thawed<Carry>(g.carries),
          thawed<Stack>(g.stacks),
          thawed<Origin>(g.origins),
          thawed<Member>(g.members),
          thawed<Name>(g.scalars),
          thawed<char>(g.characters),
          g.scalar_value,
          thawed<int>(g.outputs),
          g.misused,
          g.stages,
          g.schedule,
          g.schedule != nullptr ? g.schedule->chunks : 1,
          g.balanced,
          false,
          g.commit};
}

template <class Program>
inline constexpr Sizes unfused_sizes = sizes_of(build_unfused<Program>());
template <class Program>
inline constexpr Graph<unfused_sizes<Program>> unfused = frozen_graph<unfused_sizes<Program>>(build_unfused<Program>());
template <class Program>
inline constexpr Sizes sizes = sizes_of(fuse(thawed_graph(unfused<Program>)));
/// The graph of a program, as it is planned, as a constant.
template <class Program>
inline constexpr Graph<sizes<Program>> graph = frozen_graph<sizes<Program>>(fuse(thawed_graph(unfused<Program>)));
}  // namespace constants

}  // namespace parallel
