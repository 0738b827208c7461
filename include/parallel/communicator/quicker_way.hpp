// How memory is written that another core reads: into this core's caches, or past them. Where the two share a cache the
// first is up to three times as quick, where they do not the second up to twice; and a virtual machine moves its cores
// about, so that neither is said once for all. What is tried the slower way, 4 pieces of 512, takes up to 2 %.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>

namespace parallel::internals {

/// Of both ways the one that has been quicker of late. Of `period` pieces, which end in their order, the first eight
/// try both, two each by turns, so that pieces of two kinds that alternate one by one count alike; kinds in pairs
/// would not. Ranks that number the same pieces try the same way at the same time, as what one writes others read; what
/// each makes of it is its own.
class QuickerWay {
 public:
  static constexpr std::uint64_t period = 512, tries = 8;

  /// `past_caches`: what is taken until both have been tried.
  explicit QuickerWay(bool past_caches = false) : past_caches_(past_caches) {}

  static constexpr bool tried(std::uint64_t piece) { return piece % period < tries; }
  bool past_caches(std::uint64_t piece) const { return tried(piece) ? piece % 4 >= 2 : past_caches_; }
  /// Of what is not numbered.
  bool past_caches() const { return past_caches_; }

  /// Does work on so many bytes of a piece, and takes its time where both ways are tried.
  template <class Work>
  void measure(std::uint64_t piece, std::int64_t bytes, Work work) {
    if (!tried(piece)) return work();
    const auto from = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - from;
    cost(piece, time.count() / static_cast<double>(bytes));
  }
  void cost(std::uint64_t piece, double seconds_per_byte) { costs_[piece % tries / 2] += seconds_per_byte; }
  /// Of each piece, when all its work is done.
  void finished(std::uint64_t piece) {
    if (piece % period != tries - 1) return;
    past_caches_ = std::min(costs_[1], costs_[3]) < std::min(costs_[0], costs_[2]);
    std::fill(costs_, costs_ + tries / 2, 0.0);
  }

 private:
  double costs_[tries / 2]{};
  bool past_caches_;
};

}  // namespace parallel::internals
