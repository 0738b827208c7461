// From a file to the programs that it carries. A source is compiled to an object first, by a compiler that is called without a shell.
#pragma once
#include <parallel/plan/find_object.hpp>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "asked.hpp"

namespace planner {

/// A folder that is gone with this object.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "plan-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw Failure("no folder can be made in " + std::filesystem::temp_directory_path().string(), exit_code::io);
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
  return std::any_of(std::begin(source_endings), std::end(source_endings), [&](const char* ending) { return file.extension() == ending; });
}

/// Runs a compiler with these arguments and waits for it. Its output is the tool's error stream. Returns its exit status.
inline int run(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int refused = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (refused != 0)
    throw Failure("the compiler '" + command[0] + "' cannot be run: " + std::strerror(refused) + "; name another with --compiler or CXX", exit_code::unavailable);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/// Compiles a source without optimization: nothing of it will run.
inline void compile(const Asked& asked, const std::filesystem::path& object) {
  std::istringstream words(asked.compiler);  // "ccache g++"
  std::vector<std::string> command{std::istream_iterator<std::string>(words), {}};
  if (command.empty()) throw Failure("no compiler is named; say --compiler g++", exit_code::usage);
  const bool nvcc = std::filesystem::path(command.back()).filename() == "nvcc";
  command.insert(command.end(), {"-std=c++20", "-O0", "-w", "-I" + asked.include});
  if (!nvcc) command.push_back("-Wno-psabi");  // g++'s notes about calls between old objects and new ones, which -w leaves
  std::error_code error;
  const bool eigen = asked.eigen.empty() || std::filesystem::exists(std::filesystem::path(asked.eigen) / "Eigen/Core", error);  // empty: where compilers look anyway
  if (eigen && !asked.eigen.empty()) command.insert(command.end(), {"-isystem", asked.eigen});
  const std::filesystem::path source = std::filesystem::absolute(asked.file);
  if (source.extension() == ".hpp" || source.extension() == ".h") command.insert(command.end(), {"-x", "c++"});
  command.insert(command.end(), asked.compiling.begin(), asked.compiling.end());
  command.insert(command.end(), {"-c", source.string(), "-o", object.string()});
  if (const int status = run(command); status != 0)
    throw Failure("'" + asked.file + "' does not compile; the compiler's own words are above" +
                      (eigen ? "" : "; there is no Eigen in '" + asked.eigen + "': name its folder with --eigen if the source includes it"),
                  exit_code::bad_data);
}

inline std::string contents(const std::filesystem::path& path, const std::string& called) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw Failure("'" + called + "' is a folder; name a source, an object or a program", exit_code::missing_input);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure("'" + called + "' cannot be read: " + std::strerror(errno), exit_code::missing_input);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Why a file carries no program, as far as it can be told.
inline std::string none_carried(const std::string& bytes, const Asked& asked) {
  const std::string file = "'" + asked.file + "'";
  if (bytes.starts_with("BC\xC0\xDE") || bytes.find("__gnu_lto_slim") != std::string::npos)
    return file + " carries no program yet: -flto leaves all to the linker; name the program that is linked from it, or the source, or compile it without -flto";
  if (is_source(asked.file)) return file + " carries no program; name plan<Program, Mesh{...}> or derive<Program>(mesh) in it, outside of templates that nothing uses";
  if (!bytes.empty() && bytes.find('\0') == std::string::npos) {
    std::string endings;
    for (const char* ending : source_endings) endings += std::string(endings.empty() ? "" : " ") + ending;
    return file + " carries no program: it is a text; if it is a source, give its name an ending by which it is compiled: " + endings;
  }
  return file + " carries no program; either no plan<Program, Mesh{...}> or derive<Program>(mesh) stands in its source, or the linker dropped what nothing refers to "
                "(--gc-sections); name the source, or an object of it";
}

/// Names leave values of template arguments out, so programs may share one: from the second on they are "NAME #2", "NAME #3", in the file's order.
inline void tell_apart(object::Found& found) {
  std::map<std::string, int> count;
  for (const auto& program : found.programs)
    if (const int nth = ++count[program->name]; nth > 1) program->name += " #" + std::to_string(nth);
}

/// The programs and meshes of a file, each program by a name of its own.
inline object::Found programs_of(const Asked& asked) {
  Scratch scratch;
  std::filesystem::path object = asked.file;
  std::error_code error;
  if (!std::filesystem::exists(asked.file, error)) throw Failure("there is no file '" + asked.file + "'", exit_code::missing_input);
  if (is_source(asked.file)) {
    object = scratch.path() / "source.o";
    compile(asked, object);
  }
  object::Found found;
  const std::string bytes = contents(object, asked.file);
  try {
    found = object::find(bytes);
  } catch (const object::Damaged& damaged) {
    throw Failure("the program in '" + asked.file + "' cannot be read: " + damaged.what() + "; compile it again with this version's headers", exit_code::bad_data);
  }
  if (found.programs.empty()) throw Failure(none_carried(bytes, asked), exit_code::bad_data);
  tell_apart(found);
  return found;
}

}  // namespace planner
