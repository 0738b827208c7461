// Why a pipeline's schedule is refused: each reason owns one literal sentence, for the compiler and for start-up.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace parallel {

// One list, so that a static_assert and an exception cannot differ: identifier, sentence, names of its figures.
// clang-format off
#define PARALLEL_SCHEDULE_REFUSALS(reason) \
  reason(no_stages, "parallel::Schedule: a pipeline needs a stage, a micro-batch and a chunk; give each a count from 1", stages, micro_batches) \
  reason(no_tasks, "parallel::Schedule: no function says what a stage does; name one that returns a stage's tasks in their order", stages, micro_batches) \
  reason(partial_group, "parallel::Schedule: its micro-batches go in groups of as many as there are stages; choose a multiple of the stages", stages, micro_batches) \
  reason(unknown_task, "parallel::Schedule: a step names a task, a peer or a group that there is not; count stages, micro-batches and chunks from 0, and have weight tasks only with weights_apart, updates only if asynchronous", rank, step, micro_batch, chunk) \
  reason(task_twice, "parallel::Schedule: a task, a message or a release stands there twice; let each micro-batch pass each chunk once", rank, step, micro_batch, chunk) \
  reason(task_dropped, "parallel::Schedule: a stage leaves out a task; let every micro-batch pass every chunk, forward, backward and, with weights_apart, weight", rank, micro_batch, chunk) \
  reason(task_early, "parallel::Schedule: a task stands before one that it needs; put forward before backward, backward before weight, a gradient before its update", rank, step, micro_batch, chunk) \
  reason(input_missing, "parallel::Schedule: a task stands before the receive of what it needs; put the receive before it", rank, step, other_rank, micro_batch, chunk) \
  reason(sent_early, "parallel::Schedule: a send stands before the task that makes what it sends; put it behind", rank, step, micro_batch, chunk) \
  reason(never_sent, "parallel::Schedule: a receive has no send; add the send on the other rank", rank, step, other_rank, micro_batch, chunk) \
  reason(messages_crossed, "parallel::Schedule: one rank sends in another order than the other receives; give both one order", rank, step, other_rank, other_step, micro_batch, chunk) \
  reason(collectives_crossed, "parallel::Schedule: the members of a group call its collectives differently; give all of them the same calls in one order", rank, step, other_rank, other_step) \
  reason(deadlock, "parallel::Schedule: ranks wait for each other in a circle, a deadlock; move one of these communications before or behind the other, or join them without a task between", rank, step, other_rank, other_step, micro_batch, chunk) \
  reason(released_early, "parallel::Schedule: an activation is released before its last use; put the release behind it", rank, step, micro_batch, chunk) \
  reason(never_released, "parallel::Schedule: an activation is never released; put a release behind its last use", rank, micro_batch, chunk) \
  reason(too_many_in_flight, "parallel::Schedule: a rank keeps more activations than the limit; let backwards come earlier, or raise the limit", rank, step, micro_batch, chunk, limit) \
  reason(gradient_unused, "parallel::Schedule: no update follows a gradient; put an update behind the last gradient of each chunk", rank, chunk) \
  reason(update_late, "parallel::Pipelined: an update does not follow its gradient at once, so gradients would have to add up, which only synchronous schedules do; put an update right behind each backward, or weight, of the same micro-batch and chunk", rank, micro_batch, chunk)
// clang-format on

enum class ScheduleReason : std::uint8_t {
  none,
#define PARALLEL_ENUMERATE(id, sentence, ...) id,
  PARALLEL_SCHEDULE_REFUSALS(PARALLEL_ENUMERATE)
#undef PARALLEL_ENUMERATE
};

/// A reason, and where: ranks count along the pipeline, steps are places in their lists of actions; -1 is nothing.
struct ScheduleRefusal {
  ScheduleReason reason = ScheduleReason::none;
  int rank = -1, step = -1;
  int other_rank = -1, other_step = -1;
  int micro_batch = -1, chunk = -1;
  int stages = -1, micro_batches = -1, limit = -1;
  constexpr explicit operator bool() const { return reason != ScheduleReason::none; }
};

namespace internals {
constexpr std::string_view sentence_of(ScheduleReason r) {
  constexpr std::string_view sentences[] = {"",
#define PARALLEL_SENTENCE(id, sentence, ...) {sentence, sizeof sentence - 1},
                                            PARALLEL_SCHEDULE_REFUSALS(PARALLEL_SENTENCE)
#undef PARALLEL_SENTENCE
  };
  return sentences[static_cast<int>(r)];
}
constexpr std::string_view name_of(ScheduleReason r) {
  constexpr std::string_view names[] = {"accepted",
#define PARALLEL_NAME(id, sentence, ...) {#id, sizeof #id - 1},
                                        PARALLEL_SCHEDULE_REFUSALS(PARALLEL_NAME)
#undef PARALLEL_NAME
  };
  return names[static_cast<int>(r)];
}
}  // namespace internals

/// The sentence with its figures: "...; put it behind: rank 1, step 4, micro_batch 2, chunk 0".
inline std::string text(const ScheduleRefusal& r) {
  std::string result(internals::sentence_of(r.reason));
  const auto add = [&](std::string_view name, int figure) {
    result += (result.size() == internals::sentence_of(r.reason).size() ? ": " : ", ") + std::string(name) + " " +
              std::to_string(figure);
  };
  for (const auto& [name, figure] : {std::pair<std::string_view, int>{"stages", r.stages},
                                     {"micro_batches", r.micro_batches},
                                     {"rank", r.rank},
                                     {"step", r.step},
                                     {"other_rank", r.other_rank},
                                     {"other_step", r.other_step},
                                     {"micro_batch", r.micro_batch},
                                     {"chunk", r.chunk},
                                     {"limit", r.limit}})
    if (figure >= 0) add(name, figure);
  return result;
}

namespace figure {
// clang-format off
template <std::int64_t> struct chunk;
template <std::int64_t> struct limit;
template <std::int64_t> struct micro_batch;
template <std::int64_t> struct micro_batches;
template <std::int64_t> struct other_rank;
template <std::int64_t> struct other_step;
template <std::int64_t> struct rank;
template <std::int64_t> struct stages;
template <std::int64_t> struct step;
// clang-format on
}  // namespace figure

/// One type per reason: asking for it is the error, its arguments are the figures by name.
namespace refused {
#define PARALLEL_REFUSED(id, sentence, ...)           \
  template <class... Figures>                         \
  struct id {                                         \
    static_assert(sizeof...(Figures) > 99, sentence); \
    using type = void;                                \
  };
PARALLEL_SCHEDULE_REFUSALS(PARALLEL_REFUSED)
#undef PARALLEL_REFUSED
}  // namespace refused

namespace internals {
namespace schedule_figures {
// clang-format off
template <const ScheduleRefusal& r> using chunk = figure::chunk<r.chunk>;
template <const ScheduleRefusal& r> using limit = figure::limit<r.limit>;
template <const ScheduleRefusal& r> using micro_batch = figure::micro_batch<r.micro_batch>;
template <const ScheduleRefusal& r> using micro_batches = figure::micro_batches<r.micro_batches>;
template <const ScheduleRefusal& r> using other_rank = figure::other_rank<r.other_rank>;
template <const ScheduleRefusal& r> using other_step = figure::other_step<r.other_step>;
template <const ScheduleRefusal& r> using rank = figure::rank<r.rank>;
template <const ScheduleRefusal& r> using stages = figure::stages<r.stages>;
template <const ScheduleRefusal& r> using step = figure::step<r.step>;
// clang-format on

template <template <class...> class Why, const ScheduleRefusal& r, template <const ScheduleRefusal&> class... Name>
using Named = typename Why<Name<r>...>::type;
}  // namespace schedule_figures

/// Asking for `type` of an accepted schedule is void; of a refused one it is one error whose first line is the reason's
/// sentence.
template <ScheduleReason reason, const ScheduleRefusal& r>
struct RefusedSchedule {
  using type = void;
};
namespace schedule_figures {
#define PARALLEL_NAMED(id, sentence, ...) \
  template <const ScheduleRefusal& r>     \
  using of_##id = Named<refused::id, r, __VA_ARGS__>;
PARALLEL_SCHEDULE_REFUSALS(PARALLEL_NAMED)
#undef PARALLEL_NAMED
}  // namespace schedule_figures
#define PARALLEL_REFUSE(id, sentence, ...)              \
  template <const ScheduleRefusal& r>                   \
  struct RefusedSchedule<ScheduleReason::id, r> {       \
    using type = typename schedule_figures::of_##id<r>; \
  };
PARALLEL_SCHEDULE_REFUSALS(PARALLEL_REFUSE)
#undef PARALLEL_REFUSE
#undef PARALLEL_SCHEDULE_REFUSALS
}  // namespace internals

}  // namespace parallel
