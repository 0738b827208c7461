// A schedule as text: its tasks over time, a row for each rank with dots where it waits; and lists of actions, with the
// steps that refusals name.
//
//   rank 0  F0 F1 .. .. .. B0    B1
//   rank 1  .. F0 B0    F1 B1    .. ..
#pragma once
#include <cmath>
#include <string>

#include <parallel/schedule/actions.hpp>

namespace parallel {

/// "F3", "B0", "W1", "U2"; with a letter for the chunk where there are several: "F3b".
inline std::string text(Task t, int chunks = 1) {
  return std::string(1, "FBWU"[static_cast<int>(t.work)]) + std::to_string(t.micro_batch) +
         (chunks > 1 ? std::string(1, static_cast<char>('a' + t.chunk % 26)) : "");
}

/// Columns of `unit`, by default the shortest task that takes time; a task that takes none is not shown. `who` works on
/// a row.
inline std::string picture(const Timing& timing, double unit = 0, const std::string& who = "rank") {
  std::size_t cell = 0;
  double last = 0, shortest = Span::never;
  for (int stage = 0; stage < timing.tasks.size(); ++stage)
    for (int i = 0; i < timing.spans[stage].size(); ++i) {
      const Span& s = timing.spans[stage][i];
      const std::size_t size = text(timing.tasks.stages[stage][i], timing.tasks.schedule.chunks).size();
      if (s.end > s.begin && s.end - s.begin < shortest) shortest = s.end - s.begin;
      if (s.end < Span::never && s.end > last) last = s.end;
      cell = size > cell ? size : cell;
    }
  if (unit <= 0) unit = shortest;
  const auto column = [&](double time) { return static_cast<std::size_t>(std::lround(time / unit)); };
  std::string result;
  for (int stage = 0; stage < timing.tasks.size(); ++stage) {
    std::string row = who + " " + std::to_string(stage);
    row.resize(who.size() + 2 + std::to_string(timing.tasks.size() - 1).size() + 1, ' ');
    const std::size_t begin = row.size();
    for (std::size_t c = 0; c < column(last); ++c) row += std::string(cell, '.') + " ";
    for (int i = 0; i < timing.spans[stage].size(); ++i) {
      const Span& s = timing.spans[stage][i];
      if (!(s.end < Span::never) || column(s.end) == column(s.begin)) continue;
      std::string label = text(timing.tasks.stages[stage][i], timing.tasks.schedule.chunks);
      label.resize((column(s.end) - column(s.begin)) * (cell + 1), ' ');
      row.replace(begin + column(s.begin) * (cell + 1), label.size(), label);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    result += row + "\n";
  }
  return result;
}

/// "rank 0  0:F0 1:F0>1 2:B0<1 3:B0 4:-0": sent to rank 1, received from it, and micro-batch 0 released; "*2" is a
/// collective of group 2.
inline std::string text(const Actions& all) {
  const int chunks = all.schedule.chunks;
  std::string result;
  for (int rank = 0; rank < all.stages.size(); ++rank) {
    result += "rank " + std::to_string(rank) + " ";
    for (int step = 0; step < all.stages[rank].size(); ++step) {
      const Action& a = all.stages[rank][step];
      result += " " + std::to_string(step) + ":";
      if (a.kind == ActionKind::collective)
        result += "*" + std::to_string(a.peer);
      else
        result += a.kind == ActionKind::release ? "-" + text(a.task, chunks).substr(1) : text(a.task, chunks);
      if (a.kind == ActionKind::send) result += ">" + std::to_string(a.peer);
      if (a.kind == ActionKind::receive) result += "<" + std::to_string(a.peer);
    }
    result += "\n";
  }
  return result;
}

}  // namespace parallel
