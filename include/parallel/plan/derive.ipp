// The passes at start-up, and what they say of a mesh that they refuse; derive.hpp says how they are called.
#pragma once
#include <map>
#include <mutex>
#include <utility>

#include <parallel/plan/derive.hpp>

namespace parallel::internals {

PARALLEL_INLINE std::string explain(const Fault& fault, const GraphView& g, const Mesh& mesh) {
  std::string result(sentence_of(fault.refusal.reason));
  const std::string axis = fault.refusal.axis != nullptr ? std::string(fault.refusal.axis->text()) : "";
  if (fault.refusal.reason == Reason::not_divisible) {
    const Type& type = g.value(fault.value).type;
    const Dim& dim = type.layout.dims[fault.dim];
    std::string valid;
    for (std::int64_t n = 1; n <= most_named; ++n)
      if (dim.size % n == 0 && divides(g, mesh, fault.refusal.axis, n))
        valid += (valid.empty() ? "" : ", ") + std::to_string(n);
    const int member = g.value(fault.value).member;
    const int chunks = chunks_of(g, dim, mesh);
    result += ": " + text(mesh) +
              (chunks > 1 ? " with " + std::to_string(chunks) + " chunks on each stage, for " + text(*g.schedule) + ","
                          : "") +
              " does not divide dimension " + std::to_string(fault.dim) + " (" + std::to_string(dim.size) + ") of " +
              text(type);
    if (member >= 0) result += " (" + std::string(g.path(member)) + ")";
    return result + (valid.empty() ? "; no extent of " + axis + " does" : "; valid extents of " + axis + ": " + valid);
  }
  if (fault.refusal.reason == Reason::stage_share) {
    const auto [layers, stages, chunks, group] = fault.refusal.figures;
    return result + ": " + text(mesh) + " gives each stage " + std::to_string(layers / stages) + " of " +
           std::to_string(layers) + " layers, for " + text(*g.schedule) + " in " + std::to_string(chunks) +
           (chunks == 1 ? " chunk" : " chunks") +
           (group == 1 ? "" : ", in groups of " + std::to_string(group) + " by its Recompute");
  }
  if (fault.refusal.reason == Reason::held_nowhere) {
    const Value& value = g.value(fault.value);
    return result + ": " + text(value.type) +
           (value.member >= 0 ? " (" + std::string(g.path(value.member)) + ")" : "") + " in " + text(mesh);
  }
  if (fault.refusal.reason == Reason::no_member) return result;
  if (fault.refusal.reason == Reason::staged_twice || fault.refusal.reason == Reason::stages_named ||
      fault.refusal.reason == Reason::no_such_stage || fault.refusal.reason == Reason::asynchronous)
    return result + ": " + text(mesh) + ", stages on " + std::string(g.stages->text());
  if (fault.refusal.reason == Reason::outside_layers || fault.refusal.reason == Reason::remembered ||
      (g.misused >= 0 && fault.refusal.reason == g.unfit))
    return result + ": " + std::string(g.path(g.misused));
  if ((g.unfit != Reason::none && fault.refusal.reason == g.unfit) ||
      (fault.node >= 0 && fault.refusal.reason != Reason::strict)) {
    if (fault.node < 0 || g.node(fault.node).origin < 0) return result;
    const Source source = g.origin(g.node(fault.node)).source;
    return result + ", at " + source.file + ":" + std::to_string(source.line);
  }
  if (fault.refusal.reason == Reason::strict) {
    const Node& node = g.node(fault.node);
    const Source source = g.origin(node).source;
    return result + ": " + std::string(name_of(node.transition.collective)) + " on " + axis + " of " +
           text(g.value(node.operands[0]).type) + " to " + text(g.value(node.result).type) + ", " +
           std::to_string(fault.refusal.figures[2]) + " bytes, at " + source.file + ":" + std::to_string(source.line);
  }
  if (fault.refusal.reason == Reason::over_memory || fault.refusal.reason == Reason::over_bytes)
    return result + ": " + std::to_string(fault.refusal.figures[0]) + " bytes" + (axis.empty() ? "" : " on " + axis) +
           " with " + text(mesh) + ", the budget is " + std::to_string(fault.refusal.figures[1]);
  AxisList named;
  for (const Value& v : g.values) v.type.layout.collect(named);
  std::string valid;
  for (const Axis* a : named)
    if (a != host_axis(g)) valid += (valid.empty() ? "" : ", ") + std::string(a->text());
  return result + ": " + axis + " in " + text(mesh) + "; the program's axes: " + (valid.empty() ? "none" : valid);
}

namespace deriving {
/// The plans that were derived and are there, by their numbers.
struct Living {
  std::mutex mutex{};
  std::uint64_t last = 0;
  std::map<std::uint64_t, std::weak_ptr<const Plan>> plans{};
};
inline Living& living() {
  static Living* const all = new Living;  // which plans that are static, too, do not outlive
  return *all;
}
/// A plan, and its memory.
struct WithMemory {
  std::shared_ptr<const Planned> planned;
  Plan plan;
  WithMemory(std::shared_ptr<const Planned>&& p, const GraphView& graph, const Mesh& mesh)
      : planned(std::move(p)), plan(graph, mesh, planned->events, planned->storage, planned->packing, planned->memory) {
    const std::lock_guard lock(living().mutex);
    plan.derived = ++living().last;
  }
  ~WithMemory() {
    const std::lock_guard lock(living().mutex);
    living().plans.erase(plan.derived);
  }
  WithMemory(const WithMemory&) = delete;
  WithMemory& operator=(const WithMemory&) = delete;
};
}  // namespace deriving

PARALLEL_INLINE OwnedPlan::OwnedPlan(std::shared_ptr<const Planned> planned, const GraphView& graph, const Mesh& mesh) {
  auto kept = std::make_shared<const deriving::WithMemory>(std::move(planned), graph, mesh);
  plan_ = std::shared_ptr<const Plan>(kept, &kept->plan);
  const std::lock_guard lock(deriving::living().mutex);
  deriving::living().plans.emplace(plan_->derived, plan_);
}
PARALLEL_INLINE std::shared_ptr<const Plan> keep(const Plan& plan) {
  if (plan.derived == 0) return nullptr;
  const std::lock_guard lock(deriving::living().mutex);
  const auto found = deriving::living().plans.find(plan.derived);
  return found == deriving::living().plans.end() ? nullptr : found->second.lock();
}

namespace deriving {
inline OwnedPlan planned_into(const std::shared_ptr<Planned>& planned, const GraphView& graph, const Mesh& given,
                              std::span<const GraphView> beside, const Demands& demands) {
  const Mesh mesh = with_cut(graph, given);
  const Fault fault = check(graph, mesh, beside, demands);
  if (fault.refusal) throw MeshRefused(fault.refusal.reason, explain(fault, graph, mesh));
  if (const ScheduleRefusal refusal = check_schedule(graph, mesh))
    throw MeshRefused(Reason::none, text(refusal) + ", for " + text(mesh));
  const GraphView graph_here = plan_into(*planned, graph, mesh);
  OwnedPlan made(planned, graph_here, mesh);
  const Fault over = over_budget(made, demands);
  if (over.refusal) throw MeshRefused(over.refusal.reason, explain(over, made.get().graph, mesh));
  return made;
}
}  // namespace deriving

PARALLEL_INLINE OwnedPlan derive(const GraphView& graph, const Mesh& mesh, std::span<const GraphView> beside,
                                 const Demands& demands) {
  return deriving::planned_into(std::make_shared<Planned>(), graph, mesh, beside, demands);
}
PARALLEL_INLINE OwnedPlan derive(Graph graph, const Mesh& mesh, std::span<const GraphView> beside,
                                 const Demands& demands) {
  auto planned = std::make_shared<Planned>();
  planned->graph = std::move(graph);
  return deriving::planned_into(planned, planned->graph, mesh, beside, demands);
}

}  // namespace parallel::internals
