// What ends a program: an exception with one sentence and an exit code.
#pragma once
#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

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

namespace internals {
/// what() ends at a zero byte, which names in a file can have: a question mark stands for it.
inline std::string without_zeros(std::string sentence) {
  std::replace(sentence.begin(), sentence.end(), '\0', '?');
  return sentence;
}
}  // namespace internals

/// Base of the exceptions that end a program with an exit code of their own.
struct Failure : std::runtime_error {
  int exit_code;
  explicit Failure(const std::string& sentence, int code = exit_code::failed)
      : std::runtime_error(internals::without_zeros(sentence)), exit_code(code) {}
};

namespace internals {
/// The exit code that an exception maps to: its own, `failed` where memory ran out, `internal` for any other, and never
/// 0.
inline int exit_code_of(const std::exception& error) {
  if (const auto* failure = dynamic_cast<const Failure*>(&error))
    return failure->exit_code != exit_code::done ? failure->exit_code : exit_code::failed;
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? exit_code::failed : exit_code::internal;
}

/// What is said of an exception that ends a program, and the exit code.
struct Ending {
  std::string sentence;
  int exit_code = parallel::exit_code::internal;
};
/// Of any exception, also of one that is no std::exception.
inline Ending ending_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    return {"out of memory; use a smaller model, a smaller batch or more ranks", exit_code::failed};
  } catch (const std::exception& known) {
    return {known.what(), exit_code_of(known)};
  } catch (...) {
    return {"an exception that is no std::exception; throw one whose what() says what failed", exit_code::internal};
  }
}
}  // namespace internals

}  // namespace parallel
