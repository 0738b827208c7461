// A plan as JSON, with a schema that stays: whoever reads it, a page or a script, needs nothing else. docs/plan-tool.md
// describes it.
#pragma once
#include <vector>

#include <nlohmann/json.hpp>

#include <parallel/question/moment.hpp>

#include "pipeline.hpp"
#include "why.hpp"

namespace parallel::internals {
/// For nlohmann's JSON.
template <class Json, class Record>
void to_json(Json& json, const IndexOf<Record>& index) {
  json = index.number;
}
}  // namespace parallel::internals

namespace planner {

using namespace parallel;
using namespace parallel::internals;
using Json = nlohmann::ordered_json;

inline constexpr int schema = 2;

inline std::string words(std::string_view text) { return std::string(text); }

inline Json json(const AxisList& axes) {
  Json result = Json::array();
  for (const Axis* a : axes) result.push_back(words(a->text()));
  return result;
}
inline Json json(const Mesh& mesh) {
  Json result = Json::array();
  for (int i = 0; i < mesh.count; ++i)
    result.push_back({{"axis", words(mesh.axes[i].axis->text())}, {"ranks", mesh.axes[i].size}});
  return result;
}
inline Json json(const Type& type) {
  Json shape = Json::array(), placements = Json::array();
  for (const Dim& d : type.layout.dims) {
    Json split = Json::array();
    for (const Axis* a : d) split.push_back(words(a->text()));
    Json dim{{"size", d.size}, {"axes", split}};
    if (d.ordered())
      dim["order"] = {{"how", d.order == Order::zigzag ? "zigzag" : "cyclic"}, {"axis", words(d.ordered_for->text())}};
    shape.push_back(dim);
  }
  for (const Placed& p : type.layout.others)
    placements.push_back({{"axis", words(p.axis->text())}, {"placement", text(p.placement)}});
  return {{"text", text(type)},
          {"dtype", words(parallel::name_of(type.dtype))},
          {"shape", shape},
          {"placements", placements}};
}

inline std::string_view name_of(Kind k) {
  constexpr std::string_view names[] = {"data", "parameter", "activation", "constant", "refused"};
  return names[static_cast<int>(k)];
}
inline std::string_view name_of(RegionKind k) {
  constexpr std::string_view names[] = {"program", "layers", "micro_batches", "steps"};
  return names[static_cast<int>(k)];
}
inline std::string_view name_of(EventKind k) {
  constexpr std::string_view names[] = {"compute", "start", "wait", "begin", "end"};
  return names[static_cast<int>(k)];
}
inline std::string_view name_of(Role r) {
  constexpr std::string_view names[] = {"parameter", "state", "input"};
  return names[static_cast<int>(r)];
}

inline Json member_path(const GraphView& g, int member) {
  return member < 0 ? Json(nullptr) : Json(words(g.path(member)));
}

inline Json json(const GraphView& g, const Origin& o) {
  Json rules = Json::array();
  for (int i = 0; i < o.axes.size(); ++i) rules.push_back({{"axis", words(o.axes[i]->text())}, {"rule", o.rules[i]}});
  Json operands = Json::array();
  for (const int v : o.operands) operands.push_back(v);
  return {{"operation", words(o.operation->name)},
          {"spelled", spelled(g, o)},
          {"operands", operands},
          {"rules", rules},
          {"result", o.result},
          {"member", member_path(g, o.member)},
          {"file", o.source.file},
          {"line", o.source.line}};
}

inline Json json(const Plan& plan, const Node& node) {
  const Transition& t = node.transition;
  Json result{{"kind", words(parallel::name_of(t.collective))},
              {"axes", json(sending_axes(t.axes, plan.mesh))},
              {"ranks", participants(t, plan.mesh)},
              {"from", text(t.from)},
              {"to", text(t.to)},
              {"reduction", words(parallel::name_of(t.reduction))},
              {"maximum", t.maximum},
              {"along", t.along}};
  if (calls(node, plan.mesh)) {
    result["message"] = plan.all.message(node);
    result["sent"] = plan.all.sent(node);
    result["logical"] = plan.all.logical(node);
    result["cause"] = brief(plan.graph, node);
    result["why"] = explained(plan, node);
  }
  return result;
}

/// What the stage of a plan does, and in which order; null where there are no stages.
inline Json stage_json(const Plan& plan) {
  const Pipeline p = pipeline_of(plan.graph, plan.mesh);
  if (p.stages == 1) return nullptr;
  Json tasks = Json::array(), begins = Json::array();
  for (const Slot& s : plan.graph.slots)
    tasks.push_back({{"work", words(name_of(task_of(plan.graph, s).work))},
                     {"micro_batch", s.micro_batch},
                     {"chunk", plan.graph.part(s.part).chunk},
                     {"segment", s.part},
                     {"lane", s.lane}});
  for (const int event : begins_of_parts(plan)) begins.push_back(event);
  return {{"axis", words(plan.graph.stages->text())},
          {"stage", plan.mesh.here},
          {"stages", p.stages},
          {"layers", staged_layers(plan)},
          {"schedule", text(*plan.graph.schedule)},
          {"chunks", p.chunks},
          {"micro_batches", p.micro_batches},
          {"in_flight", plan.graph.lanes()},
          {"parts", static_cast<int>(plan.graph.parts.size()) / p.chunks},
          {"segments", begins},
          {"tasks", tasks}};
}

/// Totals of a phase on every axis that it calls on.
inline Json json(const Communication& phase) {
  Json result = Json::array();
  for (const Axis* axis : phase.told())
    result.push_back({{"axis", words(axis->text())},
                      {"collectives", phase.collectives(*axis)},
                      {"calls", phase.calls(*axis)},
                      {"message", phase.messages(*axis)},
                      {"sent", phase.sent(*axis)}});
  return result;
}

/// An exchange beside the program.
inline Json json(const Comparison& exchange) {
  Json axes = Json::array();
  for (const Axis* a : exchange.axes()) axes.push_back(words(a->text()));
  return {{"axes", axes}, {"calls", exchange.calls()}, {"message", exchange.messages()}, {"sent", exchange.sent()}};
}

/// What lives in an arena, the device's or its host's, from its first event to its last, both counted.
inline Json lives(const Plan& plan, bool host) {
  Json result = Json::array();
  for (const Allocation& a : allocations(plan, host))
    result.push_back({{"use", words(internals::name_of(a.use))},
                      {"value", a.owner < 0 ? Json(nullptr) : Json(a.owner)},
                      {"member", member_path(plan.graph, charged_member(plan.graph, a))},
                      {"bytes", a.bytes},
                      {"offset", a.offset},
                      {"first", a.first},
                      {"last", a.last}});
  return result;
}

/// The memory of a rank over a step: a list for each use, for the scalars and the gaps, with a number for each event and
/// for the end of the step. `together` is all but the gaps; `members` says of whom it is.
inline Json over_time_json(const Plan& plan) {
  const Vector<Moment> all = moments(plan);
  Json result = Json::object();
  const auto list = [&](const std::string& name, auto of) {
    Json numbers = Json::array();
    for (const Moment& m : all) numbers.push_back(of(m));
    result[name] = numbers;
  };
  for (int u = 0; u < uses; ++u)
    list(words(internals::name_of(static_cast<Use>(u))), [&](const Moment& m) { return m.by_use[u]; });
  list("scalars", [](const Moment& m) { return m.scalars; });
  list("together", [](const Moment& m) { return m.bytes(); });
  list("gaps", [](const Moment& m) { return m.gaps(); });
  list("scratch", [&](const Moment& m) { return scratch(plan, m.event); });
  Json members = Json::object();
  const Vector<Allocation> living = allocations(plan);
  for (const Moment& m : all)
    for (const Charge& c : charges(plan, living, m.event)) {
      const std::string path = c.member < 0 ? "-" : words(plan.graph.path(c.member));
      if (!members.contains(path)) members[path] = std::vector<std::int64_t>(static_cast<std::size_t>(all.size()), 0);
      Json& number = members[path][static_cast<std::size_t>(m.event)];
      number = number.get<std::int64_t>() + c.bytes;
    }
  result["members"] = members;
  return result;
}

/// How often each node happens in a step: 0 where it is computed or sent by none of the events, as a gather in whose
/// place others stand. What takes no time happens as often as its region.
inline std::vector<std::int64_t> times_of_nodes(const Plan& plan) {
  const GraphView& g = plan.graph;
  std::vector<std::int64_t> times;
  for (const Node& n : g.nodes) {
    const Collective c = n.transition.collective;
    const bool by_events = n.operation->computes || (n.is(Structural::move) && (communicates(c) || copies(c)));
    times.push_back(by_events ? 0 : g.times(n));
  }
  const auto happens = [&](int n, std::int64_t often) { times[static_cast<std::size_t>(n)] += often; };
  for (const Event& e : plan.events) {
    if (e.kind == EventKind::compute)
      each_node(g, e, [&](int n) {
        if (g.node(n).operation->computes) happens(n, g.times(g.node(n)));
      });
    else if (e.kind == EventKind::start && !starts_next(e))
      happens(e.node, g.times(g.node(e.node)));
  }
  return times;
}

/// Everything that the plan says. `program`: its name.
inline Json json(const Plan& plan, const std::string& program) {
  const GraphView& g = plan.graph;
  Json regions = Json::array(), values = Json::array(), origins = Json::array(), nodes = Json::array(),
       events = Json::array(), members = Json::array();
  for (const Region& r : g.regions)
    regions.push_back({{"kind", words(name_of(r.kind))},
                       {"parent", r.parent},
                       {"count", r.count},
                       {"blocks", r.blocks},
                       {"reversed", r.reversed},
                       {"staged", r.staged}});
  for (const Value& v : g.values) {
    Json value = json(v.type);
    value["kind"] = words(name_of(v.kind));
    value["node"] = v.node;
    value["member"] = member_path(g, v.member);
    value["bytes"] = local_bytes(v.type, plan.mesh);
    values.push_back(value);
  }
  for (const Origin& o : g.origins) origins.push_back(json(g, o));
  const std::vector<std::int64_t> times = times_of_nodes(plan);
  for (const Node& n : g.nodes) {
    Json operands = Json::array(), results = Json::array();
    for (const int o : n.operands) operands.push_back(o);
    for (int r = 0; r < n.results; ++r) results.push_back(n.result + r);
    Json node{{"operation", words(n.operation->name)},
              {"phase", words(parallel::name_of(n.phase))},
              {"region", n.region},
              {"times", times[nodes.size()]},
              {"in_last", n.in_last < 0 ? Json(nullptr) : Json(int{n.in_last})},
              {"origin", n.origin < 0 ? Json(nullptr) : Json(n.origin)},
              {"member", member_path(g, n.member)},
              {"operands", operands},
              {"results", results},
              {"flops", n.operation->computes ? plan.flops(n) : 0.0}};
    if (!n.transition.axes.empty()) node["transition"] = json(plan, n);
    nodes.push_back(node);
  }
  for (const Event& e : plan.events) {
    events.push_back(
        {{"kind", words(name_of(e.kind))}, {"node", e.node}, {"crossing", e.crossing}, {"ahead", e.ahead}});
    if (e.nodes == 1) continue;
    Json fused = Json::array();
    each_node(g, e, [&](int n) { fused.push_back(n); });
    nodes[static_cast<std::size_t>(e.node)]["fused"] = {{"operations", operations(g, e)}, {"nodes", fused}};
  }
  for (const Member& m : g.members) {
    Json member = json(m.type);
    member["path"] = words(g.path(m));
    member["role"] = words(name_of(m.role));
    member["layers"] = m.layers;
    member["bytes"] = local_bytes(m.type, plan.mesh);
    member["value"] = m.value;
    members.push_back(member);
  }
  Json memory{{"peak", plan.peak_memory()}, {"arena", plan.memory.arena}, {"saved", plan.saved_memory()}},
      host{{"bytes", plan.host_memory()}, {"arena", plan.memory.host_arena}};
  for (int u = 0; u < uses; ++u) {
    memory["by_use"][words(internals::name_of(static_cast<Use>(u)))] = plan.memory.by_use[u];
    host["by_use"][words(internals::name_of(static_cast<Use>(u)))] = plan.memory.host_by_use[u];
  }
  const account::Taken beside = plan.beside();
  memory["cpu"] = {{"rounding", beside.rounding},
                   {"scratch", beside.scratch},
                   {"process", plan.process_memory()},
                   {"terms_of_sums_over_mpi", plan.terms_of_sums()}};
  memory["allocations"] = lives(plan, false);
  host["allocations"] = lives(plan, true);
  memory["host"] = host;
  memory["over_time"] = over_time_json(plan);
  Json redundant = Json::array();
  for (int i = 0; i < plan.mesh.count; ++i)
    redundant.push_back(
        {{"axis", words(plan.mesh.axes[i].axis->text())}, {"share", plan.redundant(*plan.mesh.axes[i].axis)}});
  Json links = Json::array();
  for (int i = 0; i < plan.mesh.count; ++i)
    for (int rank = 0; rank < plan.mesh.axes[i].size && plan.all.one_sided_on(*plan.mesh.axes[i].axis); ++rank) {
      const Traffic link = plan.link(*plan.mesh.axes[i].axis, rank);
      links.push_back({{"axis", words(plan.mesh.axes[i].axis->text())},
                       {"rank", rank},
                       {"sent", link.sent},
                       {"received", link.received}});
    }
  return {{"schema", schema},
          {"program", program},
          {"mesh", json(plan.mesh)},
          {"ranks", plan.mesh.ranks()},
          {"pipeline", stage_json(plan)},
          {"totals",
           {{"forward", json(plan.forward)}, {"backward", json(plan.backward)}, {"optimizer", json(plan.optimizer)}}},
          {"links", links},
          {"agreement",
           {{"start", json(plan.agreement.start)},
            {"counter", json(plan.agreement.counter)},
            {"inputs", json(plan.agreement.inputs)},
            {"end", json(plan.agreement.end)}}},
          {"memory", memory},
          {"flops", plan.flops()},
          {"flops_again", plan.flops_again()},
          {"redundant", redundant},
          {"members", members},
          {"regions", regions},
          {"origins", origins},
          {"values", values},
          {"nodes", nodes},
          {"events", events}};
}

}  // namespace planner
