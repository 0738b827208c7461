// What ranks compare of an executor: before it begins, and before each of its steps.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/communicator.hpp>
#include <parallel/device/device.hpp>
#include <parallel/run/looking.hpp>
#include <parallel/run/plan_facts.hpp>
#include <parallel/run/provenance.hpp>
#include <parallel/run/recording.hpp>
#include <parallel/run/scalars.hpp>

namespace parallel::internals {

template <Communicator World, Device Device>
class Alike {
 public:
  /// Of an executor, whose plan, ranks, parameters' history and scalars outlive this. `trains`: whether the program is
  /// a training. `made_at`: the line that made the executor.
  Alike(const Plan& plan, World& world, Provenance& provenance, const Scalars<Device>& scalars, bool trains,
        Here made_at)
      : plan_(plan), world_(world), provenance_(provenance), scalars_(scalars), trains_(trains), made_at_(made_at) {}

  /// The exchanges before step 0 (plan/agreement.hpp). `facts`: what else ranks must have alike. `before`: of the
  /// executor whose memory is shared. Throws Mismatch.
  void begin(std::vector<Fact> facts, const Alike* before) {
    agreeing::tell_environment(world_.rank(), world_.size());
    if (world_.size() == 1) return;
    agreeing::check_excepted(facts_of_step());
    facts.insert(facts.begin(), {fact_of(plan_), fact_of_numerics()});
    facts.push_back(always(fact("PARALLEL_WATCH", looked_for().watch)));
    facts.push_back(always(fact("PARALLEL_CHECK", looked_for().check)));
    for (Fact& f : provenance_.beginning()) facts.push_back(std::move(f));
    for (Fact& f : provenance_.history()) {
      compares_history_ = compares_history_ && !agreeing::may_differ(f);
      facts.push_back(std::move(f));
    }
    if (before != nullptr) facts.push_back(always(fact("executor whose memory is shared", before->number_)));
    agree(world_, facts, "the beginning of " + name(), made_at_);
    number_ = agreeing::numbered(world_, "the number of an executor");
  }
  /// The counter of steps: which step of which executor this is, and with which scalars and parameters, by an exchange
  /// of 16 bytes before it. Throws Mismatch.
  void step(std::int64_t steps, Recording* recording, Here here) {
    if (world_.size() == 1) return;
    agreeing::Hash hash;
    hash.word(number_);
    hash.word(steps);
    hash.word(static_cast<std::int64_t>(set_state_.hash()));
    if (compares_history_) hash.word(static_cast<std::int64_t>(provenance_.hash()));
    scalars_.each([&](std::string_view, double value) { hash.number(rounds_ ? rounded(value) : value); });
    bool alike = false;
    const auto compare = [&] { alike = agreeing::alike(world_, hash.value(), "the counter of steps"); };
    if (recording != nullptr)
      recording->note(EventKind::start, Happened::counter, agreeing::compared(world_.size()), compare);
    else
      compare();
    if (alike) return;
    agreeing::tell(world_, "step " + std::to_string(steps) + " of " + name(), here, facts_of_step(),
                   "let all ranks step the same executor in the same order, with the same scalars and parameters",
                   "executor " + std::to_string(number_));
  }
  /// A member was set behind so many steps. `hash`: as `hash_of_part` has it.
  void set(const Member& m, std::uint64_t hash, std::int64_t steps, const Here& here) {
    if (m.role == Role::parameter)
      provenance_.set(plan_.graph.path(m), hash, here);
    else
      set_state_.note(plan_.graph.path(m), hash, steps, here);
  }
  /// The same on all ranks, and of this executor alone.
  std::int64_t number() const { return number_; }

 private:
  /// What ranks compare before a step.
  std::vector<Fact> facts_of_step() const {
    const std::string made = agreeing::text(made_at_);
    Fact executor = always(fact("executor", number_));  // its line may be another on a rank
    executor.text = [words = "number " + std::to_string(number_) + (made.empty() ? "" : ", made at " + made)] {
      return words;
    };
    std::vector<Fact> facts{std::move(executor)};
    scalars_.each([&](std::string_view scalar, double value) { facts.push_back(fact_of_scalar(scalar, value)); });
    for (Fact& f : provenance_.history()) facts.push_back(std::move(f));
    facts.push_back(always(set_state_.fact("state that was set")));
    return facts;
  }
  /// For sentences: what the program is.
  std::string name() const { return trains_ ? "a training" : "an evaluation"; }

  const Plan& plan_;
  World& world_;
  Provenance& provenance_;
  const Scalars<Device>& scalars_;
  bool trains_;
  Here made_at_;
  std::int64_t number_ = 0;
  bool compares_history_ = true;               // of the parameters
  const bool rounds_ = numerics_may_differ();  // scalars are compared as floats: other machines round them otherwise
  SetWhole set_state_{};
};

}  // namespace parallel::internals
