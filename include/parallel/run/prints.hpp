// Whether ranks that hold the same part of a member have the same in it.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/communicator.hpp>
#include <parallel/run/rank_memory.hpp>

namespace parallel::internals {

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

/// The prints of some members on all ranks. It has its room from the beginning: a step allocates nothing.
class Prints {
 public:
  /// Of the members of which `compared(member)` says so. The plan outlives this.
  template <class Compared>
  Prints(const Plan& plan, Compared compared) : g_(plan.graph), ranks_(static_cast<std::size_t>(plan.mesh.ranks())) {
    for (int m = 0; m < static_cast<int>(g_.members.size()); ++m)
      if (compared(g_.member(m))) members_.push_back(m);
    mine_.resize(members_.size());
    all_.resize(members_.size() * ranks_);
    of_member_.resize(ranks_);
  }
  const std::vector<int>& members() const { return members_; }

  /// Whether all is alike, by one exchange of 16 bytes for each member and rank, called by all ranks.
  template <Communicator World, class Device>
  bool alike(World& world, RankMemory<Device>& memory, const char* label) {
    if (members_.empty()) return true;
    for (std::size_t m = 0; m < members_.size(); ++m) mine_[m] = print_of(memory, members_[m], room_);
    world.aside({Collective::all_gather, mine_.data(), all_.data(),
                 static_cast<std::int64_t>(all_.size() * sizeof(Print)) / bytes_of(DType::i32), DType::i32, false, 0,
                 label});
    for (std::size_t m = 0; m < members_.size(); ++m)
      if (differs(m)) return false;
    return true;
  }
  /// What was not, in words: members, and who has what.
  std::string difference() const {
    std::string words;
    for (std::size_t m = 0; m < members_.size(); ++m)
      for (const auto& holders : agreeing::groups(ranks_, [&](std::size_t r) { return of(r, m).part; })) {
        const auto holder = [&](std::size_t i) { return static_cast<std::size_t>(holders[i]); };
        const auto same = agreeing::groups(holders.size(), [&](std::size_t i) { return of(holder(i), m).hash; });
        if (of(holder(0), m).part == 0 || same.size() == 1) continue;
        words += (words.empty() ? "" : "; ") + std::string(g_.path(members_[m])) + " of";
        for (std::size_t k = 0; k < same.size(); ++k) {
          std::vector<int> those;
          for (const int i : same[k]) those.push_back(holders[static_cast<std::size_t>(i)]);
          words += (k > 0 ? " and of " : " ") + agreeing::ranks(those);
        }
      }
    return words;
  }

 private:
  const Print& of(std::size_t rank, std::size_t member) const { return all_[rank * members_.size() + member]; }
  /// Whether holders of one part of a member have other numbers in it: they stand beside each other in order.
  bool differs(std::size_t member) {
    for (std::size_t r = 0; r < ranks_; ++r) of_member_[r] = of(r, member);
    std::sort(of_member_.begin(), of_member_.end(),
              [](const Print& a, const Print& b) { return a.part != b.part ? a.part < b.part : a.hash < b.hash; });
    return std::adjacent_find(of_member_.begin(), of_member_.end(), [](const Print& a, const Print& b) {
             return a.part == b.part && a.part != 0 && a.hash != b.hash;
           }) != of_member_.end();
  }

  const GraphView& g_;
  std::size_t ranks_;
  std::vector<int> members_{};
  std::vector<Print> mine_{}, all_{}, of_member_{};  // all_: one rank behind the other
  std::vector<std::byte> room_{};
};

}  // namespace parallel::internals
