// Prints the plan of the programs that a source, an object or a program carries. Nothing of them is executed.
#include <parallel/run/mesh_argument.hpp>

#include <CLI/CLI.hpp>

#include "answer.hpp"

namespace planner {

inline Mesh mesh_of(const object::CarriedMesh& carried, const object::Carried& program) {
  Mesh mesh;
  for (const auto& [name, ranks] : carried.axes) {
    const Axis* axis = program.axis(name);
    if (axis == nullptr) throw object::Damaged("a mesh names an axis that its program lacks");
    mesh.axes[mesh.count++] = Extent(axis, ranks);
  }
  return mesh;
}

/// Every program on the mesh of the command line, or on those that the file itself planned for.
inline std::vector<Answer> answers(const object::Found& found, const Asked& asked) {
  std::optional<Machine> machine;
  if (!asked.machine.empty()) machine = machine_named_or_file(asked.machine);
  std::vector<Answer> result;
  for (const auto& program : found.programs) {
    if (program->name.find(asked.program) == std::string::npos) continue;
    if (!asked.mesh.empty()) {
      std::vector<const Axis*> axes;
      for (const Axis& a : program->axes) axes.push_back(&a);
      result.push_back({object::derive(*program, mesh_argument(asked.mesh, axes)), program->name, machine});
    } else {
      for (const object::CarriedMesh& mesh : found.meshes)
        if (mesh.program == program->checksum) result.push_back({object::derive(*program, mesh_of(mesh, *program)), program->name, machine});
    }
  }
  if (!result.empty()) return result;
  std::string known;
  for (const auto& program : found.programs) {
    known += "\n  " + program->name + "; axes:";
    for (const Axis& a : program->axes) known += " " + words(a.text());
  }
  throw Failure(asked.program.empty() ? "the file plans for no mesh; say --mesh with axes of" + known : "no program is called '" + asked.program + "'; there is" + known,
                exit_code::usage);
}

int main(int argc, char** argv) {
  Asked asked;
  CLI::App app{"Prints the plan that the compiler derives: every collective, its cause, bytes, memory. Nothing of the program is executed."};
  app.name("tools/plan");
  app.footer("tools/plan examples/gpt.cpp --mesh data=2,tensor=4 --machine a100\nExit codes stand in docs/errors.md.");
  app.add_option("FILE", asked.file, "A source, which is compiled, or an object, library or program that was")->required();
  app.add_option("--mesh", asked.mesh, "Axes and ranks, data=2,tensor=4; without it, the meshes that the file itself plans for");
  app.add_option("--program", asked.program, "Only programs whose name has this in it");
  app.add_option("--machine", asked.machine, "Prices: a published machine's name, or a file that tools/machine wrote");
  app.add_option("-o,--output", asked.output, "Writes there instead of to the standard output");

  const std::vector<std::tuple<std::string, Asked::Format, std::string>> formats{
      {"--json", Asked::Format::json, "Everything, in a schema that stays: docs/plan.md"},
      {"--dot", Asked::Format::dot, "A graph for Graphviz"},
      {"--timeline", Asked::Format::timeline, "A simulated step for ui.perfetto.dev; needs --machine"},
      {"--html", Asked::Format::html, "A page with tables and pictures, one file that opens from disk"}};
  for (const auto& [flag, format, help] : formats) app.add_flag_callback(flag, [&asked, f = format] { asked.format = f; }, help)->group("Formats");

  app.add_option("--why", asked.why, "Explains every collective of a member: blocks.0.mlp.down")->group("Questions");
  app.add_flag("--lock", asked.locking, "Writes the plan beside the file, as NAME.plan")->group("Questions");
  app.add_flag("--check", asked.checking, "Compares the plan with NAME.plan and prints what differs")->excludes("--lock")->group("Questions");
  app.add_option("--lock-file", asked.lock, "Another file than NAME.plan")->group("Questions");
  app.add_option("--run", asked.run, "Lays FILE.0, FILE.1, ..., which a run wrote with --record FILE, over the plan")->group("Questions");

  app.add_option("--compiler", asked.compiler, "What compiles a source")->envname("CXX")->default_val("g++")->group("Compiling");
  app.add_option("--include", asked.include, "Where the library's headers are")->default_val(PLANNER_INCLUDE)->group("Compiling");
  app.add_option("--with", asked.compiling, "An argument for the compiler; may be repeated")->allow_extra_args(false)->group("Compiling");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_code::done : exit_code::usage;
  }
  return guarded("tools/plan", [&]() -> int {
    try {
      const object::Found found = programs_of(asked);
      const std::vector<Answer> all = answers(found, asked);
      if (asked.locking || asked.checking) return lock(all, asked);
      if (!asked.run.empty()) return lay_over(all, asked);
      std::ostringstream out;
      print(all, asked, out);
      if (asked.output.empty())
        std::cout << out.str() << std::flush;
      else
        write(asked.output, out.str());
      if (!std::cout) throw Failure("the output cannot be written", exit_code::io);
      return exit_code::done;
    } catch (const object::Damaged& damaged) {
      throw Failure("the program in '" + asked.file + "' cannot be read: " + damaged.what(), exit_code::bad_data);
    } catch (const std::length_error& error) {
      throw Failure("the program in '" + asked.file + "' cannot be planned: " + error.what(), exit_code::bad_data);
    } catch (const MachineRefused& refused) {
      throw Failure(refused.what(), exit_code::configuration);
    }
  });
}

}  // namespace planner

int main(int argc, char** argv) { return planner::main(argc, argv); }
