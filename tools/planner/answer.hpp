// What tools/plan answers: a plan in one of its formats, an explanation, a lock, or a run laid over its plan.
#pragma once
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include <parallel/file/new_file.hpp>

#include "choice.hpp"
#include "dot.hpp"
#include "json.hpp"
#include "lock.hpp"
#include "machine_file.hpp"
#include "over_time.hpp"
#include "overlay.hpp"
#include "picture.hpp"
#include "report.hpp"
#include "schedule_svg.hpp"
#include "source.hpp"
#include "svg.hpp"
#include "timeline.hpp"
#include "tree.hpp"
#include "why_member.hpp"
#include "why_memory.hpp"

namespace planner {

/// One program on one mesh, and what a step of it would take on a machine, where one is known.
struct Answer {
  OwnedPlan plan;
  std::string name;
  std::optional<Machine> machine;
  std::function<OwnedPlan(int)> on_stage;  ///< the same as another stage of its pipeline sees it
  const Graph* whole = nullptr;            ///< the program as no stage sees it

  Price price() const {
    if (!machine) return {};
    return [this](const Event& e) { return seconds(*plan, e, *machine); };
  }
  /// "stage=4, tensor=2; stage 1"
  std::string where() const {
    return parallel::text(plan->mesh) +
           (staged() ? "; " + words(plan->graph.stages->text()) + " " + std::to_string(plan->mesh.here) : "");
  }
  bool staged() const { return pipeline_of(plan->graph, plan->mesh).stages > 1; }
  std::vector<OwnedPlan> stages() const {
    std::vector<OwnedPlan> all;
    for (int k = 0; k < pipeline_of(plan->graph, plan->mesh).stages; ++k)
      all.push_back(k == plan->mesh.here ? plan : on_stage(k));
    return all;
  }
  /// All stages on the machine; nothing where there are none.
  std::optional<Prediction> predicted() const {
    if (!staged()) return {};
    return predict(*whole, plan->mesh, *machine);
  }
  /// A step on the machine, and how long it takes: of a pipeline, until all stages are done.
  std::pair<Simulation, double> simulated() const {
    const auto all = predicted();
    Simulation own = all ? simulate(*plan, *machine, *all) : simulate(*plan, *machine);
    const double seconds = all ? all->seconds : own.seconds;
    return {std::move(own), seconds};
  }
  /// The step of every stage; of a program without stages, the one of all ranks.
  std::vector<Simulated> simulated_each() const {
    const auto all = predicted();
    if (!all) return {{plan, simulate(*plan, *machine)}};
    std::vector<Simulated> steps;
    for (const OwnedPlan& stage : stages()) steps.push_back({stage, simulate(*stage, *machine, *all)});
    return steps;
  }
  /// The plan of the same, were everything kept that the backward pass computes again.
  OwnedPlan without_recomputation() const { return derive(kept_instead(*whole), plan->mesh, {}, {}); }
  /// Bytes of activations that recomputation saves.
  std::int64_t kept_instead_of_again() const {
    return without_recomputation()->memory.of(Use::activations) - plan->memory.of(Use::activations);
  }
  Json json() const {
    Json all = planner::json(*plan, name);
    if (plan->flops_again() > 0) all["memory"]["saved_by_recomputation"] = kept_instead_of_again();
    if (!machine) return all;
    const auto [step, seconds_of_step] = simulated();
    all["machine"] = {{"name", words(machine->name.view())}};
    all["seconds"] = seconds_of_step;
    for (const Event& e : plan->events) {  // an edge between stages may be a message in one chunk and a copy in another
      if (e.kind != EventKind::compute && e.kind != EventKind::start) continue;
      Json& node = all["nodes"][static_cast<std::size_t>(e.node)];
      node["seconds"] = std::max(node.value("seconds", 0.0), seconds(*plan, e, *machine));
    }
    const auto said = [](const Overlap& o) {
      return Json{{"seconds", o.seconds}, {"under_computation", o.under_computation}};
    };
    all["overlap"] = {{"collectives", said(overlap(step))},
                      {"gathers_of_parameters", said(overlap_of_gathers(*plan, step))}};
    all["timeline"] = slices(*plan, step);
    return all;
  }
  std::string text() const {
    std::string out = name + "\n" + head_of(*plan) + "\n\n" + tree(*plan, price()) + totals(*plan);
    if (plan->flops_again() > 0)
      out += "  without it             " + printing::bytes(static_cast<double>(kept_instead_of_again())) +
             " of activations more, peak " +
             printing::bytes(static_cast<double>(without_recomputation()->peak_memory())) + "\n";
    out += "\n" + phases_then(*plan);
    if (!machine) return out;
    const auto all = predicted();
    const auto [step, seconds_of_step] = simulated();
    out += "\npredicted step         " + duration(seconds_of_step) + " on " + words(machine->name.view()) + "\n";
    const auto say = [&](const std::string& what, const Overlap& o) {
      if (o.seconds > 0)
        out += what + duration(o.seconds) + ", of which " + percent(o.share()) + " under computation\n";
    };
    say("  collectives          ", overlap(step));
    say("  gathered parameters  ", overlap_of_gathers(*plan, step));
    return all ? out + "  the pipeline         " + duration(predicting::end_of(all->timing)) + ", " +
                     bubble(all->timing) + "\n"
               : out;
  }
  /// The work of all stages over time, with the machine's prices or, where none is known, as if forward and both
  /// gradients took equally long.
  Timing timing() const {
    if (!staged())
      throw Failure(
          name + " has no stages on " + parallel::text(plan->mesh) +
              ": --schedule and --schedule-svg show how they take turns; share layers out with Layers<n / stage, Block>",
          exit_code::usage);
    if (machine) return predicted()->timing;
    const Pipeline p = pipeline_of(plan->graph, plan->mesh);
    return timed(schedule_of(plan->graph, p), p.stages, p.micro_batches);
  }
  std::string schedule_title() const {
    const Pipeline p = pipeline_of(plan->graph, plan->mesh);
    return name + "\n" + parallel::text(plan->mesh) + "; " + parallel::text(schedule_of(plan->graph, p)) + ", " +
           std::to_string(p.micro_batches) + " micro-batches" +
           (machine ? " on " + words(machine->name.view()) : ", were forward, backward and weights equally long");
  }
  std::string schedule() const {
    const Timing all = timing();
    return schedule_title() + "\n\n" + picture(all, picture_unit({&all}), std::string(plan->graph.stages->text())) +
           "\n" + bubble(all) + "\n";
  }
  std::string schedule_svg() const {
    const Timing all = timing();  // which refuses what has no stages
    return svg(all, words(plan->graph.stages->text()));
  }
};

inline std::string members(const Plan& plan) {
  std::string result;
  for (const Member& m : plan.graph.members)
    if (m.role != Role::state) result += (result.empty() ? "" : ", ") + words(plan.graph.path(m));
  return result;
}

/// A file is replaced only once it is written whole, and never the one that is read.
inline void write(const std::string& file, const std::string& contents, const Asked& asked) {
  std::error_code none;
  const auto is = [&](const std::string& read) { return std::filesystem::equivalent(file, read, none); };
  const auto refuse = [&](const std::string& what) {
    throw Failure(
        "'" + file + "' is " + what + "; name another " + (asked.locking ? "lock with --lock-file" : "output with -o"),
        exit_code::usage);
  };
  if (is(asked.file)) refuse("the file that the plan is read from");
  if (!asked.machine.empty() && published_machine(asked.machine) == nullptr && is(asked.machine))
    refuse("the machine's file, which is read");
  for (int rank = 0; !asked.run.empty() && std::filesystem::exists(record_file(asked.run, rank), none); ++rank)
    if (is(record_file(asked.run, rank))) refuse("a record of the run, which is read");
  NewFile out(file, "'" + file + "'");
  std::fwrite(contents.data(), 1, contents.size(), out.stream());
  out.put_in_place();
}

inline std::string lock_file(const Asked& asked) {
  return asked.lock.empty() ? std::filesystem::path(asked.file).replace_extension(".plan").string() : asked.lock;
}
inline std::vector<Lock> locks_of(const Asked& asked) {
  const std::string file = lock_file(asked);
  if (std::error_code error; !std::filesystem::exists(file, error))
    throw Failure("there is no lock '" + file + "'; write it with --lock", exit_code::missing_input);
  return read_locks(contents(file, file), file);
}

/// --lock and --check. Where --program or --mesh picks some of the plans, the file's others stay as they are.
inline void lock(const std::vector<Answer>& answers, const Asked& asked) {
  std::vector<Lock> now;
  std::vector<std::string> names;
  for (const Answer& a : answers) {
    now.push_back(lock_of(*a.plan, a.name));
    names.push_back(a.name);
  }
  const Choice choice(asked.program, names);
  const auto meant = [&](const Lock& lock) {
    if (!choice.has(lock.program)) return false;
    if (now.empty()) return true;  // the programs are no more
    return (asked.mesh.empty() || lock.mesh == now[0].mesh) && (asked.stage < 0 || lock.stage == now[0].stage);
  };
  const std::string file = lock_file(asked);
  const bool some = !asked.program.empty() || !asked.mesh.empty() || asked.stage >= 0;
  std::error_code error;
  if (asked.locking) {
    const bool own = std::filesystem::equivalent(file, asked.file, error);  // which is refused when it is written
    const bool kept = some && !own && std::filesystem::exists(file, error);
    return write(file, written(kept ? replaced(locks_of(asked), now, meant) : now), asked);
  }
  std::vector<Lock> before;
  for (const Lock& lock : locks_of(asked))
    if (meant(lock)) before.push_back(lock);
  const std::string differs = difference(before, now);
  if (differs.empty()) return;
  std::cout << printable(differs) << std::flush;
  throw Failure(
      "the plan is not the one in '" + file + "'; what differs stands above; if it is meant, write it anew with --lock",
      exit_code::plans_differ);
}

inline Failure no_such_member(const Plan& plan, const std::string& path, const std::string& beyond) {
  return Failure("there is no member '" + path + "' on " + text(plan.mesh) + "; " +
                     (beyond.empty() ? "members: " + members(plan) : beyond),
                 exit_code::usage);
}
/// Why the members that a path means are there, in every answer that has them. Throws Failure where none has.
inline std::string why(const std::vector<Answer>& answers, const std::string& path) {
  std::string out, beyond;
  for (const Answer& a : answers) {
    const Named named = members_named(a.plan->graph, path);
    if (!named.beyond.empty()) beyond = named.beyond;
    if (!named.members.empty()) out += a.name + "\n" + a.where() + "\n\n" + why(*a.plan, named.members) + "\n";
  }
  if (out.empty()) throw no_such_member(*answers[0].plan, path, beyond);
  return out;
}
/// The type of the member that a path means: `blocks.*.up` all layers, `blocks.0.up` one layer's slice.
inline Type member_type(const Plan& plan, const std::string& path) {
  const Named named = members_named(plan.graph, path);
  for (const int m : named.members) {
    const std::string own = path_of(plan.graph, m);
    // it lies below
    if (std::count(own.begin(), own.end(), '.') != std::count(path.begin(), path.end(), '.')) continue;
    Type type = plan.graph.member(m).type;
    List<Dim, max_rank>& dims = type.layout.dims;
    const int layer = layer_named(path, own);
    if (layer < 0 || dims.empty()) return type;
    const bool shared = plan.graph.stages != nullptr && dims[0].split_by(plan.graph.stages);
    const int layer_stage = shared ? stage_of_layer(plan, layer) : 0;
    std::copy(dims.begin() + 1, dims.end(), dims.begin());
    --dims.count;
    if (shared && layer_stage < 63) type.layout.others.push_back({plan.graph.stages, at(layer_stage)});
    return type;
  }
  throw no_such_member(plan, path, named.beyond);
}

inline void print(const std::vector<Answer>& answers, const Asked& asked, std::ostream& out) {
  if (asked.format == Asked::Format::html) {
    Json plans = Json::array();
    for (const Answer& a : answers) {
      plans.push_back(a.json());
      plans.back()["pictures"] = pictures(*a.plan);
      if (a.staged()) plans.back()["schedule_svg"] = a.schedule_svg();
    }
    out << report(plans);
    return;
  }
  if (asked.format == Asked::Format::timeline && answers.size() > 1)
    throw Failure("a timeline is of one plan, and these are " + std::to_string(answers.size()) +
                      "; choose with --program and --mesh",
                  exit_code::usage);
  if (asked.format == Asked::Format::json) {
    Json plans = Json::array();
    for (const Answer& a : answers) plans.push_back(a.json());
    out << (plans.size() == 1 ? plans[0] : plans).dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
    return;
  }
  if (!asked.why.empty()) {
    out << why(answers, asked.why);
    return;
  }
  for (const Answer& a : answers) {
    if (asked.schedule || asked.schedule_svg) {
      out << (asked.schedule ? a.schedule() + "\n" : a.schedule_svg());
      continue;
    }
    if (!asked.picture.empty() || !asked.svg.empty()) {
      if (!asked.picture.empty()) out << picture(member_type(*a.plan, asked.picture), pictured(*a.plan)) << "\n";
      if (!asked.svg.empty()) out << svg(member_type(*a.plan, asked.svg), pictured(*a.plan));
      continue;
    }
    switch (asked.format) {
      case Asked::Format::dot: out << dot(*a.plan); break;
      case Asked::Format::timeline:
        if (!a.machine)
          throw Failure("a timeline needs times; say --machine with a name or a file that tools/machine wrote",
                        exit_code::usage);
        out << timeline(a.simulated_each(), a.name).dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
        break;
      default: out << a.text() << "\n";
    }
  }
}

}  // namespace planner
