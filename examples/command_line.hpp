// What the examples take from their command line: numbers, all of them and within bounds, and one sentence for what is
// none. Compiled once, in command_line.cpp, since it never changes with a model.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

class CommandLine {
 public:
  explicit CommandLine(const char* what);
  ~CommandLine();

  // Each names an argument, where its value goes, which is what it has unless given, and what it is for.
  void text(const char* name, std::string& to, const char* what);
  void number(const char* name, int& to, const char* what, int lowest, int highest);
  void number(const char* name, double& to, const char* what, double lowest, double highest);
  void number(const char* name, std::uint64_t& to, const char* what, std::uint64_t highest);
  void flag(const char* name, bool& to, const char* what);

  /// Reads the command line. False where help was asked for, and printed. Throws parallel::Failure(usage).
  bool read(int argc, char** argv);

 private:
  struct Own;
  std::unique_ptr<Own> own_;
};
