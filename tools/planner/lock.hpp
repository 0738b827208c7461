// A plan as a file that is kept beside its source: `tools/plan --lock` writes NAME.plan, `--check` compares and says
// what appeared, vanished, grew, and which member and source line did it. Lines and paths alone are no difference.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <parallel/question/text.hpp>

#include "asked.hpp"
#include "pipeline.hpp"

namespace planner {

/// One line of a lock: what counts, and where it comes from.
struct Locked {
  std::string what{};     ///< "forward   all_reduce  tensor  f32[4096/data, 768] +tensor"
  std::string figures{};  ///< "calls 1  message 6291456  sent 9437184"
  std::string where{};    ///< "mlp.down  o1.cpp:12"
  bool operator==(const Locked& other) const { return what == other.what && figures == other.figures; }
};
/// The lines of one program on one mesh; of a pipeline, those of one stage.
struct Lock {
  std::string program{}, mesh{}, stage{};  ///< the stage as "stage 1", after its axis
  std::vector<Locked> lines{};
  std::string title() const { return program + " on " + mesh + (stage.empty() ? "" : "; " + stage); }
};

inline Lock lock_of(const Plan& plan, const std::string& program) {
  Lock lock{program, text(plan.mesh), "", {}};
  if (const Pipeline p = pipeline_of(plan.graph, plan.mesh); p.stages > 1) {
    lock.stage = std::string(plan.graph.stages->text()) + " " + std::to_string(plan.mesh.here);
    lock.lines.push_back(
        {"schedule  " + text(*plan.graph.schedule) + "  layers " + staged_layers(plan) + "  " + tasks_of(plan),
         "tasks " + std::to_string(plan.graph.slots.size()) + "  in flight " + std::to_string(plan.graph.lanes()), ""});
  }
  plan.all.each([&](const Node& node, std::int64_t times) {
    const Transition& t = node.transition;
    Locked line;
    line.what = std::string(name_of(node.phase)) + "  " + std::string(name_of(t.collective)) +
                (t.maximum ? " max" : "") + "  " + text(t.axes) + "  " + text(plan.graph.value(node.operands[0]).type);
    line.figures = "calls " + std::to_string(times) + "  message " + std::to_string(plan.all.message(node)) +
                   "  sent " + std::to_string(static_cast<std::int64_t>(plan.all.sent(node)));
    const Source source = plan.graph.origin(node).source;
    line.where = member_path(plan, node) +
                 (source.line > 0 ? "  " + file_name(source.file) + ":" + std::to_string(source.line) : "");
    lock.lines.push_back(line);
  });
  const auto beside = [&](const char* what, const Comparison& exchange) {
    if (exchange.calls() > 0)
      lock.lines.push_back({"agreement  " + std::string(what) + "  " + text(exchange.axes()),
                            "calls " + std::to_string(exchange.calls()) + "  message " +
                                std::to_string(exchange.messages()) + "  sent " +
                                std::to_string(static_cast<std::int64_t>(exchange.sent())),
                            ""});
  };
  beside("at start", plan.agreement.start);
  beside("counter of steps", plan.agreement.counter);
  beside("inputs at steps 2^k", plan.agreement.inputs);
  beside("at end", plan.agreement.end);
  for (const Member& m : plan.graph.members)
    if (m.role == Role::parameter)
      lock.lines.push_back({"parameter  " + std::string(plan.graph.path(m)),
                            "bytes " + std::to_string(local_bytes(m.type, plan.mesh)) + "  " + text(m.type), ""});
  const auto memory = [&](const std::string& what, std::int64_t bytes) {
    lock.lines.push_back({what, "bytes " + std::to_string(bytes), ""});
  };
  const auto by_use = [&](const std::string& where, const std::int64_t(&bytes)[uses]) {
    for (int u = 0; u < uses; ++u)
      if (bytes[u] > 0) memory(where + "  " + std::string(name_of(static_cast<Use>(u))), bytes[u]);
  };
  by_use("memory", plan.memory.by_use);
  memory("memory  peak", plan.peak_memory());
  by_use("host", plan.memory.host_by_use);
  if (plan.host_memory() > 0) memory("host  all", plan.host_memory());
  char flops[64];  // of a damaged object there may be more than whole numbers hold
  std::snprintf(flops, sizeof flops, "flop %.0f", std::trunc(plan.flops()));
  lock.lines.push_back({"computation", flops, ""});
  return lock;
}

inline std::string written(const std::vector<Lock>& locks) {
  std::string out =
      "# The plan that the compiler derives, kept by tools/plan --lock; tools/plan --check compares. Bytes are per rank; what stands behind # is no part of it.\n";
  for (const Lock& lock : locks) {
    out += "\n[" + lock.title() + "]\n";
    for (const Locked& line : lock.lines) {
      std::string words = line.what;
      pad(words, 72);
      words += line.figures;
      if (!line.where.empty()) {
        pad(words, 124);
        words += "# " + line.where;
      }
      out += words + "\n";
    }
  }
  return out;
}

/// Throws Failure where a line is none.
inline std::vector<Lock> read_locks(const std::string& contents, const std::string& file) {
  std::vector<Lock> locks;
  std::istringstream lines(contents);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const auto refuse = [&](const char* why) {
      return Failure(
          "'" + file + "' line " + std::to_string(number) + " " + why + "; write it anew with tools/plan --lock",
          exit_code::bad_data);
    };
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      const std::size_t on = line.rfind(" on ");
      if (line.back() != ']' || on == std::string::npos) throw refuse("is no [PROGRAM on MESH]");
      locks.push_back({line.substr(1, on - 1), line.substr(on + 4, line.size() - on - 5), "", {}});
      if (const std::size_t stage = locks.back().mesh.find("; "); stage != std::string::npos) {
        locks.back().stage = locks.back().mesh.substr(stage + 2);
        locks.back().mesh.resize(stage);
      }
      continue;
    }
    if (locks.empty()) throw refuse("stands before any program");
    Locked locked;
    if (const std::size_t hash = line.find("# "); hash != std::string::npos) {
      locked.where = line.substr(hash + 2);
      line.resize(hash);
    }
    std::size_t figures = std::string::npos;
    for (const char* word : {" calls ", " bytes ", " flop ", " tasks "}) figures = std::min(figures, line.rfind(word));
    if (figures == std::string::npos) throw refuse("names no figures");
    const auto trimmed = [](std::string text) {
      while (!text.empty() && text.back() == ' ') text.pop_back();
      return text.substr(std::min(text.size(), text.find_first_not_of(' ')));
    };
    locked.what = trimmed(line.substr(0, figures));
    locked.figures = trimmed(line.substr(figures));
    locks.back().lines.push_back(locked);
  }
  return locks;
}

/// What differs, to be read in a review; empty where nothing does.
inline std::string difference(const Lock& before, const Lock& now) {
  std::multimap<std::string, const Locked*> gone;
  std::vector<const Locked*> appeared;
  for (const Locked& line : before.lines) gone.emplace(line.what, &line);
  std::string out;
  const auto place = [](const Locked& line) { return line.where.empty() ? "" : "  (" + line.where + ")"; };
  for (const Locked& line : now.lines) {
    auto [first, last] = gone.equal_range(line.what);
    const auto same =
        std::find_if(first, last, [&](const auto& other) { return other.second->figures == line.figures; });
    if (same != last)
      gone.erase(same);
    else
      appeared.push_back(&line);
  }
  // phase, collective, axes and member: the same call with another tensor grew or shrank
  const auto source = [](const Locked& line) {
    std::size_t end = 0;
    for (int field = 0; field < 3 && end != std::string::npos; ++field)
      end = line.what.find("  ", end == 0 ? 0 : end + 2);
    return line.what.substr(0, end) + "|" + line.where.substr(0, line.where.find("  "));
  };
  for (const Locked* line : appeared) {
    auto changed = gone.find(line->what);
    if (changed == gone.end() && !line->where.empty())
      changed = std::find_if(gone.begin(), gone.end(),
                             [&](const auto& other) { return source(*other.second) == source(*line); });
    if (changed == gone.end()) {
      out += "+ " + line->what + "  " + line->figures + place(*line) + "\n";
    } else {
      const std::string what = changed->second->what == line->what ? "" : line->what + "  ";
      out += "! " + changed->second->what + "  " + changed->second->figures + "  became  " + what + line->figures +
             place(*line) + "\n";
      gone.erase(changed);
    }
  }
  for (const auto& [what, line] : gone) out += "- " + what + "  " + line->figures + place(*line) + "\n";
  if (out.empty() && before.lines.size() == now.lines.size())
    for (std::size_t i = 0; i < now.lines.size(); ++i)
      if (!(before.lines[i] == now.lines[i]))
        return "the order changed: " + before.lines[i].what + " stood where now is " + now.lines[i].what +
               place(now.lines[i]) + "\n";
  return out;
}

inline auto same_title(const std::vector<Lock>& locks, const Lock& lock) {
  return std::find_if(locks.begin(), locks.end(), [&](const Lock& l) { return l.title() == lock.title(); });
}

/// What differs between two files, program by program.
inline std::string difference(const std::vector<Lock>& before, const std::vector<Lock>& now) {
  std::string out;
  for (const Lock& lock : now) {
    const auto old = same_title(before, lock);
    const std::string words = old == before.end() ? "+ a plan that the lock does not have\n" : difference(*old, lock);
    if (!words.empty()) out += "[" + lock.title() + "]\n" + words;
  }
  for (const Lock& lock : before)
    if (same_title(now, lock) == now.end())
      out += "[" + lock.title() + "]\n- a plan that the lock has and the source no more\n";
  return out;
}

/// A file's locks where those that `meant` picks are replaced: each new one stands where its old one stood, or at the
/// end.
template <class Meant>
std::vector<Lock> replaced(const std::vector<Lock>& before, const std::vector<Lock>& now, Meant meant) {
  std::vector<Lock> all;
  for (const Lock& lock : before) {
    const auto fresh = same_title(now, lock);
    if (fresh != now.end())
      all.push_back(*fresh);
    else if (!meant(lock))
      all.push_back(lock);
  }
  for (const Lock& lock : now)
    if (same_title(before, lock) == before.end()) all.push_back(lock);
  return all;
}

}  // namespace planner
