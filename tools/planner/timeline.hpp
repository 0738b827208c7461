// A simulated step in the format of ui.perfetto.dev and chrome://tracing: a process per rank, a track for computation and one per set of axes.
#pragma once
#include <parallel/plan/simulate.hpp>

#include "cause.hpp"
#include "json.hpp"

namespace planner {

inline constexpr int most_timeline_ranks = 16;  ///< all ranks do the same: more would only be longer

/// Times in microseconds, as the format has them.
inline Json timeline(const Plan& plan, const Simulation& step, const std::string& program) {
  Json events = Json::array();
  const int ranks = plan.mesh.ranks() < most_timeline_ranks ? plan.mesh.ranks() : most_timeline_ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    std::string place;
    for (int i = 0; i < plan.mesh.count; ++i)
      place += (i == 0 ? "" : ", ") + words(plan.mesh.axes[i].axis->text()) + " " + std::to_string(plan.mesh.coordinate(rank, plan.mesh.axes[i].axis));
    events.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", rank}, {"args", {{"name", "rank " + std::to_string(rank) + " (" + place + ")"}}}});
    events.push_back({{"ph", "M"}, {"name", "process_sort_index"}, {"pid", rank}, {"args", {{"sort_index", rank}}}});
    for (int t = 0; t <= step.tracks.size(); ++t) {
      const std::string name = t == 0 ? "computation" : "collectives on " + text(sending_axes(step.tracks[t - 1], plan.mesh));
      events.push_back({{"ph", "M"}, {"name", "thread_name"}, {"pid", rank}, {"tid", t}, {"args", {{"name", name}}}});
      events.push_back({{"ph", "M"}, {"name", "thread_sort_index"}, {"pid", rank}, {"tid", t}, {"args", {{"sort_index", t}}}});
    }
    for (const Slice& s : step.slices) {
      const Node& node = plan.graph.node(s.node);
      const bool sends = s.track > 0;
      Json args{{"member", printing::member_path(plan, node)}, {"line", place_of(plan.graph.origin(node).source)}, {"iteration", s.iteration}};
      if (sends) {
        args["tensor"] = text(plan.graph.value(node.operands[0]).type);
        args["message"] = plan.all.message(node), args["sent"] = plan.all.sent(node), args["cause"] = brief(plan.graph, node);
      } else if (node.results > 0) {
        args["tensor"] = text(plan.graph.value(node.result).type);
      }
      events.push_back({{"ph", "X"},
                        {"name", sends ? words(parallel::name_of(node.transition.collective)) : words(node.operation->name)},
                        {"cat", words(parallel::name_of(node.phase))},
                        {"pid", rank},
                        {"tid", s.track},
                        {"ts", 1e6 * s.begin},
                        {"dur", 1e6 * (s.end - s.begin)},
                        {"args", args}});
    }
  }
  return {{"traceEvents", events}, {"displayTimeUnit", "ms"}, {"otherData", {{"program", program}, {"mesh", text(plan.mesh)}}}};
}

/// The same step for the report: seconds, the track by its axes.
inline Json slices(const Plan& plan, const Simulation& step) {
  Json result = Json::array();
  for (const Slice& s : step.slices)
    result.push_back({{"event", s.event}, {"node", s.node}, {"iteration", s.iteration}, {"track", s.track == 0 ? "compute" : text(sending_axes(step.tracks[s.track - 1], plan.mesh))},
                      {"begin", s.begin}, {"end", s.end}});
  return result;
}

}  // namespace planner
