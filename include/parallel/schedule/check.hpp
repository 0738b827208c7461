// Whether the stages of a pipeline can do what their lists say: nothing left out or done twice, no message without its
// other end, no deadlock even where every send waits for its receive, no activation freed too early or never. Asked in
// the compiler or at start-up.
#pragma once
#include <stdexcept>

#include <parallel/schedule/checker.hpp>

namespace parallel {

/// Why the lists are refused, if they are. `limit`: how many activations, of a micro-batch in a chunk, a rank may keep
/// at a time.
constexpr ScheduleRefusal check(const Actions& all, int limit = internals::checking::no_limit) {
  if (all.stages.empty() || all.micro_batches < 1 || all.schedule.chunks < 1) {
    ScheduleRefusal refusal{ScheduleReason::no_stages};
    refusal.stages = all.stages.size();
    refusal.micro_batches = all.micro_batches;
    return refusal;
  }
  return internals::checking::Checker{all, limit, all.stages.size(), all.schedule.chunks}.check();
}
constexpr ScheduleRefusal check(const Schedule& schedule, int stages, int micro_batches,
                                int limit = internals::checking::no_limit) {
  ScheduleRefusal refusal;
  refusal.stages = stages;
  refusal.micro_batches = micro_batches;
  if (stages < 1 || micro_batches < 1 || schedule.chunks < 1)
    refusal.reason = ScheduleReason::no_stages;
  else if (schedule.tasks == nullptr)
    refusal.reason = ScheduleReason::no_tasks;
  else if (schedule.whole_groups && micro_batches % stages != 0)
    refusal.reason = ScheduleReason::partial_group;
  else
    return check(actions(schedule, stages, micro_batches), limit);
  return refusal;
}

/// How many activations each rank keeps at most: of a micro-batch in a chunk, from its forward to its release.
constexpr internals::Vector<int> most_in_flight(const Actions& all) {
  internals::Vector<int> result;
  for (const internals::Vector<Action>& list : all.stages) {
    int now = 0, most = 0;
    for (const Action& a : list) {
      if (a.kind == ActionKind::compute && a.task.work == Work::forward && ++now > most) most = now;
      if (a.kind == ActionKind::release) --now;
    }
    result.push_back(most);
  }
  return result;
}

namespace internals {
namespace checking {
template <const Schedule& schedule, int stages, int micro_batches, int limit>
inline constexpr ScheduleRefusal of_schedule = check(schedule, stages, micro_batches, limit);
template <auto make, int limit>
inline constexpr ScheduleRefusal of_actions = check(make(), limit);
}  // namespace checking
}  // namespace internals

/// `using checked = checked_schedule<mine, 4, 8>;` is void, or the compiler says why the schedule is refused.
template <const Schedule& schedule, int stages, int micro_batches, int limit = internals::checking::no_limit>
using checked_schedule =
    typename internals::RefusedSchedule<internals::checking::of_schedule<schedule, stages, micro_batches, limit>.reason,
                                        internals::checking::of_schedule<schedule, stages, micro_batches, limit>>::type;
/// The same of lists that a constexpr function returns: `checked_actions<mine>`.
template <auto make, int limit = internals::checking::no_limit>
using checked_actions = typename internals::RefusedSchedule<internals::checking::of_actions<make, limit>.reason,
                                                            internals::checking::of_actions<make, limit>>::type;

/// The same at start-up. Throws std::invalid_argument with the sentence and its figures.
inline void accept_or_throw(const ScheduleRefusal& refusal) {
  if (refusal) throw std::invalid_argument(text(refusal));
}

}  // namespace parallel
