// Whether stages that run a schedule's tasks, and nothing but these, can come to wait for each other in a circle.
//
// A stage that comes to a task asks for what the task needs, waits until the message before of this kind has left its
// buffer, waits for what it asked for, works, and starts to send. Message k of a kind leaves its buffer at the latest
// when the receiver has asked for its k-th.
#pragma once
#include <parallel/schedule/refusal.hpp>
#include <parallel/schedule/tasks.hpp>

namespace parallel {
namespace internals {
namespace waiting {
/// The stages on their way through their tasks. Of forwards and of backwards each sends to one neighbour and receives
/// from the other.
struct Stages {
  const AllTasks& all;
  Vector<int> at{};      ///< per stage: its task
  Vector<bool> asked{};  ///< and whether it has asked for what that needs
  /// per kind and stage: the messages that it has asked for, and sent, named by the tasks that make them
  Vector<Tasks> wanted{}, sent{};
  Vector<int> to{};  ///< per kind and stage: whom it sends to, once it has

  constexpr explicit Stages(const AllTasks& tasks) : all(tasks) {
    at.resize(all.size(), 0);
    asked.resize(all.size(), false);
    to.resize(2 * all.size(), -1);
    wanted.resize(2 * all.size());
    sent.resize(2 * all.size());
  }
  constexpr int of(Work kind, int stage) const { return static_cast<int>(kind) * all.size() + stage; }
  constexpr const Task& task(int stage) const { return all.stages[stage][at[stage]]; }
  constexpr bool ended(int stage) const { return at[stage] >= all.stages[stage].size(); }
  /// Whether a message of this kind is still in the stage's buffer.
  constexpr bool waits_to_send(Work kind, int stage) const {
    const int receiver = to[of(kind, stage)];
    return receiver >= 0 && wanted[of(kind, receiver)].size() < sent[of(kind, stage)].size();
  }
};
}  // namespace waiting
}  // namespace internals

/// The first stage that waits in vain, and for whom; or nothing.
constexpr ScheduleRefusal check_waits(const Schedule& schedule, int stages, int micro_batches) {
  const internals::AllTasks all = internals::tasks_of(schedule, stages, micro_batches);
  internals::waiting::Stages state(all);
  internals::Vector<int> ready;
  for (int s = stages - 1; s >= 0; --s) ready.push_back(s);
  while (!ready.empty()) {
    const int s = ready.back();
    ready.resize(ready.size() - 1);
    for (; !state.ended(s); ++state.at[s], state.asked[s] = false) {
      const Task t = state.task(s);
      if (t.work > Work::backward) continue;
      const int here = state.of(t.work, s);
      const internals::StageTask from = all.sender(t, s), to = all.receiver(t, s);
      if (from.stage >= 0 && !state.asked[s]) {
        state.wanted[here].push_back(from.task);
        ready.push_back(from.stage);
      }
      state.asked[s] = true;
      if (state.waits_to_send(t.work, s)) break;
      if (from.stage >= 0) {
        const Tasks& sent = state.sent[state.of(t.work, from.stage)];
        const int k = state.wanted[here].size() - 1;
        if (sent.size() <= k) break;
        if (!(sent[k] == from.task))
          return {ScheduleReason::messages_crossed,
                  s,
                  state.at[s],
                  from.stage,
                  all.place(sent[k], from.stage),
                  t.micro_batch,
                  t.chunk};
      }
      if (to.stage >= 0) {
        state.sent[here].push_back(t);
        state.to[here] = to.stage;
        ready.push_back(to.stage);
      }
    }
  }
  for (int s = 0; s < stages; ++s) {
    if (state.ended(s)) continue;
    const Task t = state.task(s);
    const int other = state.waits_to_send(t.work, s) ? state.to[state.of(t.work, s)] : all.sender(t, s).stage;
    return {ScheduleReason::deadlock, s, state.at[s], other, state.at[other], t.micro_batch, t.chunk};
  }
  return {};
}

}  // namespace parallel
