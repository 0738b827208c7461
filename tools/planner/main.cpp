// Prints the plan of the programs that a source, an object or a program carries. Nothing of them is executed.
#include <parallel/run/mesh_argument.hpp>

#include <CLI/CLI.hpp>
#include <sstream>

#include "answer.hpp"

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
    std::vector<const Axis*> axes;      // a program may run on an axis that only another one names: it is computed several times there
    std::vector<GraphView> beside;
    for (const Axis& a : program->axes) axes.push_back(&a);
    for (const auto& other : found.programs) {
      beside.emplace_back(other->graph);
      for (const Axis& a : other->axes)
        if (named(axes, a.text()) == nullptr) axes.push_back(&a);
    }
    const auto answer = [&](const Mesh& mesh) {
      try {
        result.push_back({object::derive(*program, mesh, beside), program->name, machine});
      } catch (const MeshRefused& refused) {
        throw Failure(program->name + ": " + refused.what(), exit_code::configuration);
      }
    };
    if (!asked.mesh.empty()) answer(mesh_argument(asked.mesh, axes));
    if (asked.mesh.empty())
      for (const object::CarriedMesh& mesh : found.meshes)
        if (mesh.program == program->checksum) answer(mesh_of(mesh, axes));
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

/// How many letters differ, are missing or too many (Levenshtein, 1966).
inline std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t best = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = row[j], row[j] = best;
    }
  }
  return row[b.size()];
}
/// "; did you mean --json?" for the first flag that there is not.
inline std::string nearest(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view given(argv[i]);
    if (!given.starts_with("--")) continue;
    std::string best;
    for (const CLI::Option* o : app.get_options())
      for (const std::string& name : o->get_lnames())
        if (best.empty() || distance(given, "--" + name) < distance(given, best)) best = "--" + name;
    if (best != given) return "; did you mean " + best + "?";
  }
  return "";
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
      {"--json", Asked::Format::json, "Everything, in a schema that stays: docs/plan-tool.md"},
      {"--dot", Asked::Format::dot, "A graph for Graphviz"},
      {"--timeline", Asked::Format::timeline, "A simulated step for ui.perfetto.dev; needs --machine"},
      {"--html", Asked::Format::html, "A page with tables and pictures, one file that opens from disk"}};
  for (const auto& [flag, format, help] : formats) app.add_flag_callback(flag, [&asked, f = format] { asked.format = f; }, help)->group("Formats");

  app.add_option("--why", asked.why, "Explains every collective of a member: blocks.0.mlp.down")->group("Questions");
  app.add_option("--picture", asked.picture, "How a member lies on the mesh, as text: blocks.*.mlp.down, input.0")->group("Questions");
  app.add_option("--svg", asked.svg, "The same as a picture")->group("Questions")->excludes("--picture");
  app.add_flag("--lock", asked.locking, "Writes the plan beside the file, as NAME.plan")->group("Questions");
  app.add_flag("--check", asked.checking, "Compares the plan with NAME.plan and prints what differs")->excludes("--lock")->group("Questions");
  app.add_option("--lock-file", asked.lock, "Another file than NAME.plan")->group("Questions");
  app.add_option("--run", asked.run, "Lays FILE.0, FILE.1, ..., which a run wrote with --record FILE, over the plan")->group("Questions");

  app.add_option("--compiler", asked.compiler, "What compiles a source")->envname("CXX")->default_val("g++")->group("Compiling");
  app.add_option("--include", asked.include, "Where the library's headers are")->default_val(PLANNER_INCLUDE)->group("Compiling");
  app.add_option("--with", asked.compiling, "An argument for the compiler; may be repeated")->allow_extra_args(false)->group("Compiling");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError& error) {
    std::cerr << "tools/plan: error: " << error.what() << nearest(app, argc, argv) << "; tools/plan --help names all\n";
    return exit_code::usage;
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
    } catch (const std::invalid_argument& error) {  // a machine without rates for what the program computes
      throw Failure(error.what(), exit_code::configuration);
    }
  });
}

}  // namespace planner

int main(int argc, char** argv) { return planner::main(argc, argv); }
