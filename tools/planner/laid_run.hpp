// --run: the records of a run laid over the plans of its ranks, as a table of one rank or as a picture of all stages.
#pragma once
#include "answer.hpp"
#include "measured.hpp"
#include "times.hpp"

namespace planner {

/// A run that is a plan, call by call.
struct LaidRun {
  const Answer* of = nullptr;
  std::string file{};                ///< before the rank
  std::map<int, OwnedPlan> plans{};  ///< by stage; without stages all ranks have one
  std::vector<RankRecord> records{};
  std::vector<int> skipped{};  ///< steps

  int stage(int rank) const {
    return of->plan->graph.stages == nullptr ? 0 : of->plan->mesh.coordinate(rank, of->plan->graph.stages);
  }
  const Plan& plan(int stage) {
    if (!plans.contains(stage)) plans.emplace(stage, stage == of->plan->mesh.here ? of->plan : of->on_stage(stage));
    return *plans.at(stage);
  }
  /// The first that is recorded of a stage's ranks, which all do the same. Throws Failure where none is.
  const RankRecord& first_on(int wanted) const {
    for (const RankRecord& record : records)
      if (stage(record.rank) == wanted) return record;
    std::string files;
    for (int rank = 0; rank < of->plan->mesh.ranks(); ++rank)
      if (stage(rank) == wanted) files += (files.empty() ? "'" : ", '") + record_file(file, rank) + "'";
    throw Failure("there is no record of stage " + std::to_string(wanted) + "; one is enough of " + files,
                  exit_code::missing_input);
  }
  Measured measured(const AllTasks& tasks) {
    std::vector<std::pair<const Plan*, const RankRecord*>> one_of_each;
    for (int k = 0; k < tasks.size(); ++k) one_of_each.emplace_back(&plan(k), &first_on(k));
    return planner::measured(tasks, one_of_each, skipped);
  }
};

/// FILE.0, FILE.1, ... one for each rank; `some`: one of each stage is enough, where it has rank 0. The program is the
/// one whose plan the record is.
inline LaidRun laid_run(const std::vector<Answer>& answers, const std::string& file, bool some) {
  const RankRecord first = read_record(file, 0);
  Laid nearest;  // of the programs that are another, the one that went furthest
  for (const Answer& a : answers) {
    if (text(a.plan->mesh) != first.mesh) continue;
    LaidRun run{&a, file, {}, {first}, {}};
    const Laid laid = lay(run.plan(0), first);
    if (laid.line > nearest.line) nearest = {a.name + ": " + laid.differs, laid.line};
    if (!laid.differs.empty()) continue;
    run.skipped = laid.skipped;
    for (int rank = 1; rank < a.plan->mesh.ranks(); ++rank) {
      std::error_code error;
      if (some && !std::filesystem::exists(record_file(file, rank), error)) continue;
      run.records.push_back(read_record(file, rank));
      if (run.records.back().mesh != first.mesh)
        throw Failure("the record '" + run.records.back().file + "' is of another mesh", exit_code::plans_differ);
      const Laid other = lay(run.plan(run.stage(rank)), run.records.back());
      if (!other.differs.empty()) throw Failure("the run is not the plan: " + other.differs, exit_code::plans_differ);
      const int steps = first.lines.back().step, others = run.records.back().lines.back().step;
      if (others != steps)
        throw Failure("the run is not the plan: rank " + std::to_string(rank) + " recorded " + std::to_string(others) +
                          " steps, rank 0 " + std::to_string(steps),
                      exit_code::plans_differ);
      if (other.skipped != laid.skipped)
        throw Failure("the run is not the plan: rank " + std::to_string(rank) + " skipped other steps than rank 0",
                      exit_code::plans_differ);
    }
    return run;
  }
  throw Failure(nearest.line == 0 ? "the record is of the mesh " + first.mesh + ", for which nothing was planned here"
                                  : "the run is not the plan: " + nearest.differs,
                exit_code::plans_differ);
}

/// What a stage was to do and, below it, did. Without a machine's prices all stages together work as long in both.
inline std::string drawn(LaidRun& run, bool as_text) {
  const Answer& a = *run.of;
  Timing planned = a.timing();
  const Measured measured = run.measured(planned.tasks);
  if (!a.machine) planned = scaled(planned, measured.timing);
  const std::string axis(a.plan->graph.stages->text());
  if (!as_text) return svg(planned, axis, &measured.timing);
  std::string ranks;
  for (int k = 0; k < planned.tasks.size(); ++k) ranks += (k > 0 ? ", " : "") + std::to_string(run.first_on(k).rank);
  return a.schedule_title() + "\nbelow each stage step " + std::to_string(measured.step) + " of the run, of ranks " +
         ranks +
         (measured.one_clock ? "" : "; their clocks differ, so their steps are drawn as if they had begun at once") +
         "\n\n" + picture(planned, measured.timing, axis) + "\nplanned  " + duration(predicting::end_of(planned)) +
         ", " + bubble(planned) + "\nrun      " + duration(predicting::end_of(measured.timing)) + ", " +
         bubble(measured.timing) + "\n";
}

/// Every call checked, then what was asked for.
inline void lay_over(const std::vector<Answer>& answers, const Asked& asked, std::ostream& out) {
  const bool pictured = asked.schedule || asked.schedule_svg;
  LaidRun run = laid_run(answers, asked.run, pictured);
  const Answer& a = *run.of;
  const std::string where = a.name + "\n" + a.where() + ": every call and byte of " +
                            std::to_string(a.plan->mesh.ranks()) + " ranks is the plan's\n\n";
  const RankRecord& record = run.first_on(a.plan->mesh.here);
  if (pictured)
    out << drawn(run, asked.schedule);
  else if (asked.times)
    out << where << times(*a.plan, record, a.machine);
  else
    out << where << overlay(*a.plan, record, a.price(), a.machine ? a.simulated().second : 0);
}

}  // namespace planner
