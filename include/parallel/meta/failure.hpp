// What ends a program: an exception with one sentence and an exit code.
#pragma once
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

namespace parallel {

/// Base of the exceptions that end a program with an exit code of their own.
struct Failure : std::runtime_error {
  int exit_code;
  explicit Failure(const std::string& sentence, int code = 1) : std::runtime_error(sentence), exit_code(code) {}
};

/// The exit code that an exception maps to: its own, 1 where memory ran out, 70 for any other, and never 0.
inline int exit_code_of(const std::exception& error) {
  if (const auto* failure = dynamic_cast<const Failure*>(&error))
    return failure->exit_code != 0 ? failure->exit_code : 1;
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? 1 : 70;
}

/// What is said of an exception that ends a program, and the exit code.
struct Ending {
  std::string sentence;
  int exit_code = 70;
};
/// Of any exception, also of one that is no std::exception.
inline Ending ending_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    return {"out of memory; use a smaller model, a smaller batch or more ranks", 1};
  } catch (const std::exception& known) {
    return {known.what(), exit_code_of(known)};
  } catch (...) {
    return {"an exception that is no std::exception; throw one whose what() says what failed", 70};
  }
}

}  // namespace parallel
