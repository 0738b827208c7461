// Annotations that a source does not have and that are tried with it, by compiling it as if they stood there.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include <parallel/plan/derive.hpp>

namespace planner {

using namespace parallel;
using namespace parallel::internals;

/// As the library is told (program/tried.hpp), and as one would write it.
struct Trial {
  std::string words{}, annotation{};
};

/// The stages of ZeRO on an axis.
inline std::vector<Trial> stages_of_zero(const std::string& axis) {
  return {{"states " + axis, "AllStored<..., Stored<" + axis + ", Zero::states>>"},
          {"gradients " + axis, "AllStored<..., Stored<" + axis + ", Zero::gradients>>"},
          {"parameters " + axis, "AllStored<..., Stored<" + axis + ">>"}};
}
/// On each axis that splits an input; of several axes also the third stage on all of them.
inline std::vector<Trial> stored_trials(const Graph& graph) {
  std::vector<std::string> axes;
  for (const Member& m : graph.members)
    if (m.role == Role::input)
      for (const Dim& d : m.type.layout.dims)
        for (const Axis* a : d)
          if (a != graph.stages && std::find(axes.begin(), axes.end(), a->text()) == axes.end())
            axes.emplace_back(a->text());
  std::vector<Trial> all;
  Trial together;
  for (const std::string& axis : axes) {
    const std::vector<Trial> stages = stages_of_zero(axis);
    all.insert(all.end(), stages.begin(), stages.end());
    together.words += (together.words.empty() ? "parameters " : ";parameters ") + axis;
    together.annotation += ", Stored<" + axis + ">";
  }
  if (axes.size() > 1) all.push_back({together.words, "AllStored<..." + together.annotation + ">"});
  return all;
}
inline bool has_layers(const Graph& graph) {
  return std::any_of(graph.regions.begin(), graph.regions.end(),
                     [](const Region& r) { return r.kind == RegionKind::layers; });
}
/// Recomputation of layers, where there are any: each keeps less than the one before, and does more again.
inline std::vector<Trial> recomputation_trials(const Graph& graph) {
  if (!has_layers(graph)) return {};
  return {{"recompute", "Layers<n, Block, Recompute<>>"},
          {"recompute collectives", "Layers<n, Block, Recompute<Repeat::collectives>>"}};
}
/// Recomputation of attention only, where there is any, and of two layers from the first one's input, where layers are
/// an even number: by what --advise leaves out.
inline std::vector<Trial> other_recomputation_trials(const Graph& graph) {
  std::vector<Trial> all;
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) {
        return n.operation->name == operation::attention.name || n.operation->name == operation::ring_attention.name;
      }))
    all.push_back({"recompute attention", "Layers<n, Block, Recompute<&operation::attention>>"});
  if (std::all_of(graph.regions.begin(), graph.regions.end(),
                  [](const Region& r) { return r.kind != RegionKind::layers || r.count % 2 == 0; }))
    all.push_back({"recompute 2 collectives", "Layers<n, Block, Recompute<2, Repeat::collectives>>"});
  return all;
}
/// What is stored, on the host too, by the same stage; all parameters where nothing is stored.
inline Trial on_host_too(const Trial& stored) {
  if (stored.words.empty()) return stages_of_zero("host").back();
  const std::string stage = stored.words.substr(0, stored.words.find(' '));
  return {stored.words + ";" + stage + " host", stored.annotation.substr(0, stored.annotation.size() - 1) +
                                                    ", Stored<host" +
                                                    (stage == "parameters" ? "" : ", Zero::" + stage) + ">>"};
}
/// Both, of which one may be nothing.
inline Trial both(const Trial& one, const Trial& other) {
  if (one.words.empty() || other.words.empty()) return one.words.empty() ? other : one;
  return {one.words + ";" + other.words, one.annotation + " and " + other.annotation};
}
/// How attention finds keys of other ranks, where a program says it.
inline std::vector<Trial> context_trials(const Graph& graph) {
  const auto attends = [&](const Node& n) {
    const bool ring = n.operation->name == operation::ring_attention.name;
    return ring || n.operation->name == operation::attention.name;
  };
  const auto around = [&](const Node& n) {  // queries are of a part of the sequence, or were
    const Value& q = graph.values[static_cast<std::size_t>(n.operands[0])];
    if (q.type.layout.rank() > 1 && q.type.layout.dims[1].count > 0) return true;
    return q.node >= 0 && graph.nodes[static_cast<std::size_t>(q.node)].transition.collective == Collective::all_to_all;
  };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return attends(n) && around(n); }))
    return {};
  std::vector<Trial> all;
  for (const std::string how : {"gathered", "ring", "ulysses"}) all.push_back({"context " + how, "Context::" + how});
  return all;
}
/// What is tried beside a stored program where it does not fit, and makes no step shorter, the cheapest first. `host`:
/// the machine's devices are beside one.
inline std::vector<Trial> smaller(const Graph& graph, const Trial& stored, bool host) {
  std::vector<Trial> all;
  for (const Trial& again : recomputation_trials(graph)) all.push_back(both(stored, again));
  if (host) all.push_back(on_host_too(stored));
  if (host && has_layers(graph))
    all.push_back(both(on_host_too(stored), {"recompute;keep on host", "Layers<n, Block, Recompute<>, KeepOnHost>"}));
  return all;
}

/// Those of one kind, and what needs least of each.
inline std::vector<Trial> trials(const Graph& graph, bool host) {
  std::vector<Trial> all = stored_trials(graph);
  const Trial most = all.empty() ? Trial{} : all.back();
  const std::vector<Trial> with_most = smaller(graph, most, host);
  if (host) {
    const std::vector<Trial> stages = stages_of_zero("host");
    all.insert(all.end(), stages.begin(), stages.end());
  }
  const std::vector<Trial> again = recomputation_trials(graph);
  all.insert(all.end(), again.begin(), again.end());
  if (has_layers(graph)) {
    const std::vector<Trial> others = other_recomputation_trials(graph);
    all.insert(all.end(), others.begin(), others.end());
  }
  if (host && has_layers(graph)) all.push_back({"keep on host", "Layers<n, Block, KeepOnHost>"});
  all.insert(all.end(), with_most.begin(), with_most.end());
  return all;
}

}  // namespace planner
