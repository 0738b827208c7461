// Advice as a table and as JSON.
#pragma once
#include <cstdio>

#include "advise.hpp"
#include "json.hpp"
#include "tree.hpp"

namespace planner {

inline std::string schedule_name(const Schedule& s) {
  return std::string(s.name) + (s.chunks > 1 ? ", " + std::to_string(s.chunks) + " chunks" : "");
}

/// "1320 s": steps of large models take long.
inline std::string step_time(double seconds) {
  if (seconds < 1000) return duration(seconds);
  std::string text(400, ' ');  // a machine that somebody describes may take longer than whole numbers count
  text.resize(static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%.0f s", seconds)));
  return text;
}

/// Of each mesh the fastest that fits, of all schedules and annotations; where none fits, the smallest.
inline std::vector<const Candidate*> best_of_each_mesh(const Advice& advice) {
  std::vector<const Candidate*> best;
  for (const Candidate& c : advice.candidates)
    if (std::none_of(best.begin(), best.end(), [&](const Candidate* b) { return text(b->mesh) == text(c.mesh); }))
      best.push_back(&c);
  return best;
}

/// What needs least memory; none where nothing is possible.
inline const Candidate* least_of(const Advice& advice) {
  const Candidate* least = nullptr;
  for (const Candidate& c : advice.candidates)
    if (least == nullptr || c.step.peak_memory() < least->step.peak_memory()) least = &c;
  return least;
}
inline std::string signed_percent(double part) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%+.1f %%", 100 * part);
  return buffer;
}

inline std::string advice_text(const Advice& advice, const std::string& program, const Question& question) {
  const std::vector<const Candidate*> best = best_of_each_mesh(advice);
  const bool staged = std::any_of(best.begin(), best.end(), [](const Candidate* c) { return c->schedule != nullptr; });
  const bool annotated = !advice.tried.empty();
  printing::Table table{{}, {{{"", "mesh", "step", "memory"}}}};
  const auto more = [&](std::initializer_list<std::string> cells) {
    table.rows.back().cells.insert(table.rows.back().cells.end(), cells);
  };
  if (staged) more({"schedule", "bubble"});
  more({"sends"});
  if (annotated) more({"computed", "with"});
  more({"why"});
  int place = 0;
  for (const Candidate* c : best) {
    std::string sends;
    for (std::size_t i = 0; i < c->sent.size(); ++i)
      if (c->sent[i] > 0)
        sends +=
            (sends.empty() ? "" : ", ") + std::string(c->mesh.axes[i].axis->text()) + " " + printing::bytes(c->sent[i]);
    if (c->copied > 0) sends += (sends.empty() ? "host " : ", host ") + printing::bytes(c->copied);
    table.rows.push_back({{c->fits ? std::to_string(++place) : "-", text(c->mesh), step_time(c->step.seconds),
                           printing::bytes(static_cast<double>(c->step.peak_memory()))}});
    if (staged) more({c->schedule ? schedule_name(*c->schedule) : "-", c->schedule ? percent(c->step.bubble()) : "-"});
    more({sends.empty() ? "-" : sends});
    if (annotated) more({signed_percent(c->again), c->with.empty() ? "-" : c->with});
    more({c->why});
  }
  std::string out = program + "\n" + std::to_string(question.ranks) +
                    (question.ranks == 1 ? " rank of " : " ranks of ") + words(question.machine.name.view()) +
                    (question.limited() ? ", each with " + printing::bytes(static_cast<double>(question.memory)) : "") +
                    "\n\n" + table.text();
  if (annotated)
    out += "\nOf each mesh what is fastest" + std::string(staged ? ", by schedule and annotation" : ", by annotation") +
           ", of what fits; --json has all.\n";
  else if (staged)
    out += "\nOf each mesh with stages the fastest schedule" + std::string(question.limited() ? " that fits" : "") +
           "; --json has all.\n";
  if (const Candidate* least = least_of(advice); least != nullptr && question.limited() && !best.front()->fits)
    out += "\nNothing that was tried fits in " + printing::bytes(static_cast<double>(question.memory)) +
           "; the least is " + printing::bytes(static_cast<double>(least->step.peak_memory())) + ", " +
           text(least->mesh) + (least->with.empty() ? "" : " with " + least->with) +
           ": give ranks more memory, take more ranks, or smaller micro-batches.\n";
  for (const std::string& with : advice.refused) out += "\nThe program does not compile with " + with + ".\n";
  if (!advice.impossible.empty()) out += "\nThese are no meshes of the program:\n";
  std::vector<std::pair<const Impossible*, int>> reasons;  // the first mesh of each, and how many there are
  const auto reason = [](const Impossible& i) {
    return i.why.substr(i.why.starts_with(text(i.mesh)) ? text(i.mesh).size() : 0);
  };
  for (const Impossible& i : advice.impossible) {
    const auto known =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return reason(*r.first) == reason(i); });
    known == reasons.end() ? static_cast<void>(reasons.emplace_back(&i, 1)) : static_cast<void>(++known->second);
  }
  for (const auto& [first, count] : reasons) {
    out += "  " + text(first->mesh) + (first->why.starts_with(text(first->mesh)) ? "" : ": ") + reason(*first);
    out += count == 1 ? "\n" : " (and " + std::to_string(count - 1) + " more)\n";
  }
  return out;
}

inline Json mesh_json(const Mesh& mesh) {
  Json axes = Json::object();
  for (int i = 0; i < mesh.count; ++i) axes[words(mesh.axes[i].axis->text())] = mesh.axes[i].size;
  return axes;
}
inline Json advice_json(const Advice& advice, const std::string& program, const Question& question) {
  Json result{
      {"schema", 1}, {"program", program}, {"ranks", question.ranks}, {"machine", words(question.machine.name.view())}};
  if (question.limited()) result["memory"] = question.memory;
  if (!advice.tried.empty()) result["tried"] = advice.tried;
  if (!advice.refused.empty()) result["refused"] = advice.refused;
  result["candidates"] = Json::array();
  for (const Candidate& c : advice.candidates) {
    Json row{{"mesh", mesh_json(c.mesh)}};
    if (c.schedule != nullptr) row["schedule"] = {{"name", words(c.schedule->name)}, {"chunks", c.schedule->chunks}};
    row["seconds"] = c.step.seconds;
    row["bubble"] = c.step.bubble();
    row["memory"] = c.step.peak_memory();
    row["model_flops"] = c.step.model_flops;
    row["sent"] = row["waits"] = Json::object();
    for (std::size_t i = 0; i < c.sent.size(); ++i) row["sent"][words(c.mesh.axes[i].axis->text())] = c.sent[i];
    if (c.copied > 0) row["copied"] = c.copied;
    for (const Exposed& e : c.step.exposed) row["waits"][text(e.axes)] = e.seconds;
    if (!advice.tried.empty()) {
      row["with"] = c.with;
      row["computed_more"] = c.again;
    }
    row["fits"] = c.fits;
    row["why"] = c.why;
    result["candidates"].push_back(row);
  }
  result["impossible"] = Json::array();
  for (const Impossible& i : advice.impossible)
    result["impossible"].push_back({{"mesh", mesh_json(i.mesh)}, {"why", i.why}});
  return result;
}

}  // namespace planner
