// Where the numbers in parameters come from: what ranks compare of them, none of which is read for it.
#pragma once
#include <algorithm>
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

/// Tensors that were set whole, by name: what was given, and behind which step. Where ranks hold parts of one, each may
/// have been given its own, but all have been given one.
class SetWhole {
 public:
  /// The hash of what ranks hold in parts.
  static constexpr std::uint64_t in_parts = 1;

  /// `hash`: of the whole, which every rank holds; 0: a stage of a pipeline alone holds it. Whether it is the first
  /// time behind this step.
  bool note(std::string_view path, std::uint64_t hash, std::int64_t behind, const Source& at) {
    One& now = all_[std::string(path)];
    const bool first = now.behind != behind;
    now = {hash, behind, at};
    return first;
  }
  /// As if no step had been.
  void begin_again() {
    for (auto& [path, one] : all_) one.behind = 0;
  }
  std::uint64_t hash() const {
    agreeing::Hash all;
    for (const auto& [path, one] : all_)
      if (one.hash != 0) {
        all.name(path);
        all.word(static_cast<std::int64_t>(one.hash));
        all.word(one.behind);
      }
    return all.value();
  }
  /// What ranks compare, and what they say where it is not alike.
  Fact fact(const char* what) const {
    std::string words;
    for (const auto& [path, one] : all_) {
      if (one.hash == 0) continue;
      const std::string line = agreeing::text(one.at);
      words += path + (line.empty() ? "" : " at " + line) + ", behind " + std::to_string(one.behind) + " steps, " +
               (one.hash == in_parts ? "in parts" : "hash " + std::to_string(one.hash)) + "\n";
    }
    return {what, hash(), [all = words.empty() ? "none" : words] { return all; }};
  }

 private:
  struct One {
    std::uint64_t hash = 0;
    std::int64_t behind = -1;
    Source at{};
  };
  std::map<std::string, One> all_{};
};
/// The same numbers have the same, which is never 0, nor that of parts.
inline std::uint64_t hash_of_numbers(std::span<const std::byte> all) {
  agreeing::Hash hash;
  hash.bytes(all);
  return std::max(hash.value(), SetWhole::in_parts + 1);
}

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
    for (const Node& n : plan.graph.nodes) of_training_ = of_training_ || n.phase != Phase::forward;
    initializers_ = begun.value();
  }

  /// A parameter was set, of which every rank holds the whole, with this hash; 0: one that a stage alone holds.
  void set(std::string_view path, std::uint64_t hash, const Source& at) {
    if (set_.note(path, hash, steps_, at)) ++set_since_;
    if (set_since_ == members_) {  // of what was before nothing is left
      seed_ = initializers_ = all_set;
      trained_ = {};
      steps_ = 0;
      set_.begin_again();
    }
    hash_of_set_ = set_.hash();
  }
  /// An executor of this number, alike on all ranks, begins a step that trains them.
  void train(std::int64_t executor, const Source& made_at) {
    trained_.word(executor);
    ++steps_;
    last_ = executor;
    made_at_ = made_at;
    set_since_ = 0;
  }

  /// Whether they were made for a program that trains them.
  bool of_training() const { return of_training_; }
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
    std::string trained = seed_ == all_set ? "none since all were set" : "none yet";
    if (steps_ > 0) {
      const std::string made = agreeing::text(made_at_);
      trained = std::to_string(steps_) + " steps, the last by executor " + std::to_string(last_) +
                (made.empty() ? "" : ", made at " + made);
    }
    return {set_.fact("parameters that were set"),
            {"training of the parameters", trained_.value(), [trained] { return trained; }}};
  }

 private:
  static constexpr const char* all_set = "none: all were set";

  std::string seed_, initializers_{};
  bool of_training_ = false;
  int members_ = 0, set_since_ = 0;  // since the last step
  SetWhole set_{};
  std::uint64_t hash_of_set_ = SetWhole().hash();
  agreeing::Hash trained_{};  // the executors' numbers, step by step
  std::int64_t steps_ = 0, last_ = 0;
  Source made_at_{};
};

}  // namespace parallel::internals
