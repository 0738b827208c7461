// A pipeline's schedule as a value: the order in which each stage works on the micro-batches, and those that the
// literature names.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <parallel/meta/list.hpp>

namespace parallel {

/// What a stage does with a micro-batch. Where a schedule leaves no weights apart, `backward` computes both gradients.
enum class Work : std::uint8_t {
  forward,
  backward,  ///< the gradient of the input
  weight,    ///< the gradient of the weights, where it is a task of its own
  update,    ///< of the chunk's weights, by all gradients since its last update; only in an asynchronous schedule
};

struct Task {
  Work work = Work::forward;
  int micro_batch = 0;
  int chunk = 0;
  constexpr bool operator==(const Task&) const = default;
};
/// What a stage does, in order: `push_back` adds a task.
using Tasks = internals::Vector<Task>;

namespace internals {
/// What a stage does, by a function or a lambda that captures nothing. Constants of g++ 14 cannot call what it makes of
/// such a lambda as a pointer ("dereferencing a null pointer"), so a function of ours calls the lambda.
struct StageTasks {
  using Function = Tasks (*)(int stage, int stages, int micro_batches, int chunks);
  Function function = nullptr;

  constexpr StageTasks(Function f = nullptr) : function(f) {}
  template <class Lambda>
  requires(std::is_empty_v<Lambda>) constexpr StageTasks(Lambda) : function(call<Lambda>) {}
  constexpr operator Function() const { return function; }

 private:
  template <class Lambda>
  static constexpr Tasks call(int stage, int stages, int micro_batches, int chunks) {
    return Lambda{}(stage, stages, micro_batches, chunks);
  }
};
}  // namespace internals

/// Chunk c of stage r is virtual stage c * stages + r: activations go from one virtual stage to the next, gradients
/// back.
struct Schedule {
  std::string_view name;
  int chunks = 1;                 ///< virtual stages of a stage
  bool weights_apart = false;     ///< gradients of weights are tasks of their own
  bool asynchronous = false;      ///< weights are updated by tasks, not behind the last one
  internals::StageTasks tasks{};  ///< what a stage does, in order: of (stage, stages, micro_batches, chunks)
  bool whole_groups = false;      ///< the micro-batches must be a multiple of the stages
};

namespace schedules {

/// `ahead` forwards, then one forward and one backward in turn, then the backwards that are left. `forward(k)` and
/// `backward(k)` are the k-th tasks of `count`; `behind(tasks, k)` adds what follows the k-th backward.
constexpr Tasks in_turn(int count, int ahead, auto forward, auto backward, auto behind) {
  Tasks tasks;
  for (int k = 0; k < ahead && k < count; ++k) tasks.push_back(forward(k));
  for (int k = 0; k < count; ++k) {
    if (ahead + k < count) tasks.push_back(forward(ahead + k));
    tasks.push_back(backward(k));
    behind(tasks, k);
  }
  return tasks;
}
constexpr Tasks in_turn(int micro_batches, int ahead, auto behind) {
  return in_turn(
      micro_batches, ahead,
      [](int k) {
        return Task{Work::forward, k};
      },
      [](int k) {
        return Task{Work::backward, k};
      },
      behind);
}
constexpr Tasks in_turn(int micro_batches, int ahead) {
  return in_turn(micro_batches, ahead, [](Tasks&, int) {});
}

/// A micro-batch goes forward and back through all stages before the next one enters: the baseline, without a pipeline.
inline constexpr Schedule naive{"naive", 1, false, false,
                                [](int, int, int micro_batches, int) { return in_turn(micro_batches, 0); }};

/// All forward, then all backward (Huang et al., arXiv:1811.06965), in the order in which they came: sums of gradients
/// have one order.
inline constexpr Schedule gpipe{"gpipe", 1, false, false,
                                [](int, int, int micro_batches, int) { return in_turn(micro_batches, micro_batches); }};

/// 1F1B, PipeDream-flush (Narayanan et al., arXiv:2006.09503): as many ahead as there are stages behind.
inline constexpr Schedule one_forward_one_backward{
    "one_forward_one_backward", 1, false, false,
    [](int stage, int stages, int micro_batches, int) { return in_turn(micro_batches, stages - stage - 1); }};

/// 1F1B, and an update behind each backward, without waiting for the others (Narayanan et al., SOSP 2019). Whoever runs
/// it keeps the weights that a micro-batch went forward with for its backward.
inline constexpr Schedule pipedream{"pipedream", 1, false, true, [](int stage, int stages, int micro_batches, int) {
                                      return in_turn(micro_batches, stages - stage - 1, [](Tasks& tasks, int k) {
                                        tasks.push_back({Work::update, k});
                                      });
                                    }};

/// The micro-batches go in groups of `stages`, each group through one chunk after the other; 1F1B of these pairs.
constexpr Tasks interleaved_tasks(int stage, int stages, int micro_batches, int chunks) {
  const auto task = [=](Work work, int k) {
    const int in_group = k % (stages * chunks), chunk = in_group / stages;
    return Task{work, k / (stages * chunks) * stages + k % stages, work == Work::forward ? chunk : chunks - 1 - chunk};
  };
  return in_turn(
      micro_batches * chunks, 2 * (stages - stage - 1) + (chunks - 1) * stages,
      [=](int k) { return task(Work::forward, k); }, [=](int k) { return task(Work::backward, k); },
      [](Tasks&, int) {});
}
/// Megatron's interleaved 1F1B (arXiv:2104.04473): each stage has `chunks` slices of the layers.
template <int chunks>
inline constexpr Schedule interleaved{"interleaved", chunks, false, false, interleaved_tasks, true};

/// Gradients of weights fill the bubble (Qi et al., arXiv:2401.10241): `deep * (stages - stage - 1)` ahead, weights
/// `deep * stage` late.
constexpr Tasks zero_bubble_tasks(int stage, int stages, int micro_batches, int deep) {
  const int late = deep * stage;
  Tasks tasks = in_turn(micro_batches, deep * (stages - stage - 1), [=](Tasks& all, int k) {
    if (k >= late) all.push_back({Work::weight, k - late});
  });
  for (int k = micro_batches > late ? micro_batches - late : 0; k < micro_batches; ++k)
    tasks.push_back({Work::weight, k});
  return tasks;
}
/// With the memory of 1F1B.
inline constexpr Schedule zero_bubble_h1{
    "zero_bubble_h1", 1, true, false,
    [](int stage, int stages, int micro_batches, int) { return zero_bubble_tasks(stage, stages, micro_batches, 1); }};
/// With twice that memory, and no bubble where the three works of a micro-batch take equally long.
inline constexpr Schedule zero_bubble_h2{
    "zero_bubble_h2", 1, true, false,
    [](int stage, int stages, int micro_batches, int) { return zero_bubble_tasks(stage, stages, micro_batches, 2); }};

inline constexpr const Schedule* with_one_chunk[] = {&naive,          &gpipe,          &one_forward_one_backward,
                                                     &zero_bubble_h1, &zero_bubble_h2, &pipedream};

}  // namespace schedules

/// As it is written: "gpipe", "interleaved<2>".
inline std::string text(const Schedule& schedule) {
  return std::string(schedule.name) + (schedule.chunks > 1 ? "<" + std::to_string(schedule.chunks) + ">" : "");
}

/// The shipped schedule of this name with so many chunks, for tools that have read both.
constexpr std::optional<Schedule> find_schedule(std::string_view name, int chunks = 1) {
  if (chunks >= 1 && name == schedules::interleaved<1>.name) {
    Schedule found = schedules::interleaved<1>;
    found.chunks = chunks;
    return found;
  }
  for (const Schedule* s : schedules::with_one_chunk)
    if (s->name == name && chunks == 1) return *s;
  return std::nullopt;
}

}  // namespace parallel
