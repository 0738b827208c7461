// Prints the plan of the programs that a source, an object or a program carries. Nothing of them is executed.
#include <parallel/run/mesh_argument.hpp>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <optional>
#include <sstream>

#include "dot.hpp"
#include "json.hpp"
#include "lock.hpp"
#include "source.hpp"
#include "tree.hpp"

namespace planner {

/// One program on one mesh.
struct Asking {
  const object::Carried* program;
  Mesh mesh;
};

inline Mesh mesh_of(const object::CarriedMesh& carried, const object::Carried& program) {
  Mesh mesh;
  for (const auto& [name, ranks] : carried.axes) {
    const Axis* axis = program.axis(name);
    if (axis == nullptr) throw object::Damaged("a mesh names an axis that its program lacks");
    mesh.axes[mesh.count++] = Extent(axis, ranks);
  }
  return mesh;
}

/// What is to be planned: every program on the mesh of the command line, or on those that the file itself planned for.
inline std::vector<Asking> askings(const object::Found& found, const Asked& asked) {
  std::vector<Asking> result;
  for (const auto& program : found.programs) {
    if (!asked.program.empty() && program->name.find(asked.program) == std::string::npos) continue;
    if (!asked.mesh.empty()) {
      std::vector<const Axis*> axes;
      for (const Axis& a : program->axes) axes.push_back(&a);
      result.push_back({program.get(), mesh_argument(asked.mesh, axes)});
    } else {
      for (const object::CarriedMesh& mesh : found.meshes)
        if (mesh.program == program->checksum) result.push_back({program.get(), mesh_of(mesh, *program)});
    }
  }
  if (!result.empty()) return result;
  std::string known;
  for (const auto& program : found.programs) {
    known += "\n  " + program->name + "; axes:";
    for (const Axis& a : program->axes) known += " " + std::string(a.text());
  }
  throw Failure(asked.program.empty() ? "the file plans for no mesh; say --mesh with axes of" + known : "no program is called '" + asked.program + "'; there is" + known,
                exit_code::usage);
}

inline std::string members(const Plan& plan) {
  std::string result;
  for (const Member& m : plan.graph.members)
    if (m.role == Role::parameter) result += (result.empty() ? "" : ", ") + std::string(m.path.view());
  return result;
}

inline void print(const Asking& asking, const Asked& asked, std::ostream& out) {
  const OwnedPlan plan = object::derive(*asking.program, asking.mesh);
  const std::string name = asking.program->name;
  if (!asked.why.empty()) {
    const std::string words = why(*plan, asked.why);
    if (words.empty()) throw Failure("no collective comes from '" + asked.why + "' on " + text(asking.mesh) + "; members: " + members(*plan), exit_code::usage);
    out << words << "\n";
    return;
  }
  switch (asked.format) {
    case Asked::Format::json: out << json(*plan, name).dump(1) << "\n"; break;
    case Asked::Format::dot: out << dot(*plan); break;
    default: out << name << "\n" << text(asking.mesh) << ": " << asking.mesh.ranks() << " ranks\n\n" << tree(*plan) << totals(*plan) << "\n";
  }
}

/// A file is replaced only once it is written whole.
inline void write(const std::string& file, const std::string& contents) {
  const std::string beside = file + ".new";
  {
    std::ofstream out(beside, std::ios::binary);
    out << contents;
    out.flush();
    if (!out) throw Failure("'" + file + "' cannot be written", exit_code::io);
  }
  std::error_code error;
  std::filesystem::rename(beside, file, error);
  if (error) throw Failure("'" + file + "' cannot be written: " + error.message(), exit_code::io);
}

/// --lock and --check.
inline int lock(const std::vector<Asking>& all, const Asked& asked) {
  std::vector<Lock> now;
  for (const Asking& asking : all) {
    const OwnedPlan plan = object::derive(*asking.program, asking.mesh);
    now.push_back(lock_of(*plan, asking.program->name));
  }
  const std::string file = asked.lock.empty() ? std::filesystem::path(asked.file).replace_extension(".plan").string() : asked.lock;
  if (asked.locking) {
    write(file, written(now));
    return exit_code::done;
  }
  if (std::error_code error; !std::filesystem::exists(file, error)) throw Failure("there is no lock '" + file + "'; write it with --lock", exit_code::missing_input);
  const std::string words = difference(read_locks(contents(file, file), file), now);
  if (words.empty()) return exit_code::done;
  std::cout << words;
  throw Failure("the plan is not the one in '" + file + "'; what differs stands above; if it is meant, write it anew with --lock", exit_code::plans_differ);
}

int main(int argc, char** argv) {
  Asked asked;
  CLI::App app{"Prints the plan that the compiler derives: every collective, its cause, bytes, memory. Nothing of the program is executed."};
  app.name("tools/plan");
  app.add_option("FILE", asked.file, "A source, which is compiled, or an object, library or program that was")->required();
  app.add_option("--mesh", asked.mesh, "Axes and ranks, data=2,tensor=4; without it, the meshes that the file itself plans for");
  app.add_option("--program", asked.program, "Only programs whose name has this in it");
  const std::vector<std::pair<std::string, Asked::Format>> formats{{"--json", Asked::Format::json}, {"--dot", Asked::Format::dot}};
  for (const auto& [flag, format] : formats) app.add_flag_callback(flag, [&asked, f = format] { asked.format = f; }, "As " + flag.substr(2));
  app.add_option("--why", asked.why, "Explains every collective of a member: blocks.0.mlp.down");
  app.add_flag("--lock", asked.locking, "Writes the plan beside the source, as NAME.plan");
  app.add_flag("--check", asked.checking, "Compares the plan with NAME.plan and prints what differs")->excludes("--lock");
  app.add_option("--lock-file", asked.lock, "Another file than NAME.plan");
  app.add_option("--compiler", asked.compiler, "What compiles a source")->envname("CXX")->default_val("g++");
  app.add_option("--include", asked.include, "Where the library's headers are")->default_val(PLANNER_INCLUDE);
  app.add_option("-o,--output", asked.output, "Writes there instead of to the standard output");
  app.add_option("--with", asked.compiling, "An argument for the compiler; may be repeated")->allow_extra_args(false);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_code::done : exit_code::usage;
  }
  return guarded("tools/plan", [&] {
    const object::Found found = programs_of(asked);
    const std::vector<Asking> all = askings(found, asked);
    if (asked.locking || asked.checking) return lock(all, asked);
    if (asked.output.empty()) {
      for (const Asking& asking : all) print(asking, asked, std::cout);
      return exit_code::done;
    }
    std::ostringstream out;
    for (const Asking& asking : all) print(asking, asked, out);
    write(asked.output, out.str());
    return exit_code::done;
  });
}

}  // namespace planner

int main(int argc, char** argv) { return planner::main(argc, argv); }
