// What would lower the memory of a rank: annotations that the source does not have are tried by compiling it with them,
// and planned as it is.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include <parallel/question/text.hpp>

#include "advise_file.hpp"
#include "trials.hpp"

namespace planner {

/// An annotation, and the plan of one program with it.
struct Remedy {
  std::string annotation{};
  std::int64_t peak = 0;
  double sent = 0, copied = 0, flops = 0;  ///< beside those of the program as it is; copied to the host and back
  double cost = 0;  ///< seconds of a step more, where a machine is known; else parts of what is sent and computed
};

namespace remedying {
inline double seconds_of(const Answer& a) { return a.machine ? a.simulated().second : 0; }
inline double part(double more, double of) { return more == 0 ? 0 : of > 0 ? more / of : 1; }

inline Remedy remedy(const Trial& trial, const Answer& as_is, const Answer& with) {
  Remedy r{trial.annotation,
           with.plan->peak_memory(),
           with.plan->all.sent() - as_is.plan->all.sent(),
           copied(*with.plan) - copied(*as_is.plan),
           with.plan->flops() - as_is.plan->flops(),
           0};
  r.cost = as_is.machine ? seconds_of(with) - seconds_of(as_is)
                         : part(r.sent + r.copied, as_is.plan->all.sent()) + part(r.flops, as_is.plan->flops());
  return r;
}
inline std::string signed_bytes(double n) { return (n < 0 ? "-" : "+") + printing::bytes(n < 0 ? -n : n); }
}  // namespace remedying

/// Of each answer the annotations that lower its peak, the cheapest first; and sentences about those that a program
/// refuses.
struct Remedies {
  std::vector<std::vector<Remedy>> of{};
  std::string refused{};
};
inline Remedies remedies(const std::vector<Answer>& answers, const Asked& asked) {
  using namespace remedying;
  Remedies all{std::vector<std::vector<Remedy>>(answers.size())};
  std::vector<Trial> tried;
  for (const Answer& a : answers)
    for (const Trial& t : trials(*a.whole, !a.machine || a.machine->link_to_host() != nullptr))
      if (std::none_of(tried.begin(), tried.end(), [&](const Trial& other) { return other.words == t.words; }))
        tried.push_back(t);
  for (const Trial& t : tried) {
    const object::Found found = programs_with(t.words, asked);
    if (found.programs.empty()) {
      all.refused += "The program does not compile with " + t.annotation + ".\n";
      continue;
    }
    std::vector<Answer> with;
    try {
      with = planner::answers(found, asked);
    } catch (const Failure& failure) {
      if (failure.exit_code != exit_code::configuration) throw;
      all.refused += "The program has no plan with " + t.annotation + ": " + failure.what() + "\n";
    }
    // a program's own name has no word of it, so the answers are the same ones in the same order
    for (std::size_t i = 0; i < answers.size() && with.size() == answers.size(); ++i)
      if (with[i].plan->peak_memory() < answers[i].plan->peak_memory())
        all.of[i].push_back(remedy(t, answers[i], with[i]));
  }
  for (std::vector<Remedy>& list : all.of)
    std::stable_sort(list.begin(), list.end(), [](const Remedy& a, const Remedy& b) {
      return a.cost != b.cost ? a.cost < b.cost : a.peak < b.peak;
    });
  return all;
}

/// The three cheapest, of those that fit in so many bytes where any do, with what each leaves and costs; where none
/// does, what needs least.
inline std::string text_of(std::vector<Remedy> list, const Answer& as_is, std::int64_t memory) {
  using namespace remedying;
  if (std::stable_partition(list.begin(), list.end(), [&](const Remedy& r) { return r.peak <= memory; }) ==
      list.begin())
    std::stable_sort(list.begin(), list.end(), [](const Remedy& a, const Remedy& b) { return a.peak < b.peak; });
  if (list.empty())
    return "no annotation that is tried lowers it: the stages of Stored on axes that split inputs and on the host, "
           "Recompute and KeepOnHost\n";
  printing::Table table;
  table.rows.push_back({{"would lower it", "to", "sent", "copied", "computed", ""}});
  for (std::size_t i = 0; i < std::min<std::size_t>(3, list.size()); ++i) {
    char flops[64];
    std::snprintf(flops, sizeof flops, "%+.3g FLOP, %+.1f %%", list[i].flops,
                  100 * part(list[i].flops, as_is.plan->flops()));
    table.rows.push_back(
        {{list[i].annotation, printing::bytes(static_cast<double>(list[i].peak)), signed_bytes(list[i].sent),
          signed_bytes(list[i].copied), flops, list[i].peak > memory ? "does not fit" : ""}});
  }
  return table.text();
}

/// --why-memory: of each answer the fullest moment, and where its source is known what would lower it.
inline void print_why_memory(const std::vector<Answer>& answers, const Asked& asked, std::ostream& out) {
  Remedies found;
  const std::int64_t memory =
      asked.memory.empty() ? std::numeric_limits<std::int64_t>::max() : bytes_argument(asked.memory);
  if (is_source(asked.file)) found = remedies(answers, asked);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Answer& a = answers[i];
    out << a.name << "\n" << a.where() << "\n\n" << why_memory(*a.plan) << "\n";
    out << (found.of.empty() ? "what would lower it is tried where the file is a source\n"
                             : text_of(found.of[i], a, memory) + found.refused)
        << "\n";
  }
}

}  // namespace planner
