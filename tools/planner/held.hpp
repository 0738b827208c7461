// Which slice of a tensor each rank of a mesh holds: what every picture of a tensor draws.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <parallel/algebra/notation.hpp>

namespace planner {

using namespace parallel;
using namespace parallel::internals;

/// The ranks that a picture shows. Layers of a pipeline may be cut otherwise than into equal slices: in chunks, or by
/// cost.
struct Pictured : Mesh {
  const Axis* stages = nullptr;
  std::vector<std::string> layers{};  ///< of each stage: "0:2", "0:1 and 4:5"
  Pictured(const Mesh& mesh) : Mesh(mesh) {}
  bool cuts(const Dim& dim) const { return !layers.empty() && dim.split_by(stages); }
};

/// The slice's place in every dimension.
using HeldSlice = std::vector<std::int64_t>;

/// Whether the rank holds anything of it: At leaves the other coordinates empty.
inline bool holds(const Type& type, const Mesh& mesh, int rank) {
  for (const Placed& p : type.layout.others)
    if (!parallel::internals::holds(p.placement, mesh.coordinate(rank, p.axis), mesh.extent(p.axis))) return false;
  return true;
}
inline bool on_any(const Type& type, PlacementKind kind) {
  for (const Placed& p : type.layout.others)
    if (p.placement.kind == kind) return true;
  return false;
}

inline HeldSlice slice_of(const Type& type, const Pictured& mesh, int rank) {
  HeldSlice slice;
  for (const Dim& d : type.layout.dims)
    slice.push_back(mesh.cuts(d) ? mesh.coordinate(rank, mesh.stages) : offset(d, mesh, rank) / local(d, mesh));
  return slice;
}
/// The ranks that hold each slice.
inline std::map<HeldSlice, std::vector<int>> holders(const Type& type, const Pictured& mesh) {
  std::map<HeldSlice, std::vector<int>> result;
  for (int rank = 0; rank < mesh.ranks(); ++rank)
    if (holds(type, mesh, rank)) result[slice_of(type, mesh, rank)].push_back(rank);
  return result;
}

/// The second slice of 512/tensor on two ranks: "256:512". Of 512/zigzag(tensor) the first: "0:128 and 384:512"; of
/// 512/cyclic(tensor), every other from the first on: "0:511:2".
inline std::string range(const Dim& dim, const Pictured& mesh, std::int64_t slice) {
  if (mesh.cuts(dim)) return mesh.layers[static_cast<std::size_t>(slice)];
  const std::int64_t n = local(dim, mesh), begin = slice * n;
  const Standing stands = standing(dim, mesh);
  if (dim.count == 0 || stands.ranks == 1) return std::to_string(begin) + ":" + std::to_string(begin + n);
  if (stands.order == Order::cyclic)
    return std::to_string(stands.element(begin)) + ":" + std::to_string(stands.element(begin + n - 1) + 1) + ":" +
           std::to_string(stands.ranks);
  std::string runs;
  for (std::int64_t place = begin, length = 0; place < begin + n; place += length) {
    length = std::min(stands.run(place), begin + n - place);
    const std::int64_t first = stands.element(place);
    runs += (runs.empty() ? "" : " and ") + std::to_string(first) + ":" + std::to_string(first + length);
  }
  return runs;
}
/// "[0:6, 256:512]"
inline std::string ranges(const Type& type, const Pictured& mesh, const HeldSlice& slice) {
  std::string result = "[";
  for (int d = 0; d < type.layout.rank(); ++d)
    result += (d > 0 ? ", " : "") + range(type.layout.dims[d], mesh, slice[static_cast<std::size_t>(d)]);
  return result + "]";
}

}  // namespace planner
