// The moves that bring one layout to another, hop by hop, in the order of the rule: a value shrinks before it travels.
#pragma once
#include <parallel/algebra/transition.hpp>

namespace parallel::internals {

/// One move: on one axis, or on several where one all-reduce completes a sum over all of them.
struct Hop {
  AxisList axes{};
  Placement to{};
};

struct Route {
  List<Hop, 2 * max_axes> hops{};
  bool arrives = false;  ///< false: an axis would have to move out from under another, or a transition does not exist
};

namespace routing {
/// Whether of two layouts the first is split over the same axes, dimension by dimension, as the second.
constexpr bool splits_alike(const Layout& now, const Layout& to) {
  for (int d = 0; d < to.rank(); ++d) {
    for (const Axis* a : to.dims[d])
      if (!now.dims[d].split_by(a)) return false;
    for (const Axis* a : now.dims[d])
      if (!to.dims[d].split_by(a)) return false;
  }
  return true;
}
/// Axes that split one dimension come outermost first and go innermost first; those that split the flat view of what
/// all these leave come last and go first.
constexpr bool may_move(const Axis* axis, const Layout& now, const Layout& to) {
  if (to.on(axis).flat && !splits_alike(now, to)) return false;
  if (!(now.on(axis) == to.on(axis)) && !now.on(axis).flat && !to.on(axis).flat &&
      (now.on(axis).split() || to.on(axis).split()))
    for (const Placed& p : now.others)
      if (p.placement.flat) return false;
  if (now.on(axis).flat || to.on(axis).flat)
    for (const Placed& p : (now.on(axis).flat ? now : to).others)
      if (const bool within = p.axis->text() < axis->text(); p.placement.flat && p.axis != axis)
        if (now.on(axis).flat ? within && now.on(p.axis).flat : !within && !now.on(p.axis).flat) return false;
  for (const Dim& d : now.dims)
    if (d.split_by(axis) && !d.innermost(axis)) return false;
  for (int d = 0; d < to.rank(); ++d)
    for (const Axis* outer : to.dims[d]) {
      if (outer == axis || !to.dims[d].split_by(axis)) break;
      if (!now.dims[d].split_by(outer)) return false;
    }
  return true;
}
constexpr void sort_by_name(AxisList& axes) {
  for (int i = 1; i < axes.size(); ++i)
    for (int j = i; j > 0 && axes[j]->text() < axes[j - 1]->text(); --j) {
      const Axis* a = axes[j];
      axes[j] = axes[j - 1];
      axes[j - 1] = a;
    }
}
/// The axes of two layouts: those that split no dimension by name, then those that do, the last one first, in the order
/// in which the layouts name them.
constexpr AxisList last_first(const Layout& from, const Layout& to) {
  AxisList splitting, all, axes;
  for (Layout layout : {from, to}) {
    layout.others.count = 0;
    layout.collect(splitting);
  }
  from.collect(all);
  to.collect(all);
  sort_by_name(all);
  for (const Axis* a : all)
    if (!splitting.contains(a)) axes.push_back(a);
  for (int i = splitting.size() - 1; i >= 0; --i) axes.push_back(splitting[i]);
  return axes;
}
}  // namespace routing

/// The hops from one layout to another with the same dimensions; of two that split or gather that of the later axis
/// first.
constexpr Route route(const Layout& from, const Layout& to) {
  Route result;
  if (result.arrives = from == to; result.arrives) return result;
  AxisList completed, left;
  for (const Axis* a : routing::last_first(from, to)) {
    const Placement before = from.on(a), target = to.on(a);
    if (before == Partial && target == Invariant)
      completed.push_back(a);
    else if (!(before == target))
      left.push_back(a);
  }
  routing::sort_by_name(completed);
  Layout now = from;
  for (int order = 0; order <= 5; ++order) {
    if (order == 4 && !completed.empty()) {
      result.hops.push_back({completed, Invariant});
      for (const Axis* a : completed) now = now.with(a, Invariant);
    }
    for (bool moved = true; moved;) {  // one may let another move that stands before it
      moved = false;
      for (int i = 0; i < left.size();) {
        const Axis* a = left[i];
        const Placement target = to.on(a);
        const int own = known(collective(now.on(a), target)).order;
        // what splits a flat view waits for what splits more than it
        if (!(own == order || (own < order && target.flat)) || !routing::may_move(a, now, to)) {
          ++i;
          continue;
        }
        Hop hop;
        hop.axes.push_back(a);
        hop.to = target;
        result.hops.push_back(hop);
        now = now.with(a, target);
        left.erase(i);
        moved = true;
      }
    }
  }
  result.arrives = now == to;
  return result;
}

}  // namespace parallel::internals
