// A simulated step in the format of ui.perfetto.dev and chrome://tracing: a process per rank, a track for computation
// and one per set of axes.
#pragma once
#include <parallel/cost/simulate.hpp>

#include "cause.hpp"
#include "json.hpp"

namespace planner {

inline constexpr int most_timeline_ranks = 16;  ///< all ranks of a stage do the same: more would only be longer

/// A plan and its step: of a pipeline, those of one stage.
struct Simulated {
  OwnedPlan plan;
  Simulation step;
};

/// What a rank does, as a process. Times in microseconds, as the format has them.
inline void show(Json& events, const Plan& plan, const Simulation& step, int rank) {
  std::string place;
  for (int i = 0; i < plan.mesh.count; ++i)
    place += (i == 0 ? "" : ", ") + words(plan.mesh.axes[i].axis->text()) + " " +
             std::to_string(plan.mesh.coordinate(rank, plan.mesh.axes[i].axis));
  events.push_back({{"ph", "M"},
                    {"name", "process_name"},
                    {"pid", rank},
                    {"args", {{"name", "rank " + std::to_string(rank) + " (" + place + ")"}}}});
  events.push_back({{"ph", "M"}, {"name", "process_sort_index"}, {"pid", rank}, {"args", {{"sort_index", rank}}}});
  for (int t = 0; t <= step.tracks.size(); ++t) {
    const std::string name =
        t == 0 ? "computation" : "collectives on " + text(sending_axes(step.tracks[t - 1], plan.mesh));
    events.push_back({{"ph", "M"}, {"name", "thread_name"}, {"pid", rank}, {"tid", t}, {"args", {{"name", name}}}});
    events.push_back(
        {{"ph", "M"}, {"name", "thread_sort_index"}, {"pid", rank}, {"tid", t}, {"args", {{"sort_index", t}}}});
  }
  for (const Slice& s : step.slices) {
    const Node& node = plan.graph.node(s.node);
    const bool sends = s.track > 0;
    Json args{{"member", member_path(plan, node)},
              {"line", place_of(plan.graph.origin(node).source)},
              {"iteration", s.iteration}};
    if (sends) {
      args["tensor"] = text(plan.graph.value(node.operands[0]).type);
      args["message"] = plan.all.message(node);
      args["sent"] = plan.all.sent(node);
      args["cause"] = brief(plan.graph, node);
    } else if (node.results > 0) {
      args["tensor"] = text(plan.graph.value(node.result).type);
    }
    events.push_back({{"ph", "X"},
                      {"name", sends ? words(parallel::name_of(node.transition.collective))
                                     : operations(plan.graph, plan.events[static_cast<std::size_t>(s.event)])},
                      {"cat", words(parallel::name_of(node.phase))},
                      {"pid", rank},
                      {"tid", s.track},
                      {"ts", 1e6 * s.begin},
                      {"dur", 1e6 * (s.end - s.begin)},
                      {"args", args}});
  }
}

/// `stages`: all of a pipeline, else the one plan that all ranks have.
inline Json timeline(const std::vector<Simulated>& stages, const std::string& program) {
  Json events = Json::array();
  const Plan& first = *stages[0].plan;
  const std::size_t most = std::max<std::size_t>(1, most_timeline_ranks / stages.size());
  std::vector<std::size_t> shown(stages.size(), 0);
  for (int rank = 0; rank < first.mesh.ranks(); ++rank) {
    const std::size_t stage =
        stages.size() == 1 ? 0 : static_cast<std::size_t>(first.mesh.coordinate(rank, first.graph.stages));
    if (shown[stage] == most) continue;
    ++shown[stage];
    show(events, *stages[stage].plan, stages[stage].step, rank);
  }
  return {{"traceEvents", events},
          {"displayTimeUnit", "ms"},
          {"otherData", {{"program", program}, {"mesh", text(first.mesh)}}}};
}

/// The same step for the report: seconds, the track by its axes.
inline Json slices(const Plan& plan, const Simulation& step) {
  Json result = Json::array();
  for (const Slice& s : step.slices)
    result.push_back({{"event", s.event},
                      {"node", s.node},
                      {"iteration", s.iteration},
                      {"track", s.track == 0 ? "compute" : text(sending_axes(step.tracks[s.track - 1], plan.mesh))},
                      {"begin", s.begin},
                      {"end", s.end}});
  return result;
}

}  // namespace planner
