// Which mesh, which schedule, and with which annotations, a program would be fastest on: all that so many ranks can be,
// predicted on a described machine.
#pragma once
#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <parallel/cost/predict.hpp>
#include <parallel/question/text.hpp>

#include "asked.hpp"
#include "tree.hpp"
#include "trials.hpp"

namespace planner {

/// What is asked: the ranks, the machine, and what a rank may need.
struct Question {
  int ranks = 1;
  Machine machine{};
  std::int64_t memory = std::numeric_limits<std::int64_t>::max();
  bool limited() const { return memory != std::numeric_limits<std::int64_t>::max(); }
};

/// A program on one mesh, by one schedule where the mesh has stages.
struct Candidate {
  Mesh mesh{};
  const Schedule* schedule = nullptr;  ///< none: no stages
  Prediction step{};
  std::vector<double> sent{};  ///< bytes of a step by axis of the mesh, of the busiest rank
  double copied = 0;           ///< bytes that it copies to its host and back
  bool fits = true;
  std::string why{};   ///< what most of the step is lost by, or what does not fit
  std::string with{};  ///< the annotations that the source lacks; none: the program as it is
  double again = 0;    ///< FLOP of all ranks beside those of the program as it is, as a part of these

  double flops() const {
    double all = 0;
    for (const StageTimes& s : step.stages) all += s.flops * s.count;
    return all;
  }
};

/// A mesh that cannot be, and why.
struct Impossible {
  Mesh mesh{};
  std::string why{};
};

struct Advice {
  /// those that fit first, the fastest first; then those that do not, by their memory
  std::vector<Candidate> candidates{};
  std::vector<Impossible> impossible{};
  std::vector<std::string> tried{};    ///< annotations
  std::vector<std::string> refused{};  ///< annotations with which the program does not compile
  std::deque<Schedule> schedules{};    ///< those that were tried
  Advice() = default;
  Advice(const Advice&) = delete;  // candidates point into it
  Advice& operator=(const Advice&) = delete;
};

/// Bytes that a rank copies to its host and back in a step.
inline double copied(const Plan& plan) {
  const Axis* const host = host_axis(plan.graph);
  return host != nullptr ? plan.sent(*host) : 0;
}

namespace advising {
/// Every mesh of so many ranks, axes of one rank left out.
inline std::vector<Mesh> meshes(const std::vector<const Axis*>& axes, int ranks) {
  std::vector<Mesh> found;
  const auto choose = [&](auto&& again, std::size_t axis, int left, const Mesh& mesh) -> void {
    if (axis == axes.size()) {
      if (left == 1) found.push_back(mesh);
      return;
    }
    for (int n = left; n >= 1; --n)
      if (left % n == 0) {
        Mesh next = mesh;
        if (n > 1) next.axes[next.count++] = {axes[axis], n};
        again(again, axis + 1, left / n, next);
      }
  };
  choose(choose, 0, ranks, Mesh{});
  return found;
}

/// The shipped schedules that run the program as it is written; one that updates without waiting is another program.
inline std::deque<Schedule> schedules_for(const GraphView& graph) {
  if (graph.schedule->asynchronous) return {*graph.schedule};
  std::deque<Schedule> found;
  for (const Schedule* s : schedules::with_one_chunk)
    if (!s->asynchronous) found.push_back(*s);
  int layers = 1;
  for (const Region& r : graph.regions) layers = r.staged && r.count > layers ? r.count : layers;
  for (int chunks = 2; chunks <= layers; ++chunks)
    if (layers % chunks == 0) found.push_back(*find_schedule(schedules::interleaved<1>.name, chunks));
  return found;
}

/// "tensor=4", of several axes "data=2, tensor=4"
inline std::string extents(const AxisList& axes, const Mesh& mesh) {
  std::string result;
  for (const Axis* a : axes)
    result += (result.empty() ? "" : ", ") + std::string(a->text()) + "=" + std::to_string(mesh.extent(a));
  return result;
}
/// The collective that takes most time on these axes.
inline std::string costliest(const Plan& plan, const AxisList& axes, const Machine& machine) {
  double most = -1;
  std::string name;
  plan.all.each([&](const Node& node, std::int64_t times) {
    if (!(sending_axes(node.transition.axes, plan.mesh) == axes)) return;
    const double time = static_cast<double>(times) * collective_seconds(plan, node, machine);
    if (time > most) {
      most = time;
      name = std::string(name_of(node.transition.collective));
    }
  });
  return name;
}

/// What does not fit: the use that takes most.
inline std::string too_large(const Prediction& step, const Question& question) {
  const StageTimes* fullest = &step.stages[0];
  for (const StageTimes& s : step.stages)
    if (s.memory.peak() > fullest->memory.peak()) fullest = &s;
  int use = 0;
  for (int u = 0; u < uses; ++u)
    if (fullest->memory.by_use[u] > fullest->memory.by_use[use]) use = u;
  return "does not fit in " + printing::bytes(static_cast<double>(question.memory)) + ": " +
         printing::bytes(static_cast<double>(fullest->memory.by_use[use])) + " of " +
         std::string(name_of(static_cast<Use>(use)));
}
/// What the largest part of the step is lost by, where that is anything: waiting, a bubble, the same work on every rank
/// of an axis.
inline std::string lost_by(const Candidate& c, const Plan& plan, int micro_batches, const Machine& machine) {
  double waited = 0;
  for (const Exposed& e : c.step.exposed) waited += e.seconds;
  const double computed = 1 - c.step.bubble() - waited / c.step.seconds;
  double most = 0.02;
  std::string why = "computes " + percent(computed) + " of the step";
  for (const Exposed& e : c.step.exposed)
    if (const double part = e.seconds / c.step.seconds; part > most) {
      most = part;
      why = extents(e.axes, plan.mesh) + ": waits for " + costliest(plan, e.axes, machine) + " " + percent(part) +
            " of the step";
    }
  if (c.step.bubble() > most) {
    most = c.step.bubble();
    why = extents({plan.graph.stages}, plan.mesh) + " with " + std::to_string(micro_batches) + " micro-batch" +
          (micro_batches > 1 ? "es" : "") + ": bubble " + percent(most);
  }
  for (int i = 0; i < plan.mesh.count; ++i) {
    const Extent& e = plan.mesh.axes[i];
    const double part = plan.redundant(*e.axis) * computed * (e.size - 1) / e.size;
    if (part > most) {
      most = part;
      why = extents({e.axis}, plan.mesh) + ": computes " + percent(plan.redundant(*e.axis)) +
            " of a rank's work on every rank of the axis";
    }
  }
  return why;
}

/// What is wrong with a mesh, without the sentence that all such have.
inline std::string particulars(const Fault& fault, const GraphView& graph, const Mesh& mesh) {
  const std::string all = explain(fault, graph, mesh), general(sentence_of(fault.refusal.reason));
  return all.size() > general.size() + 2 ? all.substr(general.size() + 2) : all;
}

inline Candidate candidate(const Graph& graph, const Mesh& mesh, const Question& question) {
  Candidate c{mesh,
              graph.stages != nullptr && mesh.extent(graph.stages) > 1 ? graph.schedule : nullptr,
              predict(graph, mesh, question.machine),
              {},
              0,
              true,
              ""};
  Planned planned;
  const Mesh busiest = with_cut(graph, mesh.on_stage(c.step.stages[c.step.busiest].stage));
  const GraphView view = plan_into(planned, graph, busiest);
  const Plan plan(view, busiest, planned.events, planned.storage, planned.packing, planned.memory);
  for (int i = 0; i < mesh.count; ++i) c.sent.push_back(plan.sent(*mesh.axes[i].axis));
  c.copied = copied(plan);
  c.fits = c.step.peak_memory() <= question.memory;
  c.why =
      c.fits ? lost_by(c, plan, pipeline_of(graph, mesh).micro_batches, question.machine) : too_large(c.step, question);
  return c;
}
}  // namespace advising

/// Everything that a program can be on so many ranks, in no order. `axes`: those that it may run on; `beside`: programs
/// that share them. `with`: annotations as which the graph was compiled. Returns whether all of it fits.
inline bool try_all(Advice& advice, const Graph& graph, const std::vector<const Axis*>& axes,
                    const std::vector<GraphView>& beside, const Question& question, const std::string& with = "") {
  using namespace advising;
  bool fits = true;
  if (!with.empty()) advice.tried.push_back(with);
  if (graph.stages != nullptr && advice.schedules.empty()) advice.schedules = schedules_for(graph);
  for (const Mesh& mesh : meshes(axes, question.ranks)) {
    const bool stages = graph.stages != nullptr && mesh.extent(graph.stages) > 1;
    std::string refused;
    bool any = false;
    const auto attempt = [&](const Graph& scheduled) {
      if (const Fault fault = check(scheduled, with_cut(scheduled, mesh), beside); fault.refusal)
        refused = refused.empty() ? particulars(fault, scheduled, mesh) : refused;
      else if (const ScheduleRefusal wrong = check_schedule(scheduled, mesh))
        refused = refused.empty() ? text(wrong) : refused;
      else {
        any = true;
        advice.candidates.push_back(candidate(scheduled, mesh, question));
        advice.candidates.back().with = with;
        fits = fits && advice.candidates.back().fits;
      }
    };
    if (!stages) attempt(graph);
    for (std::size_t s = 0; stages && s < advice.schedules.size(); ++s)
      attempt(with_schedule(graph, advice.schedules[s]));
    if (!any && with.empty()) advice.impossible.push_back({mesh, refused});
  }
  return fits;
}

/// What is alike but for annotations: meshes are compared by their words, as objects have axes of their own.
inline bool alike(const Candidate& a, const Candidate& b) {
  return text(a.mesh) == text(b.mesh) && (a.schedule == nullptr) == (b.schedule == nullptr) &&
         (a.schedule == nullptr || (a.schedule->name == b.schedule->name && a.schedule->chunks == b.schedule->chunks));
}
/// Brings all that was tried into its order, and compares what it computes.
inline void rank(Advice& advice) {
  for (Candidate& c : advice.candidates)
    for (const Candidate& as_is : advice.candidates)
      if (as_is.with.empty() && alike(c, as_is)) c.again = as_is.flops() > 0 ? c.flops() / as_is.flops() - 1 : 0;
  std::stable_sort(advice.candidates.begin(), advice.candidates.end(), [](const Candidate& a, const Candidate& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.step.seconds < b.step.seconds : a.step.peak_memory() < b.step.peak_memory();
  });
}

/// The program as it is.
inline void advise(Advice& advice, const Graph& graph, const std::vector<const Axis*>& axes,
                   const std::vector<GraphView>& beside, const Question& question) {
  try_all(advice, graph, axes, beside, question);
  rank(advice);
}

/// The program with annotations, too. `compiled(words)` calls its argument with graph, axes and programs beside as they
/// are with these, or not at all. What makes no step shorter is tried where something does not fit without, and so is
/// what is stored beside another context than the program's.
template <class Compiled>
void advise(Advice& advice, const Graph& graph, const std::vector<const Axis*>& axes,
            const std::vector<GraphView>& beside, const Question& question, Compiled compiled) {
  bool fits = true;
  const auto attempt = [&](const Trial& trial) {
    bool called = false;
    compiled(trial.words,
             [&](const Graph& with, const std::vector<const Axis*>& own, const std::vector<GraphView>& others) {
               called = true;
               fits = try_all(advice, with, own, others, question, trial.annotation);
             });
    if (!called) advice.refused.push_back(trial.annotation);
    return fits;
  };
  std::vector<Trial> stored = stored_trials(graph), contexts = context_trials(graph);
  stored.insert(stored.begin(), Trial{});
  contexts.insert(contexts.begin(), Trial{});
  for (const Trial& context : contexts)
    for (const Trial& s : stored) {
      const Trial trial = both(s, context);
      fits = trial.words.empty() ? try_all(advice, graph, axes, beside, question) : attempt(trial);
      if (fits && !context.words.empty()) break;
      for (const Trial& more : smaller(graph, s, question.machine.link_to_host() != nullptr))
        if (!fits) attempt(both(more, context));
    }
  rank(advice);
}

}  // namespace planner
