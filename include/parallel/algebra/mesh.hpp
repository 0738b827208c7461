// The ranks of a job as a grid of named axes. A mesh is a value: a template argument or what the command line says.
#pragma once
#include <parallel/algebra/type.hpp>

namespace parallel {

/// What a stage has of layers that are not cut evenly: so many, behind those of the stages before it.
struct Cut {
  const Axis* axis = nullptr;  ///< none: cut evenly
  int layers = 0, before = 0;
  constexpr bool operator==(const Cut&) const = default;
};

/// `Mesh{data = 2, tensor = 4}`: eight ranks, the last axis varying fastest.
struct Mesh {
  Extent axes[internals::max_axes]{};
  int count = 0;
  int here = 0;  ///< from where a plan is seen: the coordinate on the axis of staged layers
  Cut cut{};     ///< and what is there of layers that are balanced by cost

  constexpr Mesh() = default;
  template <class... More>
  constexpr Mesh(Extent first, More... more) : axes{first, more...}, count(1 + static_cast<int>(sizeof...(more))) {}
  template <class First, class... More>
  requires(std::is_arithmetic_v<First> || std::is_pointer_v<First> ||
           std::is_same_v<First, Axis>) constexpr explicit Mesh(First, More...) {
    static_assert(sizeof(First) > 99,
                  "parallel: a mesh has axes, each with its ranks; write Mesh{data = 2, tensor = 4}");
  }
  /// `Mesh{{data, 2}}`: refused.
  struct Apart {
    template <class Name>
    requires(!std::is_convertible_v<Name, const Axis*>) constexpr Apart(Name, int) {
      static_assert(sizeof(Name) == 0,
                    "parallel: a mesh has axes, each with its ranks; write Mesh{data = 2, tensor = 4}");
    }
  };
  constexpr explicit Mesh(Apart) {}
  constexpr Mesh(Apart, Apart) {}
  constexpr Mesh(Apart, Apart, Apart) {}
  constexpr Mesh(Apart, Apart, Apart, Apart) {}
  // nvcc builds template arguments from their members in order
  constexpr Mesh(const Extent (&a)[internals::max_axes], int n, int seen_from = 0, const Cut& share = {})
      : count(n), here(seen_from), cut(share) {
    for (int i = 0; i < internals::max_axes; ++i) axes[i] = a[i];
  }
  constexpr bool operator==(const Mesh&) const = default;

  /// The same mesh as a stage of a pipeline sees it: `plan<Step, Mesh{stage = 4}.on_stage(2)>`.
  constexpr Mesh on_stage(int coordinate) const {
    Mesh other = *this;
    other.here = coordinate;
    other.cut = {};
    return other;
  }

  constexpr bool has(const Axis* axis) const {
    for (int i = 0; i < count; ++i)
      if (axes[i].axis == axis) return true;
    return false;
  }
  constexpr int extent(const Axis* axis) const {
    for (int i = 0; i < count; ++i)
      if (axes[i].axis == axis) return axes[i].size;
    return 1;
  }
  constexpr int ranks() const {
    int n = 1;
    for (int i = 0; i < count; ++i) n *= axes[i].size;
    return n;
  }
  /// The coordinate of a rank on an axis; 0 on an axis that the mesh lacks.
  constexpr int coordinate(int rank, const Axis* axis) const {
    for (int i = count - 1; i >= 0; --i) {
      if (axes[i].axis == axis) return rank % axes[i].size;
      rank /= axes[i].size;
    }
    return 0;
  }
  /// How many ranks lie on a set of axes together.
  constexpr int extent(const AxisList& set) const {
    int n = 1;
    for (const Axis* a : set) n *= extent(a);
    return n;
  }
  /// The rank's place within its group on a set of axes, the last axis of the mesh varying fastest.
  constexpr int coordinate(int rank, const AxisList& set) const {
    int place = 0;
    for (int i = 0; i < count; ++i)
      if (set.contains(axes[i].axis)) place = place * axes[i].size + coordinate(rank, axes[i].axis);
    return place;
  }
};

namespace internals {
/// How many slices a dimension is cut into.
constexpr std::int64_t degree(const Dim& dim, const Mesh& mesh) {
  std::int64_t n = 1;
  for (const Axis* a : dim) n *= mesh.extent(a);
  return n;
}
/// How many slices of a dimension must be of one extent: those into which it is cut, and for its order as many as its
/// axis has ranks, in zigzag twice as many.
constexpr std::int64_t slices(const Dim& dim, const Mesh& mesh) {
  const std::int64_t n = degree(dim, mesh);
  std::int64_t ordered = dim.ordered() ? mesh.extent(dim.ordered_for) : 1;
  if (dim.order == Order::zigzag && ordered > 1) ordered *= 2;
  std::int64_t all = n;
  while (all % ordered != 0) all += n;
  return all;
}
/// The extent of a rank's slice. The mesh has been checked to divide the dimension.
constexpr std::int64_t local(const Dim& dim, const Mesh& mesh) {
  return mesh.cut.axis != nullptr && dim.split_by(mesh.cut.axis) ? mesh.cut.layers : dim.size / degree(dim, mesh);
}

/// Where the rank's slice begins.
constexpr std::int64_t offset(const Dim& dim, const Mesh& mesh, int rank) {
  if (mesh.cut.axis != nullptr && dim.split_by(mesh.cut.axis)) return mesh.cut.before;
  std::int64_t slice = 0;
  for (const Axis* a : dim) slice = slice * mesh.extent(a) + mesh.coordinate(rank, a);
  return slice * local(dim, mesh);
}

/// How the elements of a dimension stand on a mesh: for one rank as they are counted.
constexpr Standing standing(const Dim& dim, const Mesh& mesh) {
  const int ranks = dim.ordered() ? mesh.extent(dim.ordered_for) : 1;
  return {ranks > 1 ? dim.order : Order::contiguous, dim.size, ranks};
}

/// What a rank holds of a tensor, as it lies: the extents of its part, of which the last is its share of the flat view
/// where the tensor is split so.
struct LocalPart {
  List<std::int64_t, max_rank> size{};
  /// behind the dimensions that are whole or split one by one: the first of the flat view, and its elements; -1: none
  int flat_from = -1;
  std::int64_t flat = 0;
  std::int64_t each = 1;    ///< elements of a slice, where the view is of one dimension's slices
  std::int64_t before = 0;  ///< where in the flat view the share of `rank` begins
  std::int64_t own = 0;     ///< elements of it that are no padding
  std::int64_t place = 0;   ///< which of the shares this is
};
constexpr LocalPart local_part(const Layout& layout, const Mesh& mesh, int rank = 0) {
  LocalPart part;
  int behind = layout.rank();
  for (const Placed& p : layout.others)
    if (p.placement.flat) {
      part.flat_from = p.placement.dim;
      if (p.placement.alone) behind = p.placement.dim + 1;
    }
  const int dims = part.flat_from < 0 ? layout.rank() : part.flat_from;
  for (int d = 0; d < dims; ++d) part.size.push_back(local(layout.dims[d], mesh));
  if (part.flat_from < 0) return part;
  part.flat = 1;
  for (int d = dims; d < behind; ++d) part.flat *= local(layout.dims[d], mesh);
  std::int64_t share = part.own = part.flat;
  for (const Placed& p : layout.others)  // each axis splits what those before it leave
    if (p.placement.flat) {
      share = (share + mesh.extent(p.axis) - 1) / mesh.extent(p.axis);
      const std::int64_t begin = mesh.coordinate(rank, p.axis) * share, left = part.own - begin;
      part.before += begin;
      part.place = part.place * mesh.extent(p.axis) + mesh.coordinate(rank, p.axis);
      part.own = left < 0 ? 0 : left < share ? left : share;
    }
  part.size.push_back(share);
  for (int d = behind; d < layout.rank(); ++d) {
    part.size.push_back(local(layout.dims[d], mesh));
    part.each *= local(layout.dims[d], mesh);
  }
  return part;
}

/// Elements that each rank holds.
constexpr std::int64_t local_elements(const Layout& layout, const Mesh& mesh) {
  std::int64_t n = 1;
  for (const Placed& p : layout.others)
    if (p.placement.flat) {
      for (const std::int64_t size : local_part(layout, mesh).size) n *= size;
      return n;
    }
  for (const Dim& d : layout.dims) n *= local(d, mesh);
  return n;
}
constexpr std::int64_t local_bytes(const Type& type, const Mesh& mesh) {
  return bytes_of(type.dtype) * local_elements(type.layout, mesh);
}
/// A layout as if all ranks had what is At some.
constexpr Layout at_all(Layout layout) {
  AxisList axes;
  layout.collect(axes);
  for (const Axis* a : axes)
    if (layout.on(a).kind == PlacementKind::at) layout = layout.with(a, Invariant);
  return layout;
}
/// Whether a rank holds anything of what lies so; of what is At some ranks the others do not. `but`: an axis that is
/// not looked at.
constexpr bool holds(const Layout& layout, const Mesh& mesh, int rank, const Axis* but = nullptr) {
  for (const Placed& p : layout.others)
    if (p.axis != but && !holds(p.placement, mesh.coordinate(rank, p.axis), mesh.extent(p.axis))) return false;
  return true;
}
}  // namespace internals

}  // namespace parallel
