// What tools/plan was asked for, and how it ends when it cannot.
#pragma once
#include <string>
#include <vector>

#include <parallel/run/failure.hpp>

namespace planner {

using namespace parallel;
using namespace parallel::internals;

/// The command line.
struct Asked {
  std::string file{};                    ///< a source, an object, a library or a program
  std::vector<std::string> compiling{};  ///< further arguments of the compiler
  std::string compiler{}, include{}, eigen{};
  std::string mesh{}, program{}, machine{};
  std::string why{}, run{}, lock{}, picture{}, svg{};
  std::string output{};  ///< empty: the standard output
  enum class Format { text, json, dot, timeline, html } format = Format::text;
  int stage = -1;       ///< -1: not said
  int threads = 1;      ///< that compute a rank's operations together
  std::string tried{};  ///< annotations as which the source is compiled (program/tried.hpp)
  bool why_memory = false, schedule = false, schedule_svg = false;
  bool times = false;  ///< of a run
  bool locking = false, checking = false;
  int advise = 0;        ///< ranks; 0: no advice is asked for
  std::string memory{};  ///< of a rank, as it was written
};

}  // namespace planner
