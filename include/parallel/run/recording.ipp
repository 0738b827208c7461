// What is recorded, as a file.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include <parallel/algebra/notation.hpp>
#include <parallel/file/new_file.hpp>
#include <parallel/plan/walk.hpp>
#include <parallel/question/text.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/recording.hpp>

namespace parallel::internals {

PARALLEL_INLINE Recording::Recording(const std::string& file, const Plan& plan, int rank, int steps)
    : Recording(plan, rank, file.empty() ? 0 : steps) {
  if (file.empty()) return;
  if (std::filesystem::is_directory(file))
    throw Failure("the record '" + file + "' is a folder; name a file in it, to which each rank adds its number",
                  exit_code::io);
  file_ = file + "." + std::to_string(rank);
  NewFile(file_, called()).put_in_place();  // so that no other run's record stands beside those of this one's ranks
}
PARALLEL_INLINE Recording::Recording(const Plan& plan, int rank, int steps) : plan_(plan), rank_(rank), steps_(steps) {
  std::size_t events = 1;
  each_event(plan, [&](const Event&) { ++events; });
  rows_.reserve(events * static_cast<std::size_t>(steps));  // so that the step allocates nothing
}
PARALLEL_INLINE bool Recording::write() const {
  try {
    if (!file_.empty()) write_whole();
    return true;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "warning: %s; the run goes on without it\n", printable(failure.what()).c_str());
    return false;
  }
}

PARALLEL_INLINE void Recording::write_whole() const {
  NewFile file(file_, called());
  std::FILE* const out = file.stream();
  std::fprintf(out, "parallel record 2\nmesh %s\nrank %d\n", text(plan_.mesh).c_str(), rank_);
  std::map<int, std::string> computed;  // by node
  for (const Event& e : plan_.events)
    if (e.kind == EventKind::compute) computed[e.node] = operations(plan_.graph, e);
  for (const Happened& h : rows_) {
    const Node& node = plan_.graph.node(std::max(h.node, 0));
    if (h.node == Happened::counter)
      std::fprintf(out, "%d count -1 %s_max %s %d %s %lld %.9f %.9f\n", h.step,
                   std::string(name_of(h.call.kind)).c_str(), text(plan_.agreement.counter.axes()).c_str(),
                   h.call.ranks, std::string(name_of(h.call.dtype)).c_str(), static_cast<long long>(h.call.bytes),
                   h.begin, h.end);
    else if (h.kind == EventKind::compute)
      std::fprintf(out, "%d compute %d %s - 0 - 0 %.9f %.9f\n", h.step, h.node, computed[h.node].c_str(), h.begin,
                   h.end);
    else
      std::fprintf(out, "%d %s %d %s%s %s %d %s %lld %.9f %.9f\n", h.step,
                   h.kind == EventKind::start ? "start" : "wait", h.node, std::string(name_of(h.call.kind)).c_str(),
                   h.call.maximum ? "_max" : "", text(node.transition.axes).c_str(), h.call.ranks,
                   std::string(name_of(h.call.dtype)).c_str(), static_cast<long long>(h.call.bytes), h.begin, h.end);
  }
  file.put_in_place();
}
PARALLEL_INLINE bool records_from_outside() {
  const char* const file = std::getenv("PARALLEL_RECORD");
  return file != nullptr && *file != '\0';
}
PARALLEL_INLINE std::string file_from_outside(int rank) {
  static std::mutex mutex;
  static std::map<int, int> programs;  // by rank, as ranks are threads of several runs
  const std::lock_guard guard(mutex);
  const std::string file = std::getenv("PARALLEL_RECORD");
  const int number = ++programs[rank];
  return number == 1 ? file : file + "-" + std::to_string(number);
}
PARALLEL_INLINE std::string record_argument(int argc, char** argv) {
  if (argc == 1) return "";
  if (argc == 3 && std::strcmp(argv[1], "--record") == 0) return argv[2];
  throw Failure("unknown argument, or --record without its file; say " + std::string(argv[0]) + " [--record FILE]",
                exit_code::usage);
}

}  // namespace parallel::internals
