// Whether what several ranks hold alike is alike: parameters, optimizer state and inputs that an axis does not split.
#pragma once
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/communicator.hpp>
#include <parallel/run/plan_facts.hpp>
#include <parallel/run/rank_memory.hpp>

namespace parallel::internals {

namespace replicas {

/// Of a member on a rank: which part of it this is, and what it has.
struct Print {
  std::uint64_t part = 0;  ///< 0: nothing of it
  std::uint64_t hash = 0;
};

template <class Device>
Print print_of(RankMemory<Device>& memory, int member, std::vector<std::byte>& room) {
  const View part = memory.member(member);
  if (part.data == nullptr || part.elements() == 0) return {};
  agreeing::Hash where, what;
  const Plan& plan = memory.plan();
  const Layout& layout = plan.graph.members[static_cast<std::size_t>(member)].type.layout;
  for (const Dim& d : layout.dims) where.word(offset(d, plan.mesh, memory.rank()));
  where.word(local_part(layout, plan.mesh, memory.rank()).place);
  const View here = memory.on_host(part, room);
  what.bytes(
      {static_cast<const std::byte*>(here.data), static_cast<std::size_t>(here.elements() * bytes_of(here.dtype))});
  return {where.value() | 1, what.value()};
}

/// What of these members is not alike, in words; empty where all is. `all`: every rank's prints, one rank behind the
/// other.
inline std::string difference(const GraphView& g, const std::vector<int>& members, const std::vector<Print>& all,
                              int ranks) {
  std::string words;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const auto of = [&](std::size_t r) -> const Print& { return all[r * members.size() + m]; };
    for (const auto& holders :
         agreeing::groups(static_cast<std::size_t>(ranks), [&](std::size_t r) { return of(r).part; })) {
      const auto holder = [&](int i) { return static_cast<std::size_t>(holders[static_cast<std::size_t>(i)]); };
      const auto same =
          agreeing::groups(holders.size(), [&](std::size_t i) { return of(holder(static_cast<int>(i))).hash; });
      if (of(holder(0)).part == 0 || same.size() == 1) continue;
      words += (words.empty() ? "" : "; ") + std::string(g.path(members[m])) + " of";
      for (std::size_t k = 0; k < same.size(); ++k) {
        std::vector<int> those;
        for (const int i : same[k]) those.push_back(static_cast<int>(holder(i)));
        words += (k > 0 ? " and of " : " ") + agreeing::ranks(those);
      }
    }
  }
  return words;
}

/// The same of the members of which `compared(member)` says so, by an exchange. Called by all ranks.
template <Communicator World, class Device, class Compared>
std::string difference(World& world, RankMemory<Device>& memory, const char* label, Compared compared) {
  const GraphView& g = memory.plan().graph;
  std::vector<std::byte> room;
  std::vector<int> members;
  std::vector<Print> mine;
  for (int m = 0; m < static_cast<int>(g.members.size()); ++m) {
    if (!compared(g.member(m))) continue;
    members.push_back(m);
    mine.push_back(print_of(memory, m, room));
  }
  std::vector<char> bytes(mine.size() * sizeof(Print));
  std::memcpy(bytes.data(), mine.data(), bytes.size());
  const std::vector<char> gathered = agreeing::gathered(world, bytes, label);
  std::vector<Print> all(mine.size() * static_cast<std::size_t>(world.size()));
  std::memcpy(all.data(), gathered.data(), gathered.size());
  return difference(g, members, all, world.size());
}

/// Compares inputs between the ranks that were to be given the same part of them (plan/agreement.hpp). What it needs it
/// has from the beginning: a step allocates nothing.
class InputComparison {
 public:
  /// Of a plan that outlives this.
  explicit InputComparison(const Plan& plan) : plan_(plan) {
    static_assert(sizeof(Print) == Agreement::print_bytes);
    if (plan.agreement.inputs.calls() == 0) return;
    for (int m = 0; m < static_cast<int>(plan.graph.members.size()); ++m)
      if (plan.is_shared_input(plan.graph.member(m))) members_.push_back(m);
    const auto ranks = static_cast<std::size_t>(plan.mesh.ranks());
    mine_.resize(members_.size());
    all_.resize(members_.size() * ranks);
    of_member_.resize(ranks);
  }

  /// Called by all ranks where a step begins. Throws Mismatch (exit code 76) on every rank, with the inputs, the axes on
  /// which they are to be alike, and who has what.
  template <Communicator World, class Device>
  void compare(World& world, RankMemory<Device>& memory, std::int64_t step) {
    if (members_.empty()) return;
    for (std::size_t m = 0; m < members_.size(); ++m) mine_[m] = print_of(memory, members_[m], room_);
    world.aside({Collective::all_gather, mine_.data(), all_.data(),
                 static_cast<std::int64_t>(all_.size() * sizeof(Print)) / bytes_of(DType::i32), DType::i32, false, 0,
                 "fingerprints of inputs"});
    if (alike()) return;
    const GraphView& g = plan_.graph;
    std::string axes;
    const std::string words = difference(g, members_, all_, world.size());
    for (const int m : members_)
      for (int i = 0; i < plan_.mesh.count; ++i)
        if (const Extent& e = plan_.mesh.axes[i];
            e.size > 1 && !g.member(m).type.layout.on(e.axis).split() && words.find(g.path(m)) != std::string::npos)
          axes += (axes.empty() ? "; alike are to be " : ", ") + std::string(g.path(m)) + " on " +
                  std::string(e.axis->text());
    throw Mismatch("before step " + std::to_string(step) +
                       " ranks that take the same part of an input were given other numbers: " + words + axes +
                       "; draw, or seed what draws, alike on all ranks, each of which takes its part of the whole",
                   world.size());
  }

 private:
  bool alike() {
    for (std::size_t m = 0; m < members_.size(); ++m) {
      for (std::size_t r = 0; r < of_member_.size(); ++r) of_member_[r] = all_[r * members_.size() + m];
      std::sort(of_member_.begin(), of_member_.end(),
                [](const Print& a, const Print& b) { return a.part != b.part ? a.part < b.part : a.hash < b.hash; });
      const auto differ = [](const Print& a, const Print& b) {
        return a.part == b.part && a.part != 0 && a.hash != b.hash;
      };
      if (std::adjacent_find(of_member_.begin(), of_member_.end(), differ) != of_member_.end()) return false;
    }
    return true;
  }

  const Plan& plan_;
  std::vector<int> members_{};
  std::vector<Print> mine_{}, all_{}, of_member_{};
  std::vector<std::byte> room_{};
};

}  // namespace replicas

/// Compares parameters and state between the ranks that hold the same part of them, by one exchange of 16 bytes for
/// each member and rank; reads all of the rank's members. Called by all ranks of `world`. Throws Mismatch (exit code
/// 76) on every rank, with the members that differ and who has what: a bit that flipped in one, a sum that another
/// library made.
template <Communicator World, class Device>
void compare_replicas(World& world, RankMemory<Device>& memory, Here here = {}) {
  const GraphView& g = memory.plan().graph;
  if (world.size() == 1 || g.members.empty()) return;
  agree(world, {fact_of(memory.plan())}, "a comparison of replicas", here);
  if (const std::string words = replicas::difference(world, memory, "fingerprints of parameters",
                                                     [](const Member& m) { return m.role != Role::input; });
      !words.empty())
    throw Mismatch(
        "parallel::compare_replicas: ranks that hold the same part of a tensor have other numbers in it: " + words +
            "; memory was damaged, or ranks set or computed them differently: go on from what was saved before",
        world.size());
}

}  // namespace parallel::internals

namespace parallel {
using internals::compare_replicas;
}  // namespace parallel
