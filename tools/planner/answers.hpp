// Which programs are asked for, and on which meshes: those of the command line, else those that a lock or a record
// names, else the file's own.
#pragma once
#include <parallel/run/mesh_argument.hpp>

#include "answer.hpp"
#include "overlay.hpp"

namespace planner {

inline const Axis* named(const std::vector<const Axis*>& axes, std::string_view name) {
  for (const Axis* a : axes)
    if (a->text() == name) return a;
  return nullptr;
}
inline Mesh mesh_of(const object::CarriedMesh& carried, const std::vector<const Axis*>& axes) {
  Mesh mesh;
  for (const auto& [name, ranks] : carried.axes) {
    const Axis* axis = named(axes, name);
    if (axis == nullptr) throw object::Damaged("a mesh names an axis that its program lacks");
    if (mesh.ranks() > max_ranks / ranks)
      throw Failure(
          "the file plans for a mesh of more than " + std::to_string(max_ranks) + " ranks; say another with --mesh",
          exit_code::configuration);
    mesh.axes[mesh.count++] = Extent(axis, ranks);
  }
  return mesh.on_stage(carried.here);
}

/// A mesh as a lock or a record names it, and its program where that is said.
struct Kept {
  std::string program{}, mesh{};
};
inline std::vector<Kept> kept_meshes(const Asked& asked) {
  std::vector<Kept> kept;
  if (!asked.mesh.empty()) return kept;
  if (!asked.run.empty()) kept.push_back({"", read_record(asked.run, 0).mesh});
  if (asked.checking)
    for (const Lock& lock : locks_of(asked)) kept.push_back({lock.program, lock.mesh});
  return kept;
}
/// Nothing where the program lacks an axis of it: then no plan of it is the one that was kept.
inline std::optional<Mesh> mesh_of(const Kept& kept, const std::vector<const Axis*>& axes) {
  if (kept.mesh == text(Mesh{})) return Mesh{};
  std::string argument = kept.mesh;
  std::erase(argument, ' ');
  try {
    return mesh_argument(argument, axes);
  } catch (const Failure&) {
    return std::nullopt;
  }
}

/// Whether a lock is asked for, which has all stages.
inline bool of_all_stages(const Asked& asked) { return asked.stage < 0 && (asked.locking || asked.checking); }

/// The meshes as the stages see them that are asked for, each once: the one that is named, of a lock the first of all;
/// else the compiler's, which is the first unless the file says another.
inline std::vector<Mesh> seen_from(const std::vector<Mesh>& meshes, const Axis* stages, const Asked& asked) {
  std::vector<Mesh> seen;
  for (Mesh mesh : meshes) {
    if (stages != nullptr && (asked.stage >= 0 || of_all_stages(asked))) mesh = mesh.on_stage(std::max(asked.stage, 0));
    if (std::find(seen.begin(), seen.end(), mesh) == seen.end()) seen.push_back(mesh);
  }
  return seen;
}

/// `axes`: those that the program may run on.
inline std::vector<Mesh> meshes_of(const object::Carried& program, const std::vector<const Axis*>& axes,
                                   const object::Found& found, const Asked& asked, const std::vector<Kept>& kept) {
  if (!asked.mesh.empty()) return {mesh_argument(asked.mesh, axes)};
  std::vector<Mesh> meshes;
  for (const Kept& k : kept)
    if (const auto mesh = mesh_of(k, axes); mesh && (k.program.empty() || k.program == program.name))
      meshes.push_back(*mesh);
  if (!meshes.empty() || !asked.run.empty()) return meshes;
  for (const object::CarriedMesh& mesh : found.meshes)
    if (mesh.program == program.checksum) meshes.push_back(mesh_of(mesh, axes));
  if (meshes.empty() && axes.empty()) meshes.push_back(Mesh{});
  return meshes;
}

inline Failure nothing_planned(const object::Found& found, const Asked& asked, bool chosen) {
  std::string known;
  for (const auto& program : found.programs) {
    known += "\n  " + program->name + "; axes:";
    for (const Axis& a : program->axes) known += " " + words(a.text());
  }
  if (!chosen)
    return Failure("no program is called '" + asked.program +
                       "'; names are types, not aliases of them; say a part of one of these:" + known,
                   exit_code::usage);
  if (!asked.run.empty())
    return Failure(
        "no program has the axes of the record's mesh, " + read_record(asked.run, 0).mesh + "; there is:" + known,
        exit_code::plans_differ);
  return Failure("the file plans for no mesh; say --mesh with axes of:" + known, exit_code::usage);
}

/// A stage is of the programs that have some; throws where none of those that are chosen has.
inline void refuse_stage(const object::Found& found, const Asked& asked, const Choice& choice) {
  const object::Carried* without = nullptr;
  for (const auto& program : found.programs) {
    if (asked.stage < 0 || !choice.has(program->name)) continue;
    if (program->graph.stages != nullptr) return;
    if (without == nullptr) without = &*program;
  }
  if (without != nullptr)
    throw Failure("--stage " + std::to_string(asked.stage) + ": " + without->name +
                      " has no stages, as no Layers<n / stage, Block> shares its layers out",
                  exit_code::usage);
}

/// Every program that is asked for on every mesh that is.
inline std::vector<Answer> answers(const object::Found& found, const Asked& asked) {
  if (asked.threads > 1 && asked.machine.empty())
    throw Failure("--threads changes prices alone; say --machine with a file that tools/machine wrote",
                  exit_code::usage);
  std::optional<Machine> machine;
  if (!asked.machine.empty()) machine = machine_named_or_file(asked.machine).with_threads(asked.threads);
  const std::vector<Kept> kept = kept_meshes(asked);
  std::vector<std::string> names;
  for (const auto& program : found.programs) names.push_back(program->name);
  const Choice choice(asked.program, names);
  refuse_stage(found, asked, choice);
  std::vector<Answer> result;
  std::optional<Failure> refused;
  bool chosen = false;
  for (const auto& program : found.programs) {
    if (!choice.has(program->name)) continue;
    chosen = true;
    // a program may run on an axis that only another one names: it is computed several times there
    std::vector<const Axis*> axes;
    std::vector<GraphView> beside;
    for (const Axis& a : program->axes) axes.push_back(&a);
    for (const auto& other : found.programs) {
      beside.emplace_back(other->graph);
      for (const Axis& a : other->axes)
        if (named(axes, a.text()) == nullptr) axes.push_back(&a);
    }
    if (asked.stage >= 0 && program->graph.stages == nullptr) continue;
    const Axis* stages = program->graph.stages;
    for (const Mesh& mesh : seen_from(meshes_of(*program, axes, found, asked, kept), stages, asked)) try {
        const auto on_stage = [&program = *program, beside, mesh](int k) {
          return object::derive(program, mesh.on_stage(k), beside);
        };
        const auto add = [&](OwnedPlan plan) {
          result.push_back({std::move(plan), program->name, machine, on_stage, &program->graph});
        };
        add(on_stage(mesh.here));  // a mesh is refused here, before its stages are gone through
        for (int k = 1; of_all_stages(asked) && stages != nullptr && k < mesh.extent(stages); ++k) add(on_stage(k));
      } catch (const MeshRefused& error) {
        refused = Failure(program->name + ": " + error.what(), exit_code::configuration);
        if (asked.run.empty()) throw *refused;  // else another program may be the one that ran
      } catch (const object::ForeignSchedule& error) {
        refused = Failure(program->name + ": " + error.what(), exit_code::bad_data);
        if (asked.run.empty()) throw *refused;
      }
  }
  int ranks = 0;
  for (const Answer& a : result) ranks = std::max(ranks, a.plan->mesh.ranks());
  if (machine) tell_of_ranks(*machine, ranks, asked.threads);
  // a lock of programs that are no more is another plan
  if (!result.empty() || (chosen && asked.checking && !kept.empty())) return result;
  throw refused ? *refused : nothing_planned(found, asked, chosen);
}

}  // namespace planner
