// What ends a program: an exception with one sentence and an exit code.
#pragma once
#include <stdexcept>
#include <string>

namespace parallel {

/// Base of the exceptions that end a program with an exit code of their own.
struct Failure : std::runtime_error {
  int exit_code;
  explicit Failure(const std::string& sentence, int code = 1) : std::runtime_error(sentence), exit_code(code) {}
};

/// The exit code that an exception maps to: 1 unless it says otherwise, and never 0.
inline int exit_code_of(const std::exception& error) {
  const auto* failure = dynamic_cast<const Failure*>(&error);
  return failure != nullptr && failure->exit_code != 0 ? failure->exit_code : 1;
}

}  // namespace parallel
