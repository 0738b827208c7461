// --run FILE --times: where the time of a step went, operation by operation, beside what each moves and computes, and
// beside the least that it could take on a machine.
#pragma once
#include <optional>
#include <tuple>

#include <parallel/cost/price.hpp>

#include "cause.hpp"
#include "overlay.hpp"

namespace planner {

/// Of one operation, or fusion, or collective, in a step on one rank.
struct Spent {
  std::string what{}, phase{}, member{}, type{}, place{};
  double seconds = 0, calls = 0;
  double flops = 0, bytes = 0;  ///< of a step; of a collective what the rank sends
  double floor = 0;             ///< seconds of a step on the machine; 0: none is known
};

inline std::string phase_of(const GraphView& g, const Node& node) {
  if (node.results > 0 && g.value(node.result).again >= 0) return "again";
  return node.phase == Phase::forward ? "forward" : node.phase == Phase::backward ? "backward" : "optimizer";
}

/// What one call of an event is: who asked for it, what it gives, what it does.
inline Spent described(const Plan& plan, const Event& e, const std::optional<Machine>& machine) {
  const GraphView& g = plan.graph;
  const Node& node = g.node(e.node);
  Spent s;
  s.phase = phase_of(g, node);
  s.member = node.member >= 0 ? path_of(g, node.member) : "";
  s.place = place_of(g.origin(node).source);
  int last = e.node;
  if (e.kind == EventKind::compute) {
    s.what = operations(g, e);
    each_node(g, e, [&](int n) {
      s.flops += plan.flops(g.node(n));
      last = n;
    });
    s.bytes = bytes_moved(plan, e, machine.value_or(Machine{}));
  } else {
    s.what = std::string(name_of(node.transition.collective)) + (node.transition.maximum ? "_max" : "") + " on " +
             text(node.transition.axes);
    s.bytes = plan.all.sent(node);
  }
  if (g.node(last).results > 0) s.type = text(g.value(g.node(last).result).type);
  if (machine) s.floor = seconds(plan, e, *machine);
  return s;
}

/// What a rank spent, the dearest first; medians over the steps but the first. A start and its wait are one.
inline std::vector<Spent> spent(const Plan& plan, const RankRecord& record, const std::optional<Machine>& machine) {
  const int first = record.lines.front().step;
  const bool several = record.lines.back().step != first;
  struct Lines {
    std::map<int, double> seconds{};  // by step
    int calls = 0;
  };
  std::map<std::pair<int, bool>, Lines> lines;  // by node and whether it is computed
  for (const Recorded& r : record.lines) {
    if ((several && r.step == first) || is_counter(r)) continue;
    Lines& of = lines[{r.node, r.event == "compute"}];
    of.seconds[r.step] += r.end - r.begin;
    of.calls += r.event == "wait" ? 0 : 1;
  }
  std::map<std::tuple<std::string, std::string, std::string, std::string, std::string>, Spent> alike;
  std::map<std::pair<int, bool>, bool> seen;
  for (const Event& e : plan.events) {
    const auto of = lines.find({e.node, e.kind == EventKind::compute});
    const bool takes_time = e.kind == EventKind::compute || e.kind == EventKind::start;
    if (!takes_time || of == lines.end() || std::exchange(seen[of->first], true)) continue;
    std::vector<double> seconds;
    for (const auto& [step, s] : of->second.seconds) seconds.push_back(s);
    const Spent one = described(plan, e, machine);
    Spent& s = alike[{one.what, one.phase, one.member, one.type, one.place}];
    const double calls = static_cast<double>(of->second.calls) / static_cast<double>(seconds.size());
    s = {one.what,
         one.phase,
         one.member,
         one.type,
         one.place,
         s.seconds + median(seconds),
         s.calls + calls,
         s.flops + one.flops * calls,
         s.bytes + one.bytes * calls,
         s.floor + one.floor * calls};
  }
  std::vector<Spent> all;
  for (auto& [key, s] : alike) all.push_back(std::move(s));
  std::sort(all.begin(), all.end(), [](const Spent& a, const Spent& b) { return a.seconds > b.seconds; });
  return all;
}

/// In seconds, medians over a rank's steps but the first.
struct StepTimes {
  double whole = 0, between = 0;  ///< from its first event to its last; of it what lies between two
  double counter = 0;             ///< before it: comparing it with other ranks, and waiting for those that come late
};
inline StepTimes step_times(const RankRecord& record) {
  struct Step {
    double begin = 0, end = 0, spent = 0, counter = 0;
    bool begun = false;
  };
  std::map<int, Step> steps;
  for (const Recorded& r : record.lines) {
    Step& s = steps[r.step];
    if (is_counter(r)) {
      s.counter += r.end - r.begin;
      continue;
    }
    if (!std::exchange(s.begun, true)) s.begin = r.begin;
    s.end = r.end;
    s.spent += r.end - r.begin;
  }
  if (steps.size() > 1) steps.erase(steps.begin());
  std::vector<double> whole, between, counter;
  for (const auto& [number, s] : steps) {
    whole.push_back(s.end - s.begin);
    between.push_back(s.end - s.begin - s.spent);
    counter.push_back(s.counter);
  }
  return {median(whole), std::max(median(between), 0.0), median(counter)};
}

/// An operation that takes this much of a step, and so many times its floor, is named.
inline constexpr double slow_share = 0.01, slow_times = 2;

/// A row for each operation, and a sentence for each that is slow for the machine.
inline std::string times(const Plan& plan, const RankRecord& record, const std::optional<Machine>& machine) {
  const auto [step, between, counter] = step_times(record);
  const auto number = [](const char* format, double x) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, format, x);
    return std::string(buffer);
  };
  std::string out, slow;
  const auto add = [&](const std::vector<std::string>& cells) {
    static constexpr std::size_t columns[] = {0, 11, 18, 27, 37, 46, 54};
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      pad(line, columns[i]);
      line += cells[i];
    }
    while (line.ends_with(' ')) line.pop_back();
    out += line + "\n";
  };
  add({"time", "calls", "share", "GFLOP/s", "GB/s", machine ? "floor" : "", "operation"});
  double all = 0;
  for (const Spent& s : spent(plan, record, machine)) {
    all += s.seconds;
    const double share = step > 0 ? s.seconds / step : 0, floor = s.seconds > 0 ? s.floor / s.seconds : 0;
    std::string what = s.what + ", " + s.phase;
    for (const std::string& more : {s.member, s.type, s.place}) what += more.empty() ? "" : "  " + more;
    add({duration(s.seconds), number("%.4g", s.calls), percent(share),
         s.flops > 0 && s.seconds > 0 ? number("%.1f", s.flops / s.seconds / 1e9) : "-",
         s.bytes > 0 && s.seconds > 0 ? number("%.2f", s.bytes / s.seconds / 1e9) : "-",
         machine ? number("%.2f", floor) : "", what});
    if (machine && share >= slow_share && s.seconds > slow_times * s.floor)
      slow += "slow: " + s.what + ", " + s.phase + (s.member.empty() ? "" : ", of " + s.member) + ", takes " +
              duration(s.seconds) + " where " + words(machine->name.view()) + " needs " + duration(s.floor) +
              (s.place.empty() ? "" : " (" + s.place + ")") + "\n";
  }
  const auto add_rest = [&, whole = step](double rest, const char* what) {
    add({duration(rest), "", percent(whole > 0 ? rest / whole : 0), "", "", "", what});
  };
  add_rest(between, "between operations");
  const double more = step - all - between, rest = std::abs(more) < 1e-6 * step ? 0 : more;  // but for rounding
  add_rest(rest, rest < 0 ? "less: medians of operations add up to more than the median step"
                          : "what operations took at times beyond their medians");
  add({duration(step), "", "", "", "", "", "a step of rank " + std::to_string(record.rank)});
  if (counter > 0)
    add({duration(counter), "", "", "", "", "",
         "before it the counter of steps, and the wait for ranks that are late"});
  return out + (slow.empty() ? "" : "\n" + slow);
}

}  // namespace planner
