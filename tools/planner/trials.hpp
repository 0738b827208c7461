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

/// The stages of ZeRO on each axis that splits an input; of several axes also the third on all of them.
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
    all.push_back({"states " + axis, "AllStored<..., Stored<" + axis + ", Zero::states>>"});
    all.push_back({"gradients " + axis, "AllStored<..., Stored<" + axis + ", Zero::gradients>>"});
    all.push_back({"parameters " + axis, "AllStored<..., Stored<" + axis + ">>"});
    together.words += (together.words.empty() ? "parameters " : ";parameters ") + axis;
    together.annotation += ", Stored<" + axis + ">";
  }
  if (axes.size() > 1) all.push_back({together.words, "AllStored<..." + together.annotation + ">"});
  return all;
}
/// Recomputation of layers, where there are any: each keeps less than the one before, and does more again.
inline std::vector<Trial> recomputation_trials(const Graph& graph) {
  for (const Region& r : graph.regions)
    if (r.kind == RegionKind::layers)
      return {{"recompute", "Layers<n, Block, Recompute<>>"},
              {"recompute collectives", "Layers<n, Block, Recompute<Repeat::collectives>>"}};
  return {};
}
/// Both, of which one may be nothing.
inline Trial both(const Trial& stored, const Trial& again) {
  if (stored.words.empty() || again.words.empty()) return stored.words.empty() ? again : stored;
  return {stored.words + ";" + again.words, stored.annotation + " and " + again.annotation};
}

/// Those of one kind, and the most that is stored with the least that is computed again.
inline std::vector<Trial> trials(const Graph& graph) {
  std::vector<Trial> all = stored_trials(graph);
  const std::vector<Trial> stored = all, again = recomputation_trials(graph);
  all.insert(all.end(), again.begin(), again.end());
  if (!stored.empty() && !again.empty()) all.push_back(both(stored.back(), again.front()));
  return all;
}

}  // namespace planner
