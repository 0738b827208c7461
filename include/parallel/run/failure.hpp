// How a program ends: exit codes, and one sentence on the standard error.
#pragma once
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include <parallel/communicator/failure.hpp>
#include <parallel/plan/derive.hpp>

namespace parallel {

/// Exit codes of every program of this library (after sysexits.h where that has one).
namespace exit_code {
inline constexpr int done = 0;
inline constexpr int failed = 1;          ///< the work itself failed: a loss that is no number
inline constexpr int usage = 2;           ///< a flag misspelt or without its value
inline constexpr int bad_data = 65;       ///< a file that is empty, too short or damaged
inline constexpr int missing_input = 66;  ///< a file that is not there or cannot be read
inline constexpr int unavailable = 69;    ///< a backend that is not built in or not there
inline constexpr int internal = 70;
inline constexpr int io = 74;             ///< a write that failed
inline constexpr int peer = 75;           ///< a rank that failed or did not answer in time
inline constexpr int plans_differ = 76;   ///< ranks with other programs or plans
inline constexpr int configuration = 78;  ///< a mesh, an axis, a number of ranks
}  // namespace exit_code

/// A run that cannot begin: the number of ranks is not the mesh's, or a device has no kernel for an operation.
struct CannotRun : Failure {
  explicit CannotRun(const std::string& sentence, int code = exit_code::configuration) : Failure(sentence, code) {}
};

/// Runs `f()`, which returns an exit code; an exception becomes one line "NAME: error: SENTENCE" and its exit code.
template <class F>
int guarded(const char* name, F f) {
  int code = exit_code::internal;
  std::string sentence;
  try {
    return f();
  } catch (const MeshRefused& error) {
    sentence = error.what(), code = exit_code::configuration;
  } catch (const Failure& error) {
    sentence = error.what(), code = error.exit_code;
  } catch (const std::bad_alloc&) {
    sentence = "out of memory; use a smaller model, a smaller batch or more ranks", code = exit_code::failed;
  } catch (const std::exception& error) {
    sentence = error.what();
  }
  std::fprintf(stderr, "%s: error: %s\n", name, sentence.c_str());
  return code;
}

}  // namespace parallel
