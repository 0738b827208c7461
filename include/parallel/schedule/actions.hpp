// What the stages of a pipeline do and say to each other: a schedule's tasks, with the sends, receives and releases
// between them.
#pragma once
#include <parallel/schedule/timing.hpp>

namespace parallel {

enum class ActionKind : std::uint8_t {
  compute,
  send,        ///< what `task` of this stage has made, to `peer`
  receive,     ///< what `task` of `peer` has made
  release,     ///< frees what `task`'s micro-batch and chunk have kept since their forward
  collective,  ///< of the group `peer`, all of whose members name the same `task`
};

/// Sends and receives with no compute and no collective between them are one batch: started together, waited for
/// together. A message is named by the task that makes it: an activation by a forward, a gradient by a backward.
struct Action {
  ActionKind kind = ActionKind::compute;
  Task task{};
  int peer = -1;

  static constexpr Action compute(Task task) { return {ActionKind::compute, task}; }
  static constexpr Action send(Task task, int to) { return {ActionKind::send, task, to}; }
  static constexpr Action receive(Task task, int from) { return {ActionKind::receive, task, from}; }
  static constexpr Action release(int micro_batch, int chunk = 0) {
    return {ActionKind::release, {Work::forward, micro_batch, chunk}};
  }
  static constexpr Action collective(int group, Task task = {}) { return {ActionKind::collective, task, group}; }
  constexpr bool operator==(const Action&) const = default;
};

/// What every stage does, in order: written by `actions`, by hand, or first by the one and then by the other.
struct Actions {
  Schedule schedule{};
  int micro_batches = 0;
  internals::Vector<internals::Vector<Action>> stages{};
  internals::Vector<internals::Vector<int>> groups{};  ///< the members of each group of collectives
};

/// A schedule's actions. A send stands right behind its task, a release behind the last use. A receive stands where the
/// message comes if all tasks take equally long and messages no time: before the first task that begins no earlier than
/// the message was made, as late as the one that needs it. So no ranks wait in a circle, even where sends wait for
/// their receives: whoever waits, waits for a rank whose next task begins earlier than its own.
constexpr Actions actions(const Schedule& schedule, int stages, int micro_batches) {
  const internals::AllTasks tasks = internals::tasks_of(schedule, stages, micro_batches);
  const internals::Vector<internals::Vector<Span>> when = spans(
      tasks, [](int, Task) { return 1.0; }, [](int, Task) { return 0.0; });
  Actions result{schedule, micro_batches};
  result.stages.resize(stages);
  for (int stage = 0; stage < stages; ++stage) {
    internals::Vector<Action>& list = result.stages[stage];
    const int neighbours[] = {(stage + stages - 1) % stages, (stage + 1) % stages};
    int heard[] = {0, 0};  // how many of a neighbour's tasks have been looked through
    for (int i = 0; i < tasks.stages[stage].size(); ++i) {
      const Task t = tasks.stages[stage][i];
      for (int n = 0; n < (stages > 2 ? 2 : stages - 1); ++n) {
        const int from = neighbours[n];
        for (int& k = heard[n]; k < when[from].size() && when[from][k].end <= when[stage][i].begin; ++k) {
          const Task sent = tasks.stages[from][k];
          if (tasks.receiver(sent, from).stage == stage && tasks.place(sent, from) == k)
            list.push_back(Action::receive(sent, from));
        }
      }
      if (const internals::StageTask from = tasks.sender(t, stage);
          from.stage >= 0 && tasks.place(from.task, from.stage) < 0)
        list.push_back(Action::receive(from.task, from.stage));  // so that the checker names the task that is missing
      list.push_back(Action::compute(t));
      if (t.work == internals::last_use(schedule)) list.push_back(Action::release(t.micro_batch, t.chunk));
      if (const internals::StageTask to = tasks.receiver(t, stage); to.stage >= 0 && tasks.place(t, stage) == i)
        list.push_back(Action::send(t, to.stage));
    }
  }
  return result;
}

}  // namespace parallel
