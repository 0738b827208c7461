// Where the numbers in parameters come from: what ranks compare of them, none of which is read for it.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parallel/algebra/notation.hpp>
#include <parallel/communicator/agreement.hpp>
#include <parallel/plan/plan.hpp>

namespace parallel::internals {

/// Of the parameters of one rank: how they began, what was set since, which executors have trained them. Where ranks
/// have it alike they hold parts of the same parameters.
class Provenance {
 public:
  Provenance(const Plan& plan, std::uint64_t seed) : seed_(std::to_string(seed)) {
    agreeing::Text begun;
    for (const Member& m : plan.graph.members) {
      if (m.role != Role::parameter) continue;
      begun.name(plan.graph.path(m));
      begun.name(name_of(m.type.dtype));
      for (const Dim& d : m.type.layout.dims) begun.word(d.size);
      begun.word(static_cast<int>(m.initializer.kind));
      begun.number(m.initializer.scale);
      begun.end_of_line();
      ++members_;
    }
    initializers_ = begun.value();
  }

  /// A parameter was set, of which every rank holds the whole: ranks compare it.
  void set(std::string_view path, std::span<const std::byte> whole, const Source& at) {
    agreeing::Hash hash;
    hash.bytes(whole);
    note(path, hash.value(), at);
  }
  /// A parameter was set of which ranks hold parts: each may have been given its own.
  void set_part(std::string_view path) { note(path, 0, {}); }
  /// An executor of this number, alike on all ranks, begins a step that trains them.
  void train(std::int64_t executor, const Source& made_at) {
    trained_.word(executor);
    ++steps_;
    last_ = executor;
    made_at_ = made_at;
    set_since_ = 0;
  }

  /// Of the history: ranks compare it before each step.
  std::uint64_t hash() const {
    agreeing::Hash all = trained_;
    all.word(static_cast<std::int64_t>(hash_of_set_));
    return all.value();
  }
  /// How they began.
  std::vector<Fact> beginning() const {
    return {fact("seed of the parameters", seed_), fact("initializers of the parameters", initializers_)};
  }
  /// What happened to them since.
  std::vector<Fact> history() const {
    std::string set_at, trained = seed_ == all_set ? "none since all were set" : "none yet";
    for (const auto& [path, set] : set_) {
      if (set.hash == 0) continue;
      const std::string line = agreeing::text(set.at);
      set_at += path + (line.empty() ? "" : " at " + line) + ", behind " + std::to_string(set.behind) +
                " steps, hash " + std::to_string(set.hash) + "\n";
    }
    if (steps_ > 0) {
      const std::string made = agreeing::text(made_at_);
      trained = std::to_string(steps_) + " steps, the last by executor " + std::to_string(last_) +
                (made.empty() ? "" : ", made at " + made);
    }
    return {{"parameters that were set", hash_of_set_, [words = set_at.empty() ? "none" : set_at] { return words; }},
            {"training of the parameters", trained_.value(), [trained] { return trained; }}};
  }

 private:
  struct Set {
    std::uint64_t hash = 0;    ///< of the whole; 0: of a part
    std::int64_t behind = -1;  ///< so many steps
    Source at{};
  };
  void note(std::string_view path, std::uint64_t hash, const Source& at) {
    Set& now = set_[std::string(path)];
    if (now.behind != steps_) ++set_since_;
    now = {hash, steps_, at};
    if (set_since_ == members_) {  // of what was before nothing is left
      seed_ = initializers_ = all_set;
      trained_ = {};
      steps_ = 0;
      for (auto& [other, set] : set_) set.behind = 0;
    }
    agreeing::Hash all;
    for (const auto& [other, set] : set_)
      if (set.hash != 0) {
        all.name(other);
        all.word(static_cast<std::int64_t>(set.hash));
        all.word(set.behind);
      }
    hash_of_set_ = all.value();
  }

  static constexpr const char* all_set = "none: all were set";

  std::string seed_, initializers_{};
  int members_ = 0, set_since_ = 0;  // since the last step
  std::map<std::string, Set> set_{};
  std::uint64_t hash_of_set_ = agreeing::Hash().value();
  agreeing::Hash trained_{};  // the executors' numbers, step by step
  std::int64_t steps_ = 0, last_ = 0;
  Source made_at_{};
};

}  // namespace parallel::internals
