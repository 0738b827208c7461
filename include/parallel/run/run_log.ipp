// The files of a log, and the page over them.
#pragma once
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

#include <parallel/algebra/notation.hpp>
#include <parallel/file/new_file.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/misuse.hpp>
#include <parallel/run/page.hpp>
#include <parallel/run/run_log.hpp>

namespace parallel::internals {

namespace logging {
// In the order in which they stand in the page.
inline constexpr std::string_view html =
#include <parallel/run/page/runs.html>
    ;
inline constexpr std::string_view style =
#include <parallel/run/page/runs.css>
    ;
inline constexpr std::string_view scripts[] = {
#include <parallel/run/page/run.js>
    ,
#include <parallel/run/page/curve.js>
    ,
#include <parallel/run/page/charts.js>
    ,
#include <parallel/run/page/runs.js>
};

/// The page over a folder of runs: it loads their data from beside it.
inline std::string page_of_runs() {
  std::string all_style(page::style), script(page::elements);
  all_style += style;
  for (const std::string_view s : scripts) script += s;
  return page::filled(html, [&](std::string_view name) { return name == "style" ? all_style : script; });
}

// Data are calls with an object as JSON has it, but for numbers that are none, which are as in JavaScript: a page that
// is opened from disk may load scripts, and no other files.
/// A string of JSON: control characters are escaped, and what is no UTF-8 becomes a question mark.
inline std::string in_quotes(std::string_view text) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  std::string result = "\"";
  while (!text.empty()) {
    const auto end = static_cast<std::size_t>(std::find_if(text.begin(), text.end(), control) - text.begin());
    for (const char c : printable(text.substr(0, end))) {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
    if (end == text.size()) break;
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(text[end]));
    result += escaped;
    text.remove_prefix(end + 1);
  }
  return result + '"';
}
inline std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}
/// {"name":value,...}, of values that are written already.
class Object {
 public:
  Object& with(std::string_view name, const std::string& value) {
    text_ += (text_.empty() ? "{" : ",") + in_quotes(name) + ":" + value;
    return *this;
  }
  std::string text() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_{};
};

/// What this process holds in memory; 0 where the system does not say.
inline double resident_bytes() {
  long long all = 0, resident = 0;
  if (std::FILE* const statm = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(statm, "%lld %lld", &all, &resident) != 2) resident = 0;
    std::fclose(statm);
  }
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

inline constexpr std::string_view row_begin = R"(row({"step":)", line_end = "});\n", more = "more();\n";

/// What stands in a file of rows before step `from`, up to the first line that is none.
struct Kept {
  std::size_t bytes = 0;
  int rows = 0;
  bool more = false;  ///< the next file goes on
};
inline Kept kept(const std::string& file, std::int64_t from) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  Kept k;
  while (!k.more) {
    const std::size_t end = text.find('\n', k.bytes);
    if (end == std::string::npos) break;
    const std::string_view line = std::string_view(text).substr(k.bytes, end + 1 - k.bytes);
    if (line == more) {
      k.more = true;
    } else {
      std::int64_t step = 0;
      if (!line.starts_with(row_begin) || !line.ends_with(line_end)) break;
      const auto [rest, error] = std::from_chars(line.data() + row_begin.size(), line.data() + line.size(), step);
      if (error != std::errc() || *rest != ',' || step >= from) break;
      ++k.rows;
    }
    k.bytes = end + 1;
  }
  return k;
}
}  // namespace logging

PARALLEL_INLINE std::string RunLog::rows(int file) const {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%05d", file);
  return folder_ + "/rows-" + digits + ".js";
}

PARALLEL_INLINE void RunLog::begin(const std::string& folder, const Plan& plan, int ranks, LoggedRun run) {
  namespace fs = std::filesystem;
  const fs::path path = fs::path(folder + "/.").lexically_normal().parent_path(), parent = path.parent_path();
  if (parent.empty() || path.filename() == ".." || path.filename() == ".")
    throw Failure("the log '" + folder + "' is no run in a folder of runs; name both, as runs/first", exit_code::usage);
  folder_ = path.string();
  run_ = std::move(run);
  if (run_.from < 0)
    throw Misuse("a log goes on from step " + std::to_string(run_.from) + "; steps are counted from 0");
  if (!(run_.per_step >= 0) || !std::isfinite(run_.per_step))
    throw Misuse("a step is said to take in " + shortest(run_.per_step) + " " + run_.unit +
                 "; give a number above 0, or 0 where it is not known");
  const auto refused = [&](const std::string& why) {
    return Failure("the log '" + folder_ + "' cannot be written: " + why, exit_code::io);
  };
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw refused(error.message());
  lock_.folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_.folder < 0) throw refused(std::strerror(errno));
  if (::flock(lock_.folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw refused("another program logs there; give this run a name of its own");
  cut();

  using logging::number, logging::in_quotes;
  const auto write_file = [](const std::string& file, const std::string& text) {
    NewFile whole(file, "the file '" + file + "'");
    whole.write(text.data(), text.size());
    whole.put_in_place();
  };
  logging::Object notes, head;
  for (const auto& [name, text] : run_.notes) notes.with(name, in_quotes(text));
  head.with("started", number(seconds_since_1970()))
      .with("from", std::to_string(run_.from))
      .with("mesh", in_quotes(text(plan.mesh)))
      .with("ranks", std::to_string(plan.mesh.ranks()))
      .with("ranks_here", std::to_string(ranks))
      .with("planned", number(static_cast<double>(plan.process_memory()) * ranks))
      .with("unit", in_quotes(run_.unit))
      .with("per_step", number(run_.per_step))
      .with("notes", notes.text());
  write_file(folder_ + "/head.js", "head(" + head.text() + ");\n");
  write_file((parent / "runs.html").string(), logging::page_of_runs());
  if (!AppendedFile((parent / "runs.js").string()).append("run(" + in_quotes(path.filename().string()) + ");\n"))
    throw refused(std::strerror(errno));
  if (run_.tensorboard) events_.emplace(folder_, run_.from);
  at_ = Clock::now();
  begun_ = true;
}

PARALLEL_INLINE void RunLog::cut() {
  const auto there = [this](int file) { return std::filesystem::exists(rows(file)); };
  logging::Kept last = logging::kept(rows(0), run_.from);
  while (last.more && there(files_ + 1)) last = logging::kept(rows(++files_), run_.from);
  int later = files_ + 1;
  while (there(later)) ++later;
  std::error_code error;
  while (--later > files_) std::filesystem::remove(rows(later), error);  // the last first: a crash leaves no gap
  file_.emplace(rows(files_));
  std::filesystem::resize_file(rows(files_), last.bytes, error);
  if (error) throw Failure("'" + rows(files_) + "' cannot be cut: " + error.message(), exit_code::io);
  rows_ = last.more ? rows_of_file : last.rows;
  if (last.more) {
    file_.emplace(rows(++files_));
    rows_ = 0;
  }
}

PARALLEL_INLINE void RunLog::check(std::int64_t step, const std::vector<LoggedNumber>& numbers,
                                   const std::string& throughput) const {
  const std::int64_t least = last_.value_or(run_.from);
  if (step < least)
    throw Misuse("step " + std::to_string(step) + " is logged " +
                 (last_ ? "behind step " : "of a run that goes on from step ") + std::to_string(least) +
                 "; steps do not go back");
  const auto refused = [](const LoggedNumber& n, const char* why) {
    return Misuse("a number is logged as '" + std::string(n.name) + "', " + why + "; give it another name");
  };
  for (auto n = numbers.begin(); n != numbers.end(); ++n) {
    if (n->name.empty()) throw Misuse("a number without a name is logged; give it one");
    for (const std::string_view own :
         std::initializer_list<std::string_view>{"step", "time", "seconds", "memory", throughput})
      if (n->name == own) throw refused(*n, "which the log says itself");
    const auto same = [&](const LoggedNumber& before) { return before.name == n->name; };
    if (std::any_of(numbers.begin(), n, same)) throw refused(*n, "as another of this call is");
  }
}

PARALLEL_INLINE void RunLog::write(std::int64_t step, std::vector<LoggedNumber> numbers) {
  const Clock::time_point now = Clock::now();
  const double steps = last_ ? static_cast<double>(step - *last_) : 0;
  const std::string throughput = run_.unit + "_per_second";
  check(step, numbers, throughput);
  std::vector<LoggedNumber> all;
  if (steps > 0) {
    const double seconds = std::chrono::duration<double>(now - at_).count() / steps;
    all.push_back({"seconds", seconds});
    if (run_.per_step > 0 && seconds > 0) all.push_back({throughput, run_.per_step / seconds});
  }
  if (const double bytes = logging::resident_bytes(); bytes > 0) all.push_back({"memory", bytes});
  all.insert(all.end(), numbers.begin(), numbers.end());

  logging::Object row;
  row.with("step", std::to_string(step));
  char time[32];
  std::snprintf(time, sizeof time, "%.3f", seconds_since_1970());
  row.with("time", time);
  for (const auto& [name, value] : all) row.with(name, logging::number(value));
  append("row(" + row.text() + ");\n");
  if (events_ && !events_->add(step, all)) warn();
  last_ = step;
  at_ = Clock::now();
}

PARALLEL_INLINE void RunLog::append(std::string_view line) {
  if (rows_ == rows_of_file) {
    try {
      AppendedFile next(rows(files_ + 1));  // it is there before the page is told of it
      if (!file_->append(logging::more)) return warn();
      file_ = std::move(next);
      ++files_;
      rows_ = 0;
    } catch (const Failure&) {
      return warn();
    }
  }
  if (!file_->append(line)) return warn();
  ++rows_;
}

PARALLEL_INLINE void RunLog::warn() {
  if (warned_) return;
  warned_ = true;
  std::fprintf(stderr, "warning: the log '%s' cannot be written: %s; the run goes on, and what cannot be is left out\n",
               printable(folder_).c_str(), std::strerror(errno));
}

}  // namespace parallel::internals
