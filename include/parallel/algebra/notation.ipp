// The notation of a distributed tensor, compiled ahead.
#pragma once
#include <parallel/algebra/notation.hpp>

namespace parallel {

PARALLEL_INLINE std::string text(const Placement& p) {
  switch (p.kind) {
    case PlacementKind::split:
      return p.alone ? "SplitPadded" : p.flat ? "SplitFlat" : "Split<" + std::to_string(p.dim) + ">";
    case PlacementKind::broadcast: return "Broadcast";
    case PlacementKind::partial: return "Partial";
    case PlacementKind::invariant: return "Invariant";
    case PlacementKind::on_host: return "OnHost";
    case PlacementKind::at: break;
  }
  std::string list;
  for (int k = 0; k < 64; ++k)
    if ((p.coordinates >> k & 1) != 0) list += (list.empty() ? "" : ", ") + std::to_string(k == 63 ? -1 : k);
  return "At<" + list + ">";
}

PARALLEL_INLINE std::string text(const Type& type) {
  std::string result = std::string(name_of(type.dtype)) + "[";
  for (int d = 0; d < type.layout.rank(); ++d) {
    const Dim& dim = type.layout.dims[d];
    if (d > 0) result += ", ";
    result += std::to_string(dim.size);
    const std::string order = dim.order == Order::zigzag ? "zigzag(" : "cyclic(";
    if (dim.ordered() && !dim.split_by(dim.ordered_for)) ((result += " " + order) += dim.ordered_for->text()) += ")";
    for (const Axis* a : dim)
      if (a == dim.ordered_for)
        ((result += "/" + order) += a->text()) += ")";
      else
        (result += "/") += a->text();
  }
  result += "]";
  for (const Placed& p : type.layout.others) {
    const std::string axis(p.axis->text());
    if (p.placement == Partial)
      result += " +" + axis;
    else if (p.placement == Broadcast)
      result += " ~" + axis;
    else if (p.placement.flat)
      result += " /" + axis + (p.placement.alone ? "[0]" : "");
    else if (p.placement == internals::OnHost)
      result += " on " + axis;
    else
      result += " " + text(p.placement) + "@" + axis;
  }
  return result;
}

PARALLEL_INLINE std::string text(const Mesh& mesh) {
  if (mesh.count == 0) return "one rank";
  std::string result;
  for (int i = 0; i < mesh.count; ++i)
    result += (i > 0 ? ", " : "") + std::string(mesh.axes[i].axis->text()) + "=" + std::to_string(mesh.axes[i].size);
  return result;
}

PARALLEL_INLINE std::string text(const AxisList& axes) {
  std::string result;
  for (const Axis* a : axes) (result += result.empty() ? "" : "+") += a->text();
  return result;
}

}  // namespace parallel
