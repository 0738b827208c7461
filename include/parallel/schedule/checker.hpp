// The checker of lists of actions: it follows each rank's list alone, joins the ends of messages and collectives, then
// lets all ranks run. Each step is linear in the actions, as compilers count their steps.
#pragma once
#include <limits>

#include <parallel/schedule/actions.hpp>
#include <parallel/schedule/refusal.hpp>

namespace parallel::internals {

namespace checking {
inline constexpr int no_limit = std::numeric_limits<int>::max();

/// What has happened to a micro-batch in a chunk, as bits.
enum State : unsigned char {
  forwarded = 1,
  backwarded = 2,
  weighted = 4,
  released = 8,
  activation_in = 16,
  gradient_in = 32,
  activation_out = 64,
  gradient_out = 128
};

/// One end of a message, or of a collective.
struct End {
  Task task{};
  int step = 0;
  int wait = 0;  ///< the batch that it is in, or the collective; these count through all ranks
};
/// What a wait waits for: another wait, to be entered.
struct Link {
  int wait = 0, step = 0, next = -1;
};
struct Wait {
  int rank = 0;
  int links = -1;   ///< the first of its list
  int missing = 0;  ///< how many of those it waits for have not been entered
  bool entered = false;
};

struct Checker {
  const Actions& all;
  const int limit;
  const int stages, chunks;
  Vector<unsigned char> states{};
  Vector<Vector<End>> sent{}, heard{}, called{};  ///< by rank and channel of the sender or receiver; by rank
  Vector<Wait> waits{};
  Vector<int> first_wait{};  ///< by rank, and behind the last one
  Vector<Link> links{};

  constexpr unsigned char& state(int rank, Task t) {
    return states[(rank * chunks + t.chunk) * all.micro_batches + t.micro_batch];
  }
  constexpr Vector<End>& ends(Vector<Vector<End>>& lists, int rank, int peer) {
    return lists[2 * rank + channel(rank, peer, stages)];
  }
  static constexpr ScheduleRefusal at(ScheduleReason reason, int rank, int step, Task t, int other_rank = -1,
                                      int other_step = -1) {
    return {reason, rank, step, other_rank, other_step, t.micro_batch, t.chunk};
  }
  constexpr bool known(Task t) const {
    return t.work <= Work::update && t.micro_batch >= 0 && t.micro_batch < all.micro_batches && t.chunk >= 0 &&
           t.chunk < chunks && (t.work != Work::weight || all.schedule.weights_apart) &&
           (t.work != Work::update || all.schedule.asynchronous);
  }
  /// Sets a bit; says whether it was set already.
  static constexpr bool again(unsigned char& state, unsigned char bit) {
    const bool was = (state & bit) != 0;
    state = static_cast<unsigned char>(state | bit);
    return was;
  }

  constexpr ScheduleReason compute(int rank, Task t, Vector<int>& gradients, int& in_flight) {
    using enum ScheduleReason;
    if (!known(t)) return unknown_task;
    unsigned char& now = state(rank, t);
    const unsigned char bits[] = {forwarded, backwarded, weighted};
    if (t.work == Work::update) {
      if (gradients[t.chunk] == 0) return task_early;
      gradients[t.chunk] = 0;
      return none;
    }
    if (again(now, bits[static_cast<int>(t.work)])) return task_twice;
    if (t.work == Work::forward && ++in_flight > limit) return too_many_in_flight;
    if (t.work != Work::forward && (now & bits[static_cast<int>(t.work) - 1]) == 0) return task_early;
    if (t.work == last_use(all.schedule)) ++gradients[t.chunk];
    const StageTask from = needed_by(t, rank, stages, chunks);
    if (from.stage == rank) return (state(rank, from.task) & bits[static_cast<int>(t.work)]) == 0 ? task_early : none;
    return from.stage >= 0 && (now & (t.work == Work::forward ? activation_in : gradient_in)) == 0 ? input_missing
                                                                                                   : none;
  }
  constexpr ScheduleReason send(int rank, const Action& a) {
    using enum ScheduleReason;
    if (!known(a.task) || a.peer == rank || a.peer < 0 || user_of(a.task, rank, stages, chunks).stage != a.peer)
      return unknown_task;
    unsigned char& now = state(rank, a.task);
    const bool forward = a.task.work == Work::forward;
    if (again(now, forward ? activation_out : gradient_out)) return task_twice;
    return (now & (forward ? forwarded : backwarded)) == 0 ? sent_early : none;
  }
  constexpr ScheduleReason receive(int rank, const Action& a) {
    using enum ScheduleReason;
    if (!known(a.task) || a.peer == rank || a.peer < 0 || a.peer >= stages) return unknown_task;
    const StageTask user = user_of(a.task, a.peer, stages, chunks);
    if (user.stage != rank) return unknown_task;
    return again(state(rank, user.task), a.task.work == Work::forward ? activation_in : gradient_in) ? task_twice
                                                                                                     : none;
  }
  constexpr ScheduleReason release(int rank, Task t, int& in_flight) {
    using enum ScheduleReason;
    if (!known(t)) return unknown_task;
    if (again(state(rank, t), released)) return task_twice;
    --in_flight;
    return (state(rank, t) & (all.schedule.weights_apart ? weighted : backwarded)) == 0 ? released_early : none;
  }
  constexpr bool member(int group, int rank) const {
    if (group < 0 || group >= all.groups.size()) return false;
    for (const int m : all.groups[group])
      if (m == rank) return true;
    return false;
  }

  /// What a rank's own list shows; notes the ends of messages and collectives, and the waits that they are in.
  constexpr ScheduleRefusal follow(int rank) {
    using enum ScheduleReason;
    Vector<int> gradients;
    gradients.resize(chunks, 0);
    int in_flight = 0;
    bool joins = false;  // the last wait is a batch that goes on
    const Vector<Action>& list = all.stages[rank];
    for (int i = 0; i < list.size(); ++i) {
      const Action& a = list[i];
      ScheduleReason reason = none;
      if (a.kind == ActionKind::compute) {
        reason = compute(rank, a.task, gradients, in_flight);
        joins = false;
      } else if (a.kind == ActionKind::release) {
        reason = release(rank, {Work::forward, a.task.micro_batch, a.task.chunk}, in_flight);
      } else {
        const bool collective = a.kind == ActionKind::collective;
        if (!joins || collective) waits.push_back({rank});
        joins = !collective;
        const End end{a.task, i, waits.size() - 1};
        if (collective) {
          reason = member(a.peer, rank) ? none : unknown_task;
          called[rank].push_back(end);
        } else {
          reason = a.kind == ActionKind::send ? send(rank, a) : receive(rank, a);
          if (reason == none) ends(a.kind == ActionKind::send ? sent : heard, rank, a.peer).push_back(end);
        }
      }
      if (reason == none) continue;
      ScheduleRefusal refusal = at(reason, rank, i, a.task);
      if (reason == too_many_in_flight) refusal.limit = limit;
      if (reason == input_missing) refusal.other_rank = needed_by(a.task, rank, stages, chunks).stage;
      return refusal;
    }
    const int whole = forwarded | backwarded | (all.schedule.weights_apart ? weighted : 0);
    for (Task t; chunks > t.chunk; ++t.chunk) {  // nvcc takes "chunk <" for a template of that name
      for (t.micro_batch = 0; t.micro_batch < all.micro_batches; ++t.micro_batch) {
        if ((state(rank, t) & whole) != whole) return at(task_dropped, rank, -1, t);
        if ((state(rank, t) & released) == 0) return at(never_released, rank, -1, t);
      }
      if (all.schedule.asynchronous && gradients[t.chunk] > 0)
        return at(gradient_unused, rank, -1, {Work::update, -1, t.chunk});
    }
    return {};
  }

  constexpr void link(const End& from, const End& to) {
    links.push_back({to.wait, from.step, waits[from.wait].links});
    waits[from.wait].links = links.size() - 1;
    ++waits[from.wait].missing;
  }

  /// Joins the ends of what `rank` sends to `peer`. No send is without its receive, as no task is without what it
  /// needs.
  constexpr ScheduleRefusal match(int rank, int peer) {
    const Vector<End>&from = ends(sent, rank, peer), &to = ends(heard, peer, rank);
    for (int i = 0; i < to.size(); ++i) {
      const Task t = to[i].task;
      if ((state(rank, t) & (t.work == Work::forward ? activation_out : gradient_out)) == 0)
        return at(ScheduleReason::never_sent, peer, to[i].step, t, rank);
      if (!(from[i].task == t))
        return at(ScheduleReason::messages_crossed, rank, from[i].step, from[i].task, peer, to[i].step);
      link(from[i], to[i]);
      link(to[i], from[i]);
    }
    return {};
  }

  /// Joins the calls of a group's members.
  constexpr ScheduleRefusal match(int group) {
    const Vector<int>& members = all.groups[group];
    const auto calls = [&](int rank) {
      Vector<End> result;
      for (const End& call : called[rank])
        if (all.stages[rank][call.step].peer == group) result.push_back(call);
      return result;
    };
    for (int a = 0; a < members.size(); ++a)
      for (int b = 0; b < members.size(); ++b) {
        if (members[a] == members[b]) continue;
        const Vector<End> one = calls(members[a]), other = calls(members[b]);
        for (int i = 0; i < one.size() || i < other.size(); ++i) {
          if (i >= one.size() || i >= other.size() || !(one[i].task == other[i].task))
            return {ScheduleReason::collectives_crossed, members[a], i < one.size() ? one[i].step : -1, members[b],
                    i < other.size() ? other[i].step : -1};
          link(one[i], other[i]);
        }
      }
    return {};
  }

  /// Lets every rank go as far as it can.
  constexpr ScheduleRefusal run() {
    Vector<int> now, ready;
    for (int rank = 0; rank < stages; ++rank) {
      now.push_back(first_wait[rank]);
      ready.push_back(rank);
    }
    while (!ready.empty()) {
      const int rank = ready.back();
      ready.resize(ready.size() - 1);
      while (now[rank] < first_wait[rank + 1]) {
        Wait& wait = waits[now[rank]];
        if (!wait.entered)
          for (int l = wait.links; l >= 0; l = links[l].next) {
            Wait& other = waits[links[l].wait];
            if (--other.missing == 0 && other.entered) ready.push_back(other.rank);
          }
        wait.entered = true;
        if (wait.missing > 0) break;
        ++now[rank];
      }
    }
    for (int rank = 0; rank < stages; ++rank)
      if (now[rank] < first_wait[rank + 1]) return circle(rank, now);
    return {};
  }
  /// The circle that a rank waits in, or behind.
  constexpr ScheduleRefusal circle(int rank, const Vector<int>& now) const {
    const auto awaited = [&](int r) {
      int l = waits[now[r]].links;
      while (waits[links[l].wait].entered) l = links[l].next;
      return links[l];
    };
    for (int i = 0; i < stages; ++i) rank = waits[awaited(rank).wait].rank;
    const Link from = awaited(rank);
    const int other = waits[from.wait].rank;
    return at(ScheduleReason::deadlock, rank, from.step, all.stages[rank][from.step].task, other, awaited(other).step);
  }

  constexpr ScheduleRefusal check() {
    states.resize(stages * chunks * all.micro_batches, 0);
    sent.resize(2 * stages);
    heard.resize(2 * stages);
    called.resize(stages);
    for (int rank = 0; rank < stages; ++rank) {
      first_wait.push_back(waits.size());
      if (const ScheduleRefusal r = follow(rank)) return r;
    }
    first_wait.push_back(waits.size());
    for (int rank = 0; rank < stages && stages > 1; ++rank) {
      if (const ScheduleRefusal r = match(rank, (rank + 1) % stages)) return r;
      if (stages == 2) continue;  // both neighbours are one
      if (const ScheduleRefusal r = match(rank, (rank + stages - 1) % stages)) return r;
    }
    for (int group = 0; group < all.groups.size(); ++group) {
      for (const int rank : all.groups[group])
        if (rank < 0 || rank >= stages) return {ScheduleReason::unknown_task, rank};
      if (const ScheduleRefusal r = match(group)) return r;
    }
    return run();
  }
};
}  // namespace checking

}  // namespace parallel::internals
