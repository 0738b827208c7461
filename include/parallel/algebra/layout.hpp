// A tensor's shape together with its placement on every axis, as one plain value: what a tensor's type says.
#pragma once
#include <parallel/algebra/placement.hpp>
#include <parallel/algebra/shape.hpp>
#include <parallel/meta/list.hpp>

namespace parallel {

namespace internals {
constexpr Placement first_of(Placement first = {}, auto...) { return first; }
}  // namespace internals

/// `On<tensor, Partial>`: the placement on one axis, as part of a type.
template <const Axis& on, Placement... where>
struct On {
  static_assert(sizeof...(where) == 1,
                "parallel: an On says of one axis how the tensor lies on it; write On<tensor, Broadcast>, with "
                "Invariant, Partial, Split<d> or At<k>, and another On for another axis");
  static constexpr const Axis* axis = &on;
  static constexpr Placement placement = internals::first_of(where...);
};
/// The same, for an axis that is only known by its address.
template <const Axis* on, Placement where>
struct OnAxis {
  static constexpr const Axis* axis = on;
  static constexpr Placement placement = where;
};

/// A placement that splits no single dimension, on one axis.
struct Placed {
  const Axis* axis = nullptr;
  Placement placement{};
  constexpr bool operator==(const Placed&) const = default;
};

using AxisList = internals::List<const Axis*, internals::max_axes>;

struct Layout {
  internals::List<Dim, internals::max_rank> dims{};
  /// Broadcast, Partial, At, a flat split, OnHost; an axis that is neither here nor in a dimension is Invariant
  internals::List<Placed, internals::max_axes> others{};

  constexpr bool operator==(const Layout& other) const {
    if (!(dims == other.dims) || others.size() != other.others.size()) return false;
    for (const Placed& p : others)
      if (!other.others.contains(p)) return false;  // the order of annotations has no meaning
    return true;
  }
  constexpr int rank() const { return dims.size(); }
  constexpr bool has(int dim) const { return dim >= 0 && dim < rank(); }

  constexpr Placement on(const Axis* axis) const {
    for (int d = 0; d < rank(); ++d)
      if (dims[d].split_by(axis)) return parallel::internals::split(d);
    for (const Placed& p : others)
      if (p.axis == axis) return p.placement;
    return Invariant;
  }
  /// Every axis on which this is not Invariant.
  constexpr void collect(AxisList& axes) const {
    for (const Dim& d : dims)
      for (const Axis* a : d)
        if (!axes.contains(a)) axes.push_back(a);
    for (const Placed& p : others)
      if (!axes.contains(p.axis)) axes.push_back(p.axis);
  }
  /// The same tensor with another placement on one axis. A new split is the innermost of its dimension, which
  /// must exist: annotations with another one are refused where they are read.
  constexpr Layout with(const Axis* axis, Placement placement) const {
    Layout result = *this;
    for (Dim& d : result.dims)
      if (d.split_by(axis)) d = d.without(axis);
    for (int i = result.others.size() - 1; i >= 0; --i)
      if (result.others[i].axis == axis) result.others.erase(i);
    if (placement.split() && !placement.flat) {
      if (has(placement.dim)) result.dims[placement.dim] = result.dims[placement.dim] / *axis;
    } else if (!(placement == Invariant)) {
      result.others.push_back({axis, placement});
      Placed& last = result.others[result.others.size() - 1];
      // of flat splits the one whose axis has the last name is the outermost; of one dimension's the one that is first
      for (Placed& p : result.others)
        if (placement.flat && !placement.alone && p.placement.flat && p.axis->text() < last.axis->text()) {
          const Placed here = p;
          p = last;
          last = here;
        }
    }
    return result;
  }
  /// The same dimensions, Invariant everywhere.
  constexpr Layout unplaced() const {
    Layout result;
    for (const Dim& d : dims) result.dims.push_back(Dim(d.size));
    return result;
  }
  /// How many elements the full tensor has.
  constexpr std::int64_t elements() const {
    std::int64_t n = 1;
    for (const Dim& d : dims) n *= d.size;
    return n;
  }
};

namespace internals {
/// Whether what a rank has of a tensor lies in its host's memory.
constexpr bool on_host(const Layout& layout) {
  for (const Placed& p : layout.others)
    if (p.placement == OnHost) return true;
  return false;
}
/// The same parts, in the host's memory or the device's.
constexpr Layout on_host(const Layout& layout, bool host) {
  return layout.with(&axes::host, host ? OnHost : Invariant);
}
/// The same, with dimensions that stand as another's do.
constexpr Layout standing_as(Layout layout, const Layout& other) {
  for (int d = 0; d < layout.rank(); ++d) layout.dims[d] = layout.dims[d].standing_as(other.dims[d]);
  return layout;
}
/// Whether two tensors have the same full shape.
constexpr bool same_extents(const Layout& a, const Layout& b) {
  if (a.rank() != b.rank()) return false;
  for (int d = 0; d < a.rank(); ++d)
    if (a.dims[d].size != b.dims[d].size) return false;
  return true;
}
}  // namespace internals

/// The layout of the gradient of a value with this layout.
constexpr Layout conjugate(const Layout& layout) {
  Layout result = layout;
  for (Placed& p : result.others) p.placement = conjugate(p.placement);
  return result;
}

}  // namespace parallel
