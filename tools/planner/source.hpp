// From a file to the programs that it carries. A source is compiled to an object first, by a compiler that is called
// without a shell.
#pragma once
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <signal.h>
#include <spawn.h>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <parallel/object/find_object.hpp>

#include "asked.hpp"

namespace planner {

/// Holds back the signals that end a program for as long as it lives, so that what was begun is undone; then they do
/// what they do.
class HeldBack {
 public:
  HeldBack() {
    sigemptyset(&ending_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction now {};
      if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&ending_, signal);
    }
    sigprocmask(SIG_BLOCK, &ending_, &before_);
  }
  ~HeldBack() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldBack(const HeldBack&) = delete;
  HeldBack& operator=(const HeldBack&) = delete;

  /// Waits so long for one, and leaves it held back. 0: none came.
  int wait(std::chrono::nanoseconds time) const {
    constexpr std::int64_t second = 1'000'000'000;
    const timespec limit{static_cast<time_t>(time.count() / second), static_cast<long>(time.count() % second)};
    const int signal = sigtimedwait(&ending_, nullptr, &limit);
    if (signal > 0) raise(signal);
    return std::max(signal, 0);
  }
  /// What a child begins with.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t ending_{}, before_{};
};

/// A folder that is gone with this object.
class Scratch {
 public:
  Scratch() {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
    std::string name = (folder / "plan-XXXXXX").string();
    if (error || mkdtemp(name.data()) == nullptr)
      throw Failure("no temporary folder can be made; let TMPDIR name a folder that can be written to", exit_code::io);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline constexpr const char* source_endings[] = {".cpp", ".cc", ".cxx", ".C", ".cu", ".hpp", ".h"};
inline bool is_source(const std::filesystem::path& file) {
  return std::any_of(std::begin(source_endings), std::end(source_endings),
                     [&](const char* ending) { return file.extension() == ending; });
}

/// Whether annotations are tried that the source lacks.
inline bool tries(const Asked& asked) {
  return is_source(asked.file) && (asked.why_memory || (asked.advise > 0 && !asked.memory.empty()));
}

/// Whether a child has ended. It stays known by its number until it is waited for.
inline bool has_ended(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == child;
}
/// Waits for a child, or for a signal that ends this program: then the child's whole group is ended too, at first by
/// the same signal, so that a compiler removes what it has begun to write.
inline void wait_for(pid_t child, const HeldBack& signals) {
  using namespace std::chrono_literals;
  int signal = 0;
  while (signal == 0 && !has_ended(child)) signal = signals.wait(10ms);
  if (signal == 0) return;
  kill(-child, signal);
  for (int i = 0; i < 100 && !has_ended(child); ++i) std::this_thread::sleep_for(10ms);
  kill(-child, SIGKILL);
}

/// Runs a compiler with these arguments and waits for it. Its output is the tool's error stream. Returns its exit
/// status.
inline int run(const std::vector<std::string>& command, const HeldBack& signals) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);  // a compiler has children
  posix_spawnattr_setsigmask(&attributes, &signals.before());
  pid_t child = 0;
  const int refused = posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (refused != 0)
    throw Failure("the compiler '" + command[0] + "' cannot be run: " + std::strerror(refused) +
                      "; name another with --compiler or CXX",
                  exit_code::unavailable);
  wait_for(child, signals);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/// Compiles a source without optimization: nothing of it will run.
inline void compile(const Asked& asked, const std::filesystem::path& object, const HeldBack& signals) {
  std::istringstream words(asked.compiler);  // "ccache g++"
  std::vector<std::string> command{std::istream_iterator<std::string>(words), {}};
  if (command.empty()) throw Failure("no compiler is named; say --compiler g++", exit_code::usage);
  const bool nvcc = std::filesystem::path(command.back()).filename() == "nvcc";
  // what the library has compiled need not be compiled here: nothing is linked
  command.insert(command.end(), {"-std=c++20", "-O0", "-w", "-DPARALLEL_LIBRARY", "-I" + asked.include});
  // a program over its budget is planned all the same, and with what is tried its assertions do not hold
  if (tries(asked))
    command.insert(command.end(), {"-Dstatic_assert(...)=", "-DPARALLEL_TRIED=\"" + asked.tried + "\""});
  // g++'s notes about calls between old objects and new ones, which -w leaves
  if (!nvcc) command.push_back("-Wno-psabi");
  std::error_code error;
  // empty: where compilers look anyway
  const bool eigen =
      asked.eigen.empty() || std::filesystem::exists(std::filesystem::path(asked.eigen) / "Eigen/Core", error);
  if (eigen && !asked.eigen.empty()) command.insert(command.end(), {"-isystem", asked.eigen});
  const std::filesystem::path source = std::filesystem::absolute(asked.file);
  if (source.extension() == ".hpp" || source.extension() == ".h") command.insert(command.end(), {"-x", "c++"});
  command.insert(command.end(), asked.compiling.begin(), asked.compiling.end());
  command.insert(command.end(), {"-c", source.string(), "-o", object.string()});
  if (const int status = run(command, signals); status != 0)
    throw Failure("'" + asked.file + "' does not compile; the compiler's own words are above" +
                      (eigen ? ""
                             : "; there is no Eigen in '" + asked.eigen +
                                   "': name its folder with --eigen if the source includes it"),
                  exit_code::bad_data);
}

inline std::string contents(const std::filesystem::path& path, const std::string& called) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw Failure("'" + called + "' is a folder; name a source, an object or a program", exit_code::missing_input);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure("'" + called + "' cannot be read: " + std::strerror(errno), exit_code::missing_input);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The bytes of what a source is compiled to. Ended by a signal, it leaves neither a folder nor a compiler.
inline std::string compiled(const Asked& asked) {
  const HeldBack signals;
  const Scratch scratch;
  const std::filesystem::path object = scratch.path() / "source.o";
  compile(asked, object, signals);
  return contents(object, asked.file);
}

/// Why a file carries no program, as far as it can be told.
inline std::string none_carried(const std::string& bytes, const Asked& asked) {
  const std::string file = "'" + asked.file + "'";
  if (bytes.starts_with("BC\xC0\xDE") || bytes.find("__gnu_lto_slim") != std::string::npos)
    return file +
           " carries no program yet: -flto leaves all to the linker; name the program that is linked from it, or the source, or compile it without -flto";
  if (is_source(asked.file))
    return file +
           " carries no program; name plan<Program, Mesh{...}> or derive<Program>(mesh) in it, outside of templates that nothing uses";
  if (!bytes.empty() && bytes.find('\0') == std::string::npos) {
    std::string endings;
    for (const char* ending : source_endings) endings += std::string(endings.empty() ? "" : " ") + ending;
    return file +
           " carries no program: it is a text; if it is a source, give its name an ending by which it is compiled: " +
           endings;
  }
  return file +
         " carries no program; either no plan<Program, Mesh{...}> or derive<Program>(mesh) stands in its source, or the linker dropped what nothing refers to "
         "(--gc-sections); name the source, or an object of it";
}

/// Names leave values of template arguments out, so programs may share one: from the second on they are "NAME #2",
/// "NAME #3", in the file's order.
inline void tell_apart(object::Found& found) {
  std::map<std::string, int> count;
  for (const auto& program : found.programs)
    if (const int nth = ++count[program->name]; nth > 1) program->name += " #" + std::to_string(nth);
}

/// The programs and meshes of a file, each program by a name of its own.
inline object::Found programs_of(const Asked& asked) {
  std::error_code error;
  if (!std::filesystem::exists(asked.file, error))
    throw Failure("there is no file '" + asked.file + "'", exit_code::missing_input);
  const std::string bytes = is_source(asked.file) ? compiled(asked) : contents(asked.file, asked.file);
  object::Found found;
  try {
    found = object::find(bytes);
  } catch (const object::Damaged& damaged) {
    throw Failure("the program in '" + asked.file + "' cannot be read: " + damaged.what() +
                      "; compile it again with this version's headers",
                  exit_code::bad_data);
  }
  if (found.programs.empty()) throw Failure(none_carried(bytes, asked), exit_code::bad_data);
  tell_apart(found);
  return found;
}

}  // namespace planner
