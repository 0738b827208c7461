// What ranks say to each other beside their program: before step 0, before each step, at the end of the run.
#pragma once
#include <bit>
#include <cstdint>

#include <parallel/algebra/mesh.hpp>
#include <parallel/algebra/transition.hpp>
#include <parallel/plan/view.hpp>

namespace parallel::internals {

/// Exchanges of the host's memory over all ranks: as a rule each an all-reduce to the maximum of two f64, of a hash and
/// of its negative, which tells every rank whether all gave the same one.
struct Comparison {
  Mesh mesh{};
  int exchanges = 1;
  Collective collective = Collective::all_reduce;
  std::int64_t message = 16;  ///< bytes of one exchange

  constexpr std::int64_t calls() const { return mesh.ranks() > 1 ? exchanges : 0; }
  /// Bytes of the messages.
  constexpr std::int64_t messages() const { return message * calls(); }
  /// Bytes that a ring sends per rank.
  constexpr double sent() const {
    return parallel::internals::sent(collective, static_cast<double>(messages()), mesh.ranks());
  }
  /// All that have more than one rank.
  constexpr AxisList axes() const {
    AxisList all;
    for (int i = 0; i < mesh.count; ++i)
      if (mesh.axes[i].size > 1) all.push_back(mesh.axes[i].axis);
    return all;
  }
};

/// Whether several ranks take the same part of a member that is an input; of terms of a pending sum each has its own.
constexpr bool is_shared_input(const Member& m, const Mesh& mesh) {
  if (m.role != Role::input) return false;
  for (int i = 0; i < mesh.count; ++i) {
    const Placement p = m.type.layout.on(mesh.axes[i].axis);
    int holders = 0;
    for (int k = 0; k < mesh.axes[i].size; ++k) holders += holds(p, k, mesh.axes[i].size) ? 1 : 0;
    if (!p.split() && p != Partial && holders > 1) return true;
  }
  return false;
}

/// The section of a plan that is the same for every program, but for its inputs. Its calls are none of the program's:
/// `Plan::calls` and its like do not count them.
struct Agreement {
  /// plan, arithmetic, settings, parameters, then the executor's number: before its groups are made
  Comparison start{};
  Comparison counter{};  ///< which step of which executor with which scalars: before each step
  /// what ranks take of inputs of which several take the same part, a fingerprint of each: before some steps
  Comparison inputs{};
  Comparison end{};  ///< that all ranks have come to it: once in a run

  constexpr Agreement() : Agreement(GraphView{}, Mesh{}) {}
  constexpr Agreement(const GraphView& g, const Mesh& mesh)
      : start{mesh, 2}, counter{mesh}, inputs{mesh, 0}, end{mesh} {
    int shared = 0;
    for (const Member& m : g.members) shared += is_shared_input(m, mesh) ? 1 : 0;
    inputs = {mesh, shared > 0 ? 1 : 0, Collective::all_gather, std::int64_t{print_bytes} * shared * mesh.ranks()};
  }

  /// Of an input on a rank: which part it is, and a hash of what is in it.
  static constexpr int print_bytes = 16;
  /// Whether inputs are compared before a step, counted from 1: before 1, 2, 4, 8 and so on, so that ranks that part
  /// later are found, too, and the cost of a long run is none.
  static constexpr bool compares_inputs(std::int64_t step) {
    return std::has_single_bit(static_cast<std::uint64_t>(step));
  }
};

}  // namespace parallel::internals
