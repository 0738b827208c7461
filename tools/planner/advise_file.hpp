// --advise: the programs that a file carries, each on so many ranks.
#pragma once
#include <charconv>

#include "advice.hpp"
#include "answers.hpp"

namespace planner {

/// "40GiB", "80GB", "1048576" as bytes. Throws Failure.
inline std::int64_t bytes_argument(const std::string& text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr Unit units[] = {
      {"", 1},     {"B", 1},    {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
      {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9},     {"TB", 1e12}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const Unit& u : units)
    if (error == std::errc() && u.name == unit && number * u.bytes >= 1 && number * u.bytes < 1e18)
      return static_cast<std::int64_t>(number * u.bytes);
  throw Failure("--memory " + object::in_one_line(text) + " is no number of bytes; write 40GiB, 80GB or 1048576",
                exit_code::usage);
}

/// The programs of a source that is compiled with annotations that it lacks; none where it does not compile with them.
inline object::Found programs_with(const std::string& words, const Asked& asked) {
  Asked compiling = asked;
  compiling.tried = words;
  try {
    return programs_of(compiling);
  } catch (const Failure& failure) {
    if (failure.exit_code != exit_code::bad_data) throw;
    return {};
  }
}

/// A source as it compiles with annotations that it lacks, each set of them compiled once, when it is first asked for.
class Tried {
 public:
  explicit Tried(const Asked& asked) : asked_(asked) {}

  /// Calls f(graph, axes, programs beside) for the program of this place in the file; not at all where the annotations
  /// make other programs of it, or it does not compile with them. `axes`: in the order of their names.
  template <class F>
  void with(const std::string& words, std::size_t program, std::size_t programs, const std::vector<const Axis*>& axes,
            F f) {
    const auto [at, missing] = compiled_.try_emplace(words);
    if (missing) at->second = programs_with(words, asked_);
    const object::Found& found = at->second;
    if (found.programs.size() != programs) return;
    std::vector<GraphView> beside;
    for (const auto& other : found.programs) beside.emplace_back(other->graph);
    std::vector<const Axis*> own;
    for (const Axis* a : axes)
      if (const Axis* same = found.programs[program]->axis(a->text())) own.push_back(same);
    if (own.size() == axes.size()) f(found.programs[program]->graph, own, beside);
  }

 private:
  const Asked& asked_;
  std::map<std::string, object::Found> compiled_{};
};

/// What every program of the file that is meant would be on `asked.advise` ranks. Throws Failure.
inline std::string advise_file(const object::Found& found, const Asked& asked) {
  if (asked.machine.empty())
    throw Failure("--advise needs prices; say --machine with a name or a file that tools/machine wrote",
                  exit_code::usage);
  Question question{asked.advise, machine_named_or_file(asked.machine).with_threads(asked.threads)};
  tell_of_ranks(question.machine, asked.advise, asked.threads);
  if (!asked.memory.empty()) question.memory = bytes_argument(asked.memory);
  std::vector<std::string> names;
  std::vector<GraphView> beside;
  for (const auto& program : found.programs) {
    names.push_back(program->name);
    beside.emplace_back(program->graph);
  }
  const Choice choice(asked.program, names);
  std::string out;
  std::optional<Failure> refused;  // thrown where no program can be advised
  Json all = Json::array();
  bool chosen = false;
  Tried tried(asked);
  for (std::size_t p = 0; p < found.programs.size(); ++p) {
    const auto& program = found.programs[p];
    if (!choice.has(program->name)) continue;
    chosen = true;
    std::vector<const Axis*> axes;
    for (const Axis& a : program->axes) axes.push_back(&a);
    if (axes.empty()) {
      refused = Failure(
          program->name +
              " names no axis, so it is the same on every rank; split a dimension, as in Shape<512 / data, 768>",
          exit_code::configuration);
      continue;
    }
    if (program->schedule.tasks == nullptr && program->graph.stages != nullptr) {
      refused = Failure(program->name + ": " + object::foreign(program->schedule), exit_code::bad_data);
      continue;
    }
    Advice advice;
    if (tries(asked))
      advise(advice, program->graph, axes, beside, question,
             [&](const std::string& words, auto f) { tried.with(words, p, found.programs.size(), axes, f); });
    else
      advise(advice, program->graph, axes, beside, question);
    if (advice.candidates.empty()) {
      refused = Failure("no mesh of " + std::to_string(question.ranks) + " ranks is one of " + program->name + ": " +
                            advice.impossible[0].why,
                        exit_code::configuration);
      continue;
    }
    out += (out.empty() ? "" : "\n") + advice_text(advice, program->name, question);
    if (question.limited() && !tries(asked))
      out += "\nAnnotations that need less memory are tried where the file is a source.\n";
    all.push_back(advice_json(advice, program->name, question));
  }
  if (!chosen) throw nothing_planned(found, asked, false);
  if (all.empty()) throw *refused;
  if (asked.format == Asked::Format::json)
    return (all.size() == 1 ? all[0] : all).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  return out;
}

}  // namespace planner
