// Prints the plan of the programs that a source, an object or a program carries. Nothing of them is executed.
#include <parallel/run/mesh_argument.hpp>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <optional>

#include "json.hpp"
#include "report.hpp"
#include "source.hpp"

namespace planner {

/// The name of a program as its source spells it: what the compiler says of the template argument.
inline std::string spelled(const std::string& name) {
  const std::size_t begin = name.find("Program = ");
  if (begin == std::string::npos) return name;
  std::string result;
  int depth = 0;
  for (std::size_t i = begin + 10; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '<' || c == '{' || c == '(' || c == '[') ++depth;
    if ((c == ']' || c == ';') && depth == 0) break;
    if (c == '>' || c == '}' || c == ')' || c == ']') --depth;
    result += c;
  }
  for (const char* prefix : {"parallel::axes::", "parallel::", "const Axis* ", "Axis const* "})
    for (std::size_t at; (at = result.find(prefix)) != std::string::npos;) result.erase(at, std::strlen(prefix));
  return result;
}

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
    if (!asked.program.empty() && spelled(program->name).find(asked.program) == std::string::npos) continue;
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
    known += "\n  " + spelled(program->name) + "; axes:";
    for (const Axis& a : program->axes) known += " " + std::string(a.text());
  }
  throw Failure(asked.program.empty() ? "the file plans for no mesh; say --mesh with axes of" + known : "no program is called '" + asked.program + "'; there is" + known,
                exit_code::usage);
}

inline void print(const Asking& asking, const Asked& asked, std::ostream& out) {
  const OwnedPlan plan = object::derive(*asking.program, asking.mesh);
  const std::string name = spelled(asking.program->name);
  switch (asked.format) {
    case Asked::Format::json: out << json(*plan, name).dump(1) << "\n"; break;
    default: out << name << "\n" << text(*plan);
  }
}

int main(int argc, char** argv) {
  Asked asked;
  CLI::App app{"Prints the plan that the compiler derives: every collective, its cause, bytes, memory. Nothing of the program is executed."};
  app.name("tools/plan");
  app.add_option("FILE", asked.file, "A source, which is compiled, or an object, library or program that was")->required();
  app.add_option("--mesh", asked.mesh, "Axes and ranks, data=2,tensor=4; without it, the meshes that the file itself plans for");
  app.add_option("--program", asked.program, "Only programs whose name has this in it");
  const std::vector<std::pair<std::string, Asked::Format>> formats{{"--json", Asked::Format::json}, {"--html", Asked::Format::html}};
  for (const auto& [flag, format] : formats) app.add_flag_callback(flag, [&asked, f = format] { asked.format = f; }, "As " + flag.substr(2));
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
    if (asked.format == Asked::Format::html) {
      Json plans = Json::array();
      for (const Asking& asking : askings(found, asked)) plans.push_back(json(*object::derive(*asking.program, asking.mesh), spelled(asking.program->name)));
      std::cout << report(plans);
      return exit_code::done;
    }
    for (const Asking& asking : askings(found, asked)) print(asking, asked, std::cout);
    return exit_code::done;
  });
}

}  // namespace planner

int main(int argc, char** argv) { return planner::main(argc, argv); }
