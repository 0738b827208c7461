// The differentiated graph of a program as a constant of the program.
#pragma once
#include <array>

#include <parallel/algebra/refusal.hpp>
#include <parallel/plan/view.hpp>
#include <parallel/program/limits.hpp>
#include <parallel/program/program.hpp>

namespace parallel::internals {

namespace constants {
template <class T, int n, class Source>
constexpr std::array<T, static_cast<std::size_t>(n)> frozen(const Source& source) {
  std::array<T, static_cast<std::size_t>(n)> result{};
  T* to = result.data();
  const T* from = source.begin();  // few calls are few steps of the compiler
  for (int i = 0; i < n; ++i) to[i] = from[i];
  return result;
}

/// How long each list of a graph is.
using Sizes = std::array<int, static_cast<std::size_t>(meta::member_count<GraphLists<InVectors>>())>;
constexpr Sizes sizes_of(const parallel::internals::Graph& g) {
  Sizes n{};
  int* size = n.data();
  each_list([&](const auto& list) { *size++ = list.size(); }, g);
  return n;
}
constexpr bool fit(const Sizes& sizes, const Sizes& room) {
  bool all = true;
  for (std::size_t i = 0; i < sizes.size(); ++i) all = all && sizes[i] <= room[i];
  return all;
}
template <Sizes n>
struct InArrays {
  template <class Record, int i>
  using Items = std::array<Record, static_cast<std::size_t>(n[i])>;
};
/// A graph with exactly the room that it needs, so that it can be a constant.
template <Sizes n>
struct Graph : GraphBase, GraphLists<InArrays<n>::template Items> {};
/// What begins as a copy of this takes no step of the compiler for each of its records' members.
template <Sizes n>
inline constexpr Graph<n> empty{};
/// Copies a graph to where each list has its size, or only as much of one as fits there.
template <Sizes n, class From>
constexpr Graph<n> frozen_graph(const From& from) {
  Graph<n> to = empty<n>;
  static_cast<GraphBase&>(to) = from;
  each_list(
      [](auto& t, const auto& f) {
        const int room = static_cast<int>(t.size()), there = static_cast<int>(f.size()),
                  count = room < there ? room : there;
        auto* write = t.data();
        auto* read = f.data();
        for (int i = 0; i < count; ++i) write[i] = read[i];
      },
      to, from);
  return to;
}
template <Sizes n>
constexpr parallel::internals::Graph thawed_graph(const Graph<n>& from) {
  parallel::internals::Graph to;
  static_cast<GraphBase&>(to) = from;
  each_list(
      [](auto& t, const auto& f) {
        const int count = static_cast<int>(f.size());
        auto* write = t.extend(count);
        auto* read = f.data();
        for (int i = 0; i < count; ++i) write[i] = read[i];
      },
      to, from);
  return to;
}

/// More room than most graphs need.
inline constexpr Sizes ample{1024, 1024, 1024, 16, 64, 128, 256, 128, 16, 4096, 128};  // in the order of GraphLists
struct Roomy {
  Sizes sizes{};
  Graph<ample> graph{};
};
template <auto make>
constexpr Roomy in_room() {
  const parallel::internals::Graph g = make();
  return {sizes_of(g), frozen_graph<ample>(g)};
}
/// The graph that `make` returns as a constant of just its size. It is made once, in ample room, and copied when its
/// size is known; only one that is larger is made again.
template <auto make>
struct Made {
  static constexpr Roomy roomy = in_room<make>();
  static constexpr Sizes sizes = roomy.sizes;
  static constexpr Graph<sizes> graph() {
    if constexpr (fit(sizes, ample))
      return frozen_graph<sizes>(roomy.graph);
    else
      return frozen_graph<sizes>(make());
  }
};

/// Refuses a program for its size, by its number of operations.
template <class Program>
constexpr bool too_large() {
  using computed [[maybe_unused]] = typename Refused<Reason::too_large, nullptr, building::applied<Program>>::type;
  return true;
}
/// Whether a program has no graph: its types refuse it, or the compiler does not get through it. Asking is then the one
/// error.
template <class Program>
constexpr bool refused() {
  if constexpr (building::refused<Program>())
    return true;
  else if constexpr (building::applied<Program> < limits::asked_from)
    return false;
  else if constexpr (limits::Computable<&in_room<&build_unfused<Program>>>)
    return false;
  else
    return too_large<Program>();
}
constexpr parallel::internals::Graph nothing() { return {}; }

template <class Program>
inline constexpr auto unfused = Made<refused<Program>() ? &nothing : &build_unfused<Program>>::graph();
template <class Program>
constexpr parallel::internals::Graph fused() {
  return fuse(thawed_graph(unfused<Program>));
}
template <class Program>
inline constexpr Sizes sizes = Made<&fused<Program>>::sizes;
/// The graph of a program, as it is planned, as a constant.
template <class Program>
inline constexpr Graph<sizes<Program>> graph = Made<&fused<Program>>::graph();
}  // namespace constants

}  // namespace parallel::internals
