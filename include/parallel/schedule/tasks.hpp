// The tasks of all stages together, and which of them needs the result of which.
#pragma once
#include <parallel/schedule/schedule.hpp>

namespace parallel::internals {

/// A task of a certain stage; where there is none, the stage is -1.
struct StageTask {
  Task task{};
  int stage = -1;
  constexpr bool operator==(const StageTask&) const = default;
};

/// The task of another virtual stage whose result this one needs.
constexpr StageTask needed_by(Task task, int stage, int stages, int chunks) {
  if (task.work == Work::forward) {
    if (stage > 0) return {task, stage - 1};
    if (task.chunk > 0) return {{task.work, task.micro_batch, task.chunk - 1}, stages - 1};
  }
  if (task.work == Work::backward) {
    if (stage < stages - 1) return {task, stage + 1};
    if (task.chunk < chunks - 1) return {{task.work, task.micro_batch, task.chunk + 1}, 0};
  }
  return {};
}
/// The inverse: the task of another virtual stage that needs the result of this one.
constexpr StageTask user_of(Task task, int stage, int stages, int chunks) {
  if (task.work == Work::forward) {
    if (stage < stages - 1) return {task, stage + 1};
    if (task.chunk < chunks - 1) return {{task.work, task.micro_batch, task.chunk + 1}, 0};
  }
  if (task.work == Work::backward) {
    if (stage > 0) return {task, stage - 1};
    if (task.chunk > 0) return {{task.work, task.micro_batch, task.chunk - 1}, stages - 1};
  }
  return {};
}
/// The last task that needs what a chunk has kept of a micro-batch.
constexpr Work last_use(const Schedule& schedule) { return schedule.weights_apart ? Work::weight : Work::backward; }

/// A stage's two neighbours as numbers 0 and 1; of two stages each is the one neighbour of the other.
constexpr int channel(int stage, int peer, int stages) { return stages > 2 && peer == (stage + 1) % stages ? 1 : 0; }

/// What every stage is to do, in order. A schedule of one's own can be wrong in any way; the checker says how.
struct AllTasks {
  Schedule schedule{};
  int micro_batches = 0;
  Vector<Tasks> stages{};
  Vector<int> places{};

  constexpr int size() const { return stages.size(); }
  constexpr bool known(Task t) const {
    return t.work <= Work::update && t.micro_batch >= 0 && t.micro_batch < micro_batches && t.chunk >= 0 &&
           t.chunk < schedule.chunks;
  }
  /// Where a stage does a forward or a backward first; -1 for nowhere.
  constexpr int& place(Task t, int stage) {
    return places[((2 * stage + static_cast<int>(t.work)) * schedule.chunks + t.chunk) * micro_batches + t.micro_batch];
  }
  constexpr int place(Task t, int stage) const {
    return places[((2 * stage + static_cast<int>(t.work)) * schedule.chunks + t.chunk) * micro_batches + t.micro_batch];
  }
  /// The task of another rank that makes what this one needs, and the one that needs what this one makes.
  constexpr StageTask sender(Task t, int stage) const {
    return elsewhere(needed_by(t, stage, size(), schedule.chunks), t, stage);
  }
  constexpr StageTask receiver(Task t, int stage) const {
    return elsewhere(user_of(t, stage, size(), schedule.chunks), t, stage);
  }

 private:
  constexpr StageTask elsewhere(StageTask other, Task t, int stage) const {
    return known(t) && other.stage != stage ? other : StageTask{};
  }
};

constexpr AllTasks tasks_of(const Schedule& schedule, int stages, int micro_batches) {
  AllTasks all{schedule, micro_batches};
  all.stages.resize(stages);
  all.places.resize(2 * stages * schedule.chunks * micro_batches, -1);
  for (int stage = 0; stage < stages; ++stage) {
    Tasks& tasks = all.stages[stage];
    tasks = schedule.tasks(stage, stages, micro_batches, schedule.chunks);
    for (int i = 0; i < tasks.size(); ++i)
      if (const Task t = tasks[i]; t.work <= Work::backward && all.known(t))
        if (int& place = all.place(t, stage); place < 0) place = i;
  }
  return all;
}

}  // namespace parallel::internals
