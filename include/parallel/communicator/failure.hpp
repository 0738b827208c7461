// What goes wrong between ranks at run time: each an exception that knows the exit code of the program it ends.
#pragma once
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

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

/// An exchange was asked for that no communicator carries out.
struct ExchangeRefused : Failure {
  using Failure::Failure;
};

/// Another rank failed, or ended, while this one needed it. The other rank's own exception says why.
struct PeerFailed : Failure {
  explicit PeerFailed(const std::string& sentence) : Failure(sentence, 75) {}
};

/// The ranks of a group called different collectives, or a send and its receive differ.
struct Mismatch : Failure {
  explicit Mismatch(const std::string& sentence) : Failure(sentence, 76) {}
};

/// A rank waited longer than the deadline.
struct Deadline : Failure {
  std::vector<int> missing;  ///< ranks of the group that had not arrived
  explicit Deadline(const std::string& sentence, std::vector<int> ranks = {}) : Failure(sentence, 75), missing(std::move(ranks)) {}
};

inline std::string text(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? std::to_string(time.count() / 1000) + " s" : std::to_string(time.count()) + " ms";
}

}  // namespace parallel
