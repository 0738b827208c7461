// Whether stages that run a schedule's tasks, and nothing but these, can come to wait for each other in a circle.
//
// A stage that comes to a task asks for what the task needs, waits until the message before of this kind has left its buffer, waits for what it
// asked for, works, and starts to send. Message k of a kind leaves its buffer at the latest when the receiver has asked for its k-th.
#pragma once
#include <parallel/schedule/refusal.hpp>
#include <parallel/schedule/tasks.hpp>

namespace parallel {

namespace waiting {
/// A stage on its way through its tasks. Of forwards and of backwards it sends to one neighbour and receives from the other.
struct Stage {
  int task = 0;
  bool asked = false;                  ///< it has come to the task
  Vector<Task> wanted[2]{}, sent[2]{}; ///< the messages that it has asked for, and sent, by kind; each named by the task that makes it
  StageTask to[2]{};                   ///< whom it sent to last
};
}  // namespace waiting

/// The first stage that waits in vain, and for whom; or nothing.
constexpr ScheduleRefusal check_waits(const Schedule& schedule, int stages, int micro_batches) {
  const Tasks all = tasks_of(schedule, stages, micro_batches);
  Vector<waiting::Stage> state;
  state.resize(stages);
  Vector<int> ready;
  for (int s = stages - 1; s >= 0; --s) ready.push_back(s);
  while (!ready.empty()) {
    const int s = ready.back();
    ready.resize(ready.size() - 1);
    waiting::Stage& me = state[s];
    for (; me.task < all.stages[s].size(); ++me.task, me.asked = false) {
      const Task t = all.stages[s][me.task];
      if (t.work > Work::backward) continue;
      const auto kind = static_cast<int>(t.work);
      const StageTask from = all.sender(t, s), to = all.receiver(t, s);
      if (from.stage >= 0 && !me.asked) me.wanted[kind].push_back(from.task), ready.push_back(from.stage);
      me.asked = true;
      if (const StageTask last = me.to[kind]; last.stage >= 0) {
        const Vector<Task>& wanted = state[last.stage].wanted[kind];
        if (wanted.size() < me.sent[kind].size()) break;
      }
      if (from.stage >= 0) {
        const Vector<Task>& sent = state[from.stage].sent[kind];
        const int k = me.wanted[kind].size() - 1;
        if (sent.size() <= k) break;
        if (!(sent[k] == from.task)) return {ScheduleReason::messages_crossed, s, me.task, from.stage, all.place(sent[k], from.stage), t.micro_batch, t.chunk};
      }
      if (to.stage >= 0) me.sent[kind].push_back(t), me.to[kind] = to, ready.push_back(to.stage);
    }
  }
  for (int s = 0; s < stages; ++s) {
    const waiting::Stage& me = state[s];
    if (me.task >= all.stages[s].size()) continue;
    const Task t = all.stages[s][me.task];
    const auto kind = static_cast<int>(t.work);
    const StageTask last = me.to[kind], from = all.sender(t, s);
    const bool sends = last.stage >= 0 && state[last.stage].wanted[kind].size() < me.sent[kind].size();
    const int other = sends ? last.stage : from.stage;
    return {ScheduleReason::deadlock, s, me.task, other, state[other].task, t.micro_batch, t.chunk};
  }
  return {};
}

}  // namespace parallel
