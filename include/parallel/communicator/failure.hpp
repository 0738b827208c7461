// What goes wrong between ranks at run time: each an exception that knows the exit code of the program it ends.
#pragma once
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parallel/meta/failure.hpp>

namespace parallel::internals {

/// An exchange was asked for that no communicator carries out.
struct ExchangeRefused : Failure {
  explicit ExchangeRefused(const std::string& sentence) : Failure(sentence, parallel::exit_code::internal) {}
};

/// Another rank failed, or ended, while this one needed it. The other rank's own exception says why.
struct PeerFailed : Failure {
  explicit PeerFailed(const std::string& sentence) : Failure(sentence, parallel::exit_code::peer) {}
};

/// What several ranks have found together, each with the same words.
struct FoundTogether : Failure {
  int ranks = 1;
  FoundTogether(const std::string& sentence, int code, int found_by) : Failure(sentence, code), ranks(found_by) {}
};

/// The ranks of a group called different collectives, or a send and its receive differ.
struct Mismatch : FoundTogether {
  explicit Mismatch(const std::string& sentence, int found_by = 1)
      : FoundTogether(sentence, parallel::exit_code::plans_differ, found_by) {}
};

/// How many ranks have found this together, and say the same.
inline int found_by(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const FoundTogether& together) {
    return together.ranks;
  } catch (...) {
    return 1;
  }
}

/// A rank waited longer than the deadline.
struct Deadline : Failure {
  std::vector<int> missing;  ///< ranks of the group that had not arrived
  explicit Deadline(const std::string& sentence, std::vector<int> ranks = {})
      : Failure(sentence, parallel::exit_code::peer), missing(std::move(ranks)) {}
};

/// Before a process ends at once: what it has printed is not lost, unless another thread is printing.
inline void flush_what_was_printed() {
  if (ftrylockfile(stdout) != 0) return;
  std::fflush(stdout);
  funlockfile(stdout);
}

/// `rank 1 of 4`
inline std::string rank_text(int rank, int ranks) {
  return "rank " + std::to_string(rank) + " of " + std::to_string(ranks);
}

/// `rank 1 of 4, rank 3 of 4`: the first eight by name, the others by their number.
template <class Name>
std::string list_of(const std::vector<int>& ranks, Name name) {
  constexpr std::size_t most = 8;
  std::string words;
  for (std::size_t i = 0; i < ranks.size() && i < most; ++i) words += (i > 0 ? ", " : "") + name(ranks[i]);
  return ranks.size() > most ? words + " and " + std::to_string(ranks.size() - most) + " others" : words;
}

namespace thrown {
struct Thrown {
  std::exception_ptr error;
  std::string by;
};
inline thread_local Thrown last;  // by a rank that was a thread of its own, and again in this one
}  // namespace thrown

/// Throws a rank's exception again in the thread that ran the ranks.
[[noreturn]] inline void throw_again(const std::exception_ptr& error, const std::string& by) {
  thrown::last = {error, by};
  std::rethrow_exception(error);
}
/// Whether a sentence says a rank's number: "rank 2"; not "of which a rank takes its part".
inline bool names_a_rank(std::string_view sentence) {
  constexpr std::string_view word = "rank ";
  for (std::size_t at = 0; (at = sentence.find(word, at)) != std::string_view::npos;)
    if (at += word.size(); at < sentence.size() && sentence[at] >= '0' && sentence[at] <= '9') return true;
  return false;
}
/// As ending_of, and which rank of a run of threads threw it, where the sentence names no rank.
inline Ending ending_of_run(const std::exception_ptr& error) {
  Ending ending = ending_of(error);
  if (error == thrown::last.error && !names_a_rank(ending.sentence)) ending.sentence += " (" + thrown::last.by + ")";
  return ending;
}

inline std::string text(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? std::to_string(time.count() / 1000) + " s" : std::to_string(time.count()) + " ms";
}

}  // namespace parallel::internals

namespace parallel {
using internals::Deadline;
using internals::ExchangeRefused;
using internals::Mismatch;
using internals::PeerFailed;
using internals::text;
}  // namespace parallel
