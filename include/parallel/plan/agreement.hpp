// What ranks say to each other beside their program: before step 0, before each step, at the end of the run.
#pragma once
#include <parallel/algebra/mesh.hpp>
#include <parallel/algebra/transition.hpp>

namespace parallel::internals {

/// Exchanges of the host's memory over all ranks, each an all-reduce to the maximum of two f64: as a rule of a hash and
/// of its negative, which tells every rank whether all gave the same one.
struct Comparison {
  Mesh mesh{};
  int exchanges = 1;

  constexpr std::int64_t calls() const { return mesh.ranks() > 1 ? exchanges : 0; }
  /// Bytes of the messages.
  constexpr std::int64_t messages() const { return 16 * calls(); }
  /// Bytes that a ring sends per rank.
  constexpr double sent() const {
    return parallel::internals::sent(Collective::all_reduce, static_cast<double>(messages()), mesh.ranks());
  }
  /// All that have more than one rank.
  constexpr AxisList axes() const {
    AxisList all;
    for (int i = 0; i < mesh.count; ++i)
      if (mesh.axes[i].size > 1) all.push_back(mesh.axes[i].axis);
    return all;
  }
};

/// The section of a plan that is the same for every program. Its calls are none of the program's: `Plan::calls` and its
/// like do not count them.
struct Agreement {
  /// plan, arithmetic, settings, parameters, then the executor's number: before its groups are made
  Comparison start{};
  Comparison counter{};  ///< which step of which executor with which scalars: before each step
  Comparison end{};      ///< that all ranks have come to it: once in a run

  constexpr explicit Agreement(const Mesh& mesh = {}) : start{mesh, 2}, counter{mesh}, end{mesh} {}
};

}  // namespace parallel::internals
