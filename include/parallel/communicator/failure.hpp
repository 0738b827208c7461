// What goes wrong between ranks at run time: each an exception that knows the exit code of the program it ends.
#pragma once
#include <chrono>
#include <parallel/meta/failure.hpp>
#include <string>
#include <utility>
#include <vector>

namespace parallel {

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
