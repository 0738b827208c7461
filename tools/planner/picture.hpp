// How a tensor lies on a mesh, as text: a grid of ranks with the slice that each of them holds.
//
//   f32[12/data, 64] +tensor on data=2, tensor=2
//
//           tensor=0               tensor=1
//   data=0  0  /// [0:6, 0:64]     1  /// [0:6, 0:64]
//   data=1  2  /// [6:12, 0:64]    3  /// [6:12, 0:64]
//
//   /// a term: the value is the sum over tensor
#pragma once
#include <algorithm>

#include "held.hpp"

namespace planner {

inline constexpr int widest_grid = 4;  ///< ranks in one row; a longer last axis goes down, one rank in each row

inline std::string picture(const Type& type, const Pictured& mesh) {
  // One line per place on all axes but the last, one column per rank of the last, where these are few.
  const bool across = mesh.count > 0 && mesh.axes[mesh.count - 1].size <= widest_grid;
  const int columns = across ? mesh.axes[mesh.count - 1].size : 1, named = across ? mesh.count - 1 : mesh.count;
  const bool pending = on_any(type, PlacementKind::partial);
  bool everywhere = true;
  const auto place = [&](int axis, int rank) {
    return std::string(mesh.axes[axis].axis->text()) + "=" +
           std::to_string(mesh.coordinate(rank, mesh.axes[axis].axis));
  };
  std::vector<std::vector<std::string>> grid;
  if (across) {
    grid.push_back({""});
    for (int c = 0; c < columns; ++c) grid[0].push_back(place(mesh.count - 1, c));
  }
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    if (rank % columns == 0) {
      std::string label;
      for (int a = 0; a < named; ++a) label += (a > 0 ? ", " : "") + place(a, rank);
      grid.push_back({label});
    }
    everywhere = everywhere && holds(type, mesh, rank);
    const std::string held =
        holds(type, mesh, rank) ? (pending ? "/// " : "") + ranges(type, mesh, slice_of(type, mesh, rank)) : "-";
    grid.back().push_back(std::to_string(rank) + "  " + held);
  }

  std::vector<std::size_t> widths(static_cast<std::size_t>(columns) + 1, 0);
  for (const auto& row : grid)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string result = text(type) + " on " + text(mesh) + "\n\n";
  for (const auto& row : grid) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line += row[c] + std::string(widths[c] - row[c].size() + (c == 0 ? (widths[0] > 0 ? 2 : 0) : 4), ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  }
  std::string summed;
  for (const Placed& p : type.layout.others)
    if (p.placement.pending()) summed += (summed.empty() ? "" : " and ") + std::string(p.axis->text());
  if (pending) result += "\n/// a term: the value is the sum over " + summed + "\n";
  if (!everywhere) result += "\n-   nothing\n";
  return result;
}

}  // namespace planner
