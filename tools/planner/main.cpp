// Prints the plan of the programs that a source, an object or a program carries. Nothing of them is executed.
#include <charconv>
#include <sstream>

#include <CLI/CLI.hpp>

#include <parallel/meta/nearest.hpp>

#include "advise_file.hpp"
#include "laid_run.hpp"
#include "remedies.hpp"

namespace planner {

/// "; did you mean --json?" for the first flag that there is not.
inline std::string meant(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> known;
  for (const CLI::Option* o : app.get_options())
    for (const std::string& name : o->get_lnames()) known.push_back("--" + name);
  for (int i = 1; i < argc; ++i) {
    const std::string_view given(argv[i]);
    if (!given.starts_with("--")) continue;
    const std::string best = nearest(given, known, 1).front();
    if (best != given) return "; did you mean " + best + "?";
  }
  return "";
}

/// A stage; its axis may have fewer.
inline std::string stage_number(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool good = error == std::errc() && end == text.data() + text.size() && number >= 0;
  return good ? "" : "'" + text + "' is no stage; they are counted from 0";
}
/// What is wrong with the arguments, in one sentence.
inline std::string mistake(const CLI::ParseError& error, const CLI::App& app, int argc, char** argv) {
  const std::string words = error.what();
  const int code = error.get_exit_code();
  if (code == static_cast<int>(CLI::ExitCodes::ArgumentMismatch) && words.find("missing") != std::string::npos)
    return words.substr(0, words.find(':')) + " lacks its value";
  return words + (code == static_cast<int>(CLI::ExitCodes::ExtrasError) ? meant(app, argc, argv) : "");
}

/// Flags of these groups are answers, of which one is given at a time.
inline constexpr const char *formats_group = "Formats", *questions_group = "Questions";

/// Arguments that one by one are right. Throws ParseError.
inline void refuse_combinations(const CLI::App& app) {
  for (const CLI::Option* o : app.get_options())
    for (const std::string& given : o->results())
      if (given.empty()) throw CLI::ValidationError(o->get_name() + " is empty; give it a value or leave it away");
  std::string given;
  for (const CLI::Option* o : app.get_options()) {
    const std::string answer = o->get_name();
    if (o->count() == 0 || (o->get_group() != formats_group && o->get_group() != questions_group)) continue;
    if (answer == "--advise" && given == "--json") continue;
    if (answer == "--run" && given.starts_with("--schedule")) continue;
    if (!given.empty())
      throw CLI::ValidationError(given + " and " + answer + " are two answers; ask for one at a time");
    given = answer;
  }
  if (app.count("--advise") > 0 && app.count("--mesh") > 0)
    throw CLI::ValidationError("--advise tries every mesh; leave --mesh away");
  if (app.count("--advise") > 0 && app.count("--stage") > 0)
    throw CLI::ValidationError("--advise prices all stages; leave --stage away");
  if (app.count("--memory") > 0 && app.count("--advise") == 0 && app.count("--why-memory") == 0)
    throw CLI::ValidationError("--memory needs --advise or --why-memory");
  if (app.count("--times") > 0 && given != "--run") throw CLI::ValidationError("--times needs --run alone");
  const bool locks = given == "--lock" || given == "--check";
  if (locks && app.count("--output") > 0)
    throw CLI::ValidationError(given + " has no output; --lock-file says where the lock is");
  if (!locks && app.count("--lock-file") > 0) throw CLI::ValidationError("--lock-file needs --lock or --check");
}

/// The folder of the library's headers: beside this tool where it is installed, else that of its sources.
inline std::string headers() {
  std::error_code error;
  const std::filesystem::path tool = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path installed = tool.parent_path().parent_path() / "include";
  return std::filesystem::exists(installed / "parallel/parallel.hpp", error) ? installed.string() : PLANNER_INCLUDE;
}

/// Prints an answer, or writes it where it was asked to.
inline int deliver(const std::string& answer, const Asked& asked) {
  const bool data = asked.format != Asked::Format::text && asked.format != Asked::Format::dot;
  if (asked.output.empty())
    std::cout << (data ? answer : printable(answer)) << std::flush;
  else
    write(asked.output, answer, asked);
  if (!std::cout) throw Failure("the output cannot be written", exit_code::io);
  return exit_code::done;
}

int main(int argc, char** argv) {
  Asked asked;
  CLI::App app{
      "Prints the plan that the compiler derives: every collective, its cause, bytes, memory. "
      "Nothing of the program is executed."};
  app.name("tools/plan");
  app.footer("tools/plan examples/gpt.cpp --mesh data=2,tensor=4 --machine a100\nExit codes stand in docs/errors.md.");
  app.add_option("FILE", asked.file, "A source, which is compiled, or an object, library or program that was")
      ->required();
  app.add_option("--mesh", asked.mesh,
                 "Axes and ranks, data=2,tensor=4; without it, the meshes that the file itself plans for");
  app.add_option("--stage", asked.stage, "Of a pipeline, the stage whose plan it is; 0 unless said")
      ->check(stage_number);
  app.add_option("--program", asked.program, "Only programs whose name is this, or has it in it");
  app.add_option("--machine", asked.machine, "Prices: a published machine's name, or a file that tools/machine wrote");
  app.add_option("--threads", asked.threads,
                 "With --machine: threads that compute each rank's operations together, Cpu{.threads = 2}")
      ->check(CLI::Range(1, 1024));
  app.add_option("-o,--output", asked.output, "Writes there instead of to the standard output");

  const std::vector<std::tuple<std::string, Asked::Format, std::string>> formats{
      {"--json", Asked::Format::json, "Everything, in a schema that stays: docs/plan-tool.md"},
      {"--dot", Asked::Format::dot, "A graph for Graphviz"},
      {"--timeline", Asked::Format::timeline, "A simulated step for ui.perfetto.dev; needs --machine"},
      {"--html", Asked::Format::html, "A page with tables and pictures, one file that opens from disk"}};
  for (const auto& [flag, format, help] : formats)
    app.add_flag_callback(
           flag, [&asked, f = format] { asked.format = f; }, help)
        ->group(formats_group);

  app.add_option("--why", asked.why, "Explains every collective of a member: blocks.0.mlp.down")
      ->group(questions_group);
  app.add_flag("--why-memory", asked.why_memory,
               "The moment at which a rank holds most, what lives then, and of a source what would lower it")
      ->group(questions_group);
  app.add_option("--picture", asked.picture, "How a member lies on the mesh, as text: blocks.*.mlp.down, input.0")
      ->group(questions_group);
  app.add_option("--svg", asked.svg, "The same as a picture")->group(questions_group);
  app.add_flag(
         "--schedule", asked.schedule,
         "How the stages of a pipeline take turns, over time; with --machine by its prices, with --run beside what "
         "they did")
      ->group(questions_group);
  app.add_flag("--schedule-svg", asked.schedule_svg, "The same as a picture")->group(questions_group);
  app.add_option("--run", asked.run, "Lays FILE.0, FILE.1, ..., which a run wrote with --record FILE, over the plan")
      ->group(questions_group);
  app.add_flag("--times", asked.times,
               "Of --run where the time of a step went, operation by operation; with --machine beside its floor")
      ->group("With a question");
  app.add_flag("--lock", asked.locking, "Writes the plan beside the file, as NAME.plan")->group(questions_group);
  app.add_flag("--check", asked.checking, "Compares the plan with NAME.plan and prints what differs")
      ->group(questions_group);
  app.add_option("--advise", asked.advise,
                 "Every mesh of so many ranks, by its predicted step and what it is lost by; needs --machine")
      ->group(questions_group)
      ->check(CLI::Range(1, 65536));
  app.add_option("--memory", asked.memory, "What a rank has for --advise or --why-memory: 80GB, 40GiB")
      ->group("With a question");
  app.add_option("--lock-file", asked.lock, "Another file than NAME.plan")->group("With a question");

  app.add_option("--compiler", asked.compiler, "What compiles a source; words, as in \"ccache g++\"")
      ->envname("CXX")
      ->default_val("g++")
      ->group("Compiling");
  app.add_option("--include", asked.include, "Where the library's headers are")
      ->default_val(planner::headers())
      ->group("Compiling");
  app.add_option("--eigen", asked.eigen, "Where Eigen's headers are")->default_val(PLANNER_EIGEN)->group("Compiling");
  app.add_option("--with", asked.compiling, "An argument for the compiler; may be repeated")
      ->allow_extra_args(false)
      ->group("Compiling");
  try {
    app.parse(argc, argv);
    refuse_combinations(app);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    const std::string words = mistake(error, app, argc, argv);
    std::cerr << "tools/plan: error: " << printable(words) << "; tools/plan --help names all flags\n";
    return exit_code::usage;
  }
  return guarded("tools/plan", [&]() -> int {
    try {
      const object::Found found = programs_of(asked);
      if (asked.advise > 0) return deliver(advise_file(found, asked), asked);
      const std::vector<Answer> all = answers(found, asked);
      if (asked.locking || asked.checking) {
        planner::lock(all, asked);
        return exit_code::done;
      }
      std::ostringstream out;
      if (asked.why_memory)
        print_why_memory(all, asked, out);
      else
        asked.run.empty() ? print(all, asked, out) : lay_over(all, asked, out);
      return deliver(out.str(), asked);
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
