// What a training says of itself while it runs, and its loss as a curve of characters.
#pragma once
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace parallel::internals {

/// Progress goes to the standard error: one line that renews itself on a terminal, a line now and then elsewhere.
class Progress {
 public:
  /// `tokens`: of one step, over all ranks. Ranks that do not `speak` keep silent. Throws Misuse for no steps.
  Progress(int steps, int tokens, bool speaks);
  /// Step `step`, counted from 0, is done.
  void step(int step, double loss, double gradient_norm);
  /// Steps of this run over its seconds, behind step `step`: a run that was resumed did not compute those before.
  double steps_a_second(int step, double seconds) const {
    return (step + 1 - first_) / (seconds > 1e-9 ? seconds : 1e-9);
  }
  void finish() const {
    if (speaks_ && terminal_) std::fprintf(stderr, "\n");
  }
  /// The losses, averaged over the columns, as a picture of `height` lines.
  std::string curve(int width = 72, int height = 12) const;

 private:
  using Clock = std::chrono::steady_clock;
  int steps_, tokens_, first_ = 0;
  bool speaks_, terminal_;
  Clock::time_point begun_ = Clock::now(), shown_ = begun_;
  std::vector<double> losses_{};
};

}  // namespace parallel::internals

namespace parallel {
using internals::Progress;
}  // namespace parallel

#ifndef PARALLEL_LIBRARY
#include <parallel/run/progress.ipp>
#endif
