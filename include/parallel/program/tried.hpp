// What tools/plan tries with a program: annotations that its source does not have, as if they stood there, and no
// budget. Compiled only with -DPARALLEL_TRIED, by the tool; a program is always what it says.
#pragma once
#include <string_view>

#include <parallel/graph/applications.hpp>
#include <parallel/graph/recomputation.hpp>
#include <parallel/graph/trace.hpp>
#include <parallel/meta/tried_words.hpp>
#include <parallel/operation/attention.hpp>

namespace parallel::internals::trying {

/// "states data", "gradients data", "parameters data": `AllStored<Program, Stored<data, Zero::states>>` and so on,
/// where an input is split on an axis of this name; "parameters host" everywhere. Not beside other words of the program
/// that they do not go with.
constexpr void store(Trace& trace, const Layout& input) {
  constexpr std::string_view stages[] = {"states ", "gradients ", "parameters "};
  const auto add = [&](const Axis* a, Placement placement) {
    for (int stage = 0; stage < 3; ++stage) {
      const StoredOn added{a, placement, static_cast<Zero>(stage + 1), Gathered::per_use, true};
      bool asked = has(stages[stage], a->text());
      for (const StoredOn& s : trace.stored) asked = asked && s.axis != a && s.alike(added.stage, added.gathered);
      if (asked) trace.stored.push_back(added);
    }
  };
  AxisList axes;
  input.collect(axes);
  for (const Axis* a : axes)
    if (input.on(a).split()) add(a, SplitFlat);
  add(&axes::host, OnHost);
}
/// "recompute", "recompute collectives", "recompute attention", "recompute 2 collectives": `Recompute<>`,
/// `Recompute<Repeat::collectives>`, `Recompute<&operation::attention>`, `Recompute<2, Repeat::collectives>` of layers
/// that have no such word. "keep on host": `KeepOnHost`.
constexpr void keep(Application& layers) {
  if (layers.recomputation == nullptr)
    layers.recomputation = has("recompute collectives")     ? &Recompute<Repeat::collectives>::value
                           : has("recompute 2 collectives") ? &Recompute<2, Repeat::collectives>::value
                           : has("recompute attention")     ? &Recompute<&operation::attention>::value
                           : has("recompute")               ? &Recompute<>::value
                                                            : nullptr;
  layers.keeps_on_host = layers.keeps_on_host || has("keep on host");
}

}  // namespace parallel::internals::trying
