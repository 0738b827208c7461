// Which rows of a batch a rank reads: what its plan gives it of an input.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <parallel/meta/failure.hpp>
#include <parallel/plan/plan.hpp>

namespace parallel::internals {

/// The rows of the whole input `input`, over all micro-batches, that `rank` has a part of: its first dimension is split
/// over some axes, and ranks that differ only on others read the same. A rank hands over the whole input and fills
/// these rows; nothing reads the others. Throws Failure (internal) where there is no such input, or rank.
inline std::vector<std::int64_t> rows_of(const Plan& plan, int input, int rank) {
  if (rank < 0 || rank >= plan.mesh.ranks())
    throw Failure("rows of rank " + std::to_string(rank) + " are asked for, but the mesh has " +
                      std::to_string(plan.mesh.ranks()) + ", counted from 0",
                  exit_code::internal);
  int position = 0;
  for (const Member& m : plan.graph.members) {
    if (m.role != Role::input || position++ != input) continue;
    const Layout& layout = m.type.layout;
    const int batch = m.layers > 1 ? 1 : 0;  // behind the micro-batches
    const std::int64_t all = batch == 1 ? layout.dims[0].size : 1;
    if (layout.rank() == batch) return std::vector<std::int64_t>(1, 0);  // a number for all
    const Dim& dim = layout.dims[batch];
    const std::int64_t first = offset(dim, plan.mesh, rank), count = local(dim, plan.mesh);
    const Standing stands = standing(dim, plan.mesh);
    std::vector<std::int64_t> rows;
    for (std::int64_t b = 0; b < all; ++b)
      for (std::int64_t r = 0; r < count; ++r) rows.push_back(b * dim.size + stands.element(first + r));
    return rows;
  }
  throw Failure("there is no input " + std::to_string(input) + "; the program has " + std::to_string(position),
                exit_code::internal);
}

}  // namespace parallel::internals

namespace parallel {
using internals::rows_of;
}  // namespace parallel
