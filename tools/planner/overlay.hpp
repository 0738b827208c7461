// A run laid over its plan: every call that was recorded is the planned one, and the measured times stand beside the
// predicted.
#pragma once
#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <parallel/plan/taking_part.hpp>
#include <parallel/plan/walk.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/recording.hpp>

#include "tree.hpp"

namespace planner {

/// A line of a record (include/parallel/run/recording.hpp writes them).
struct Recorded {
  int line = 0, step = 0, node = 0;
  std::string event{}, what{}, axes{}, dtype{};
  int ranks = 0;
  std::int64_t bytes = 0;
  double begin = 0, end = 0;
};
/// Whether it is the counter of steps: it waits for ranks that are late from before the step, so it is no part of the
/// step's time.
inline bool is_counter(const Recorded& r) { return r.node == Happened::counter; }
/// What one rank recorded.
struct RankRecord {
  std::string file{}, mesh{};
  int rank = 0;
  std::vector<Recorded> lines{};
};

inline std::string record_file(const std::string& of, int rank) { return of + "." + std::to_string(rank); }

/// Reads FILE.RANK. Throws Failure.
inline RankRecord read_record(const std::string& of, int rank) {
  const std::string file = record_file(of, rank);
  std::ifstream in(file);
  if (!in) throw Failure("there is no record '" + file + "'", exit_code::missing_input);
  RankRecord record{file, "", -1, {}};
  std::string line;
  int number = 0;
  const auto refuse = [&](const std::string& why) {
    return Failure("the record '" + file + "' line " + std::to_string(number) + " " + why + "; record the run again",
                   exit_code::bad_data);
  };
  const auto next = [&] {
    ++number;
    return static_cast<bool>(std::getline(in, line));
  };
  if (!next())
    throw Failure("the record '" + file + "' is empty: its run has not written it yet, or could not",
                  exit_code::bad_data);
  if (line != "parallel record 2") throw refuse("does not begin as a record does");
  if (!next() || !line.starts_with("mesh ")) throw refuse("names no mesh");
  record.mesh = line.substr(5);
  if (!next() || !line.starts_with("rank ")) throw refuse("names no rank");
  const char* end = line.data() + line.size();
  if (std::from_chars(line.data() + 5, end, record.rank).ptr != end) throw refuse("names no rank");
  if (record.rank != rank)
    throw Failure("the record '" + file + "' is of rank " + std::to_string(record.rank) + "; its name says another",
                  exit_code::plans_differ);
  while (next()) {
    std::istringstream words(line);
    Recorded r;
    r.line = number;
    if (!(words >> r.step >> r.event >> r.node >> r.what >> r.axes >> r.ranks >> r.dtype >> r.bytes >> r.begin >>
          r.end))
      throw refuse("is cut off or no event");
    if (!(r.begin <= r.end)) throw refuse("ends before it begins");
    if (!record.lines.empty() && r.begin < record.lines.back().end)
      throw refuse("begins before what stands above it has ended");
    record.lines.push_back(r);
  }
  if (record.lines.empty()) throw refuse("holds no event");
  return record;
}

/// What a rank must have done in a step, event by event.
inline std::vector<Recorded> expected(const Plan& plan, int rank) {
  std::vector<Recorded> result;
  if (const Comparison& counter = plan.agreement.counter; counter.calls() > 0) {
    Recorded r;
    r.node = Happened::counter;
    r.event = "count";
    r.what = "all_reduce_max";
    r.axes = text(counter.axes());
    r.ranks = plan.mesh.ranks();
    r.dtype = "f64";
    r.bytes = counter.messages();
    result.push_back(r);
  }
  each_event(plan, [&](const Event& e) {
    if (e.kind == EventKind::begin || e.kind == EventKind::end || !takes_part(plan, e, rank)) return;
    const Node& node = plan.graph.node(e.node);
    Recorded r;
    r.node = e.node;
    r.event = e.kind == EventKind::compute ? "compute" : e.kind == EventKind::start ? "start" : "wait";
    r.what = operations(plan.graph, e);
    r.axes = "-";
    r.dtype = "-";
    if (e.kind != EventKind::compute) {
      const Message m = message_of(node.transition, plan.mesh);
      const bool receives = m && plan.mesh.coordinate(rank, node.transition.axes) == m.to;
      r.what = std::string(name_of(receives ? Collective::receive : node.transition.collective)) +
               (node.transition.maximum ? "_max" : "");
      r.axes = text(node.transition.axes);
      // of the group
      r.ranks = node.transition.along != 0 ? plan.mesh.extent(node.transition.axes)
                                           : participants(node.transition, plan.mesh);
      r.dtype = std::string(name_of(plan.graph.value(node.operands[0]).type.dtype));
      r.bytes = plan.all.message(node);
    }
    result.push_back(r);
  });
  return result;
}

inline std::string said(const Recorded& r) {
  if (r.event == "compute") return r.what;
  return (r.event == "wait" ? "waits for " : "") + r.what + " of " + std::to_string(r.bytes) + " bytes of " + r.dtype +
         " among " + std::to_string(r.ranks) + " ranks on " + r.axes;
}

/// How a record differs from the plan, and the steps that were skipped in it.
struct Laid {
  std::string differs{};  ///< empty where it is the plan
  int line = 0;           ///< up to which it was the plan
  std::vector<int> skipped{};
};

/// Goes through a record event by event. A step whose gradients are no finite numbers is skipped, so that it lacks
/// every update; one that lacks some is no step of the plan.
inline Laid lay(const Plan& plan, const RankRecord& record) {
  const std::vector<Recorded> planned = expected(plan, record.rank);
  enum class Updates { unknown, made, skipped } updates = Updates::unknown;  // of the step
  Laid laid;
  std::size_t at = 0;
  int step = record.lines.front().step;
  const auto where = [&](const Recorded& r) {
    return "rank " + std::to_string(record.rank) + ", step " + std::to_string(r.step) + ", line " +
           std::to_string(r.line) + ": ";
  };
  if (step != 1) return {where(record.lines.front()) + "the steps before it are missing", record.lines.front().line};
  const auto pass_updates = [&](const Recorded* next) {  // those that a skipped step lacks
    for (; at < planned.size() && plan.graph.commit >= 0; ++at) {
      if (planned[at].event != "compute") return;
      const Node& node = plan.graph.node(planned[at].node);
      if (!node.operation->updates || node.phase != Phase::optimizer || updates == Updates::made) return;
      if (updates == Updates::unknown) {
        updates = next != nullptr && next->node == planned[at].node && next->event == planned[at].event
                      ? Updates::made
                      : Updates::skipped;
        if (updates == Updates::made) return;
        laid.skipped.push_back(step);
      }
    }
  };
  for (const Recorded& r : record.lines) {
    if (r.step != step) {
      pass_updates(nullptr);
      if (at != planned.size()) return {where(r) + "a step ended before " + said(planned[at]), r.line};
      if (r.step != step + 1)
        return {where(r) + "the step behind step " + std::to_string(step) + " is missing", r.line};
      step = r.step;
      at = 0;
      updates = Updates::unknown;
    }
    pass_updates(&r);
    if (at == planned.size())
      return {where(r) + said(r) + ", but the plan's step has ended" +
                  (updates == Updates::skipped ? ", as it was skipped" : ""),
              r.line};
    const Recorded& p = planned[at++];
    if (p.node != r.node || p.event != r.event || p.what != r.what || p.axes != r.axes || p.ranks != r.ranks ||
        p.dtype != r.dtype || p.bytes != r.bytes) {
      if (is_counter(p))
        return {where(r) + said(r) + ", but the plan says " + said(p) + " (the counter of steps)", r.line};
      const Node& node = plan.graph.node(p.node);
      const std::string member = member_path(plan, node), place = place_of(plan.graph.origin(node).source);
      return {where(r) + said(r) + ", but the plan says " + said(p) + " (" + member +
                  (place.empty() ? "" : ", " + place) + ")",
              r.line};
    }
  }
  pass_updates(nullptr);
  if (at != planned.size())
    return {"rank " + std::to_string(record.rank) + ": the record ends before " + said(planned[at]),
            record.lines.back().line};
  return laid;
}

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// Measured beside predicted: steps, then kinds of work, of one rank; medians over the steps but the first.
/// `predicted_step` 0: no machine is known.
inline std::string overlay(const Plan& plan, const RankRecord& record, const Price& price, double predicted_step) {
  std::map<int, std::pair<double, double>> steps;        // begin and end
  std::map<std::string, std::map<int, double>> seconds;  // by what it is, by step
  std::map<std::string, double> predicted;
  const int first = record.lines.front().step;
  const bool several = record.lines.back().step != first;
  for (const Recorded& r : record.lines) {
    if (several && r.step == first) continue;  // caches fill in the first
    if (!is_counter(r)) steps.try_emplace(r.step, r.begin, r.end).first->second.second = r.end;
    const std::string kind = is_counter(r)          ? "counter of steps"
                             : r.event == "compute" ? r.what
                                                    : r.what + " on " + r.axes;
    seconds[kind][r.step] += r.end - r.begin;
  }
  each_event(plan, [&](const Event& e) {
    const Node& node = plan.graph.node(e.node);
    if (e.kind == EventKind::compute) predicted[operations(plan.graph, e)] += price ? price(e) : 0;
    if (e.kind == EventKind::start)
      predicted[std::string(name_of(node.transition.collective)) + (node.transition.maximum ? "_max" : "") + " on " +
                text(node.transition.axes)] += price ? price(e) : 0;
  });
  std::string out = "what                                predicted    measured     measured / predicted\n";
  const auto row = [&](const std::string& what, double expectation, double measured) {
    std::string line = what;
    pad(line, 36);
    line += expectation > 0 ? duration(expectation) : "-";
    pad(line, 49);
    line += duration(measured);
    pad(line, 62);
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, "%.2f", expectation > 0 ? measured / expectation : 0.0);
    out += line + (expectation > 0 ? ratio : "-") + "\n";
  };
  std::vector<double> whole;
  for (const auto& [step, times] : steps) whole.push_back(times.second - times.first);
  row("a step", predicted_step, median(whole));
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [kind, by_step] : seconds) {
    std::vector<double> values;
    for (const auto& [step, value] : by_step) values.push_back(value);
    order.emplace_back(median(values), kind);
  }
  std::sort(order.rbegin(), order.rend());
  for (const auto& [measured, kind] : order) row("  " + kind, predicted[kind], measured);
  return out;
}

}  // namespace planner
