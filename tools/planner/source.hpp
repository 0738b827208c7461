// From a file to the programs that it carries. A source is compiled to an object first, by a compiler that is called without a shell.
#pragma once
#include <parallel/plan/find_object.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
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

inline bool is_source(const std::filesystem::path& file) {
  for (const char* ending : {".cpp", ".cc", ".cxx", ".C", ".cu", ".hpp", ".h"})
    if (file.extension() == ending) return true;
  return false;
}

/// Runs a program with these arguments and waits for it. Its output is the tool's error stream. Returns its exit status.
inline int run(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw Failure("no process can be started: " + std::string(std::strerror(errno)), exit_code::io);
  if (child == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execvp(arguments[0], arguments.data());
    std::fprintf(stderr, "plan: error: the compiler '%s' cannot be run: %s\n", arguments[0], std::strerror(errno));
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/// Compiles a source without optimization: nothing of it will run.
inline void compile(const Asked& asked, const std::filesystem::path& object) {
  std::vector<std::string> command{asked.compiler, "-std=c++20", "-O0", "-w", "-I" + asked.include, "-isystem", "/usr/include/eigen3"};
  const std::filesystem::path source = std::filesystem::absolute(asked.file);
  if (source.extension() == ".hpp" || source.extension() == ".h") command.insert(command.end(), {"-x", "c++"});
  command.insert(command.end(), asked.compiling.begin(), asked.compiling.end());
  command.insert(command.end(), {"-c", source.string(), "-o", object.string()});
  if (const int status = run(command); status != 0)
    throw Failure("'" + asked.file + "' does not compile; the compiler's own words are above", status == 127 ? exit_code::unavailable : exit_code::bad_data);
}

inline std::string contents(const std::filesystem::path& path, const std::string& called) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw Failure("'" + called + "' is a folder; name a source, an object or a program", exit_code::missing_input);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure("'" + called + "' cannot be read: " + std::strerror(errno), exit_code::missing_input);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The programs and meshes of a file.
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
  try {
    found = object::find(contents(object, asked.file));
  } catch (const object::Damaged& damaged) {
    throw Failure("the program in '" + asked.file + "' cannot be read: " + damaged.what() + "; compile it again with this version's headers", exit_code::bad_data);
  }
  if (found.programs.empty())
    throw Failure("'" + asked.file + "' carries no program; name plan<Program, Mesh{...}> or derive<Program>(mesh) in its source", exit_code::bad_data);
  return found;
}

}  // namespace planner
