// How a program ends: exit codes, and one sentence on the standard error.
#pragma once
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>

#include <parallel/communicator/failure.hpp>
#include <parallel/meta/library.hpp>
#include <parallel/run/standard_output.hpp>

namespace parallel::internals {

/// A run that cannot begin: the number of ranks is not the mesh's, parameters lie otherwise than the plan says, a
/// device has no kernel for an operation.
struct CannotRun : Failure {
  explicit CannotRun(const std::string& sentence, int code = exit_code::configuration) : Failure(sentence, code) {}
};

/// Text for a terminal: a control character, which may come from a file or an argument, or what is no UTF-8, becomes a
/// question mark.
PARALLEL_INLINE std::string printable(std::string_view text);

/// Says on the standard error with what a program ends, as `guarded` does, and returns the exit code.
PARALLEL_INLINE int say_ending(const char* name, const std::exception_ptr& error);

template <class F>
int misguarded() {
  static_assert(sizeof(F) == 0,
                "parallel: guarded takes the program's name, then what it does, which returns an exit code; write "
                "return guarded(\"train\", [&] { ...; return 0; })");
  return 0;
}

/// Runs `f()`, which returns an exit code: the body of a main function. An exception, of whatever type, becomes one
/// line "NAME: error: SENTENCE", with the rank that threw it, and its exit code. So does a standard output that cannot
/// be written.
template <class F>
[[nodiscard("it is the program's exit code; return it from main")]] int guarded(const char* name, F f) {
  if constexpr (!std::is_invocable_r_v<int, F&>) {
    return misguarded<F>();
  } else {
    try {
      return with_standard_output(f);
    } catch (...) {
      return say_ending(name, std::current_exception());
    }
  }
}
template <class F>
requires(!std::is_convertible_v<F, const char*>) int guarded(const F&) { return misguarded<F>(); }

}  // namespace parallel::internals

namespace parallel {
using internals::CannotRun;
using internals::guarded;
}  // namespace parallel

#ifndef PARALLEL_LIBRARY
#include <parallel/run/failure.ipp>
#endif
