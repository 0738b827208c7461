// Functions run on the ranks of a run of threads, and what each rank saw of its end.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>

#include "communicator_cases.hpp"

namespace thread_runs {

using namespace parallel;
using namespace parallel::internals;
using namespace std::chrono_literals;
using cases::index;
using Clock = std::chrono::steady_clock;

/// Runs f on every rank; what it returns says what is wrong.
template <class F>
void all_right(int ranks, F f) {
  std::vector<std::string> wrong(index(ranks));
  run_threads(ranks, [&](Threads& t) { wrong[index(t.rank())] = f(t); });
  for (const std::string& words : wrong) CHECK(words == "");
}

/// What one rank of a run saw: the exception that ended it, and after how long.
struct Seen {
  std::string words;
  bool peer_failed = false;
};

/// Runs f on every rank and returns the sentence of the exception that run_threads throws; `seen` gets each rank's own.
template <class F>
std::string fails(int ranks, std::vector<Seen>& seen, F f, std::chrono::milliseconds deadline = default_deadline) {
  seen.assign(index(ranks), {});
  const auto start = Clock::now();
  std::string words = "nothing";
  try {
    run_threads(
        ranks,
        [&](Threads& t) {
          Seen& mine = seen[index(t.rank())];
          try {
            f(t);
          } catch (const PeerFailed& error) {
            mine = {error.what(), true};
            throw;
          } catch (const std::exception& error) {
            mine = {error.what(), false};
            throw;
          }
        },
        deadline);
  } catch (const std::exception& error) {
    words = error.what();
  }
  CHECK(Clock::now() - start < 2s);
  return words;
}
inline bool contains(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

}  // namespace thread_runs
