// What a training says of itself while it runs, and its loss as a curve of characters.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <vector>

namespace parallel {

/// Progress goes to the standard error: one line that renews itself on a terminal, a line now and then elsewhere.
class Progress {
 public:
  /// `tokens`: of one step, over all ranks. Ranks that do not `speak` keep silent.
  Progress(int steps, int tokens, bool speaks)
      : steps_(steps), tokens_(tokens), speaks_(speaks), terminal_(isatty(2) != 0) {
    losses_.reserve(static_cast<std::size_t>(steps));
  }
  /// Step `step`, counted from 0, is done.
  void step(int step, double loss, double gradient_norm) {
    losses_.push_back(loss);
    if (!speaks_) return;
    const auto now = Clock::now();
    const bool last = step + 1 == steps_;
    if (!last && now - shown_ < (terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(5)) && step != 0)
      return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - begun_).count();
    const double rate = (step + 1) / std::max(seconds, 1e-9);
    const int left = static_cast<int>((steps_ - step - 1) / rate + 0.5);
    std::fprintf(stderr, "%sstep %d/%d  loss %.4f  gradient norm %.3f  %.0f tokens/s  %d:%02d left%s",
                 terminal_ ? "\r\033[K" : "", step + 1, steps_, loss, gradient_norm, rate * tokens_, left / 60,
                 left % 60, terminal_ ? "" : "\n");
    std::fflush(stderr);
  }
  void finish() const {
    if (speaks_ && terminal_) std::fprintf(stderr, "\n");
  }
  /// The losses, averaged over the columns, as a picture of `height` lines.
  std::string curve(int width = 72, int height = 12) const {
    if (losses_.empty()) return "";
    const int count = static_cast<int>(losses_.size());
    width = std::min(width, count);
    std::vector<double> columns(static_cast<std::size_t>(width));
    for (int c = 0; c < width; ++c) {
      const auto first = losses_.begin() + static_cast<std::ptrdiff_t>(c) * count / width,
                 last = losses_.begin() + (static_cast<std::ptrdiff_t>(c) + 1) * count / width;
      double sum = 0;
      for (auto l = first; l != last; ++l) sum += *l;
      columns[static_cast<std::size_t>(c)] = sum / static_cast<double>(last - first);
    }
    const double low = *std::min_element(columns.begin(), columns.end()),
                 high = *std::max_element(columns.begin(), columns.end());
    std::string picture = "training loss\n";
    for (int line = height - 1; line >= 0; --line) {
      char label[16];
      std::snprintf(label, sizeof label, "%7.3f |", low + (high - low) * line / (height - 1));
      picture += label;
      for (const double value : columns) {
        const int at = high > low ? static_cast<int>((value - low) / (high - low) * (height - 1) + 0.5) : 0;
        picture += at == line ? '*' : ' ';
      }
      picture.erase(picture.find_last_not_of(' ') + 1);
      picture += '\n';
    }
    return picture + "        +" + std::string(static_cast<std::size_t>(width), '-') + " step " +
           std::to_string(count) + "\n";
  }

 private:
  using Clock = std::chrono::steady_clock;
  int steps_, tokens_;
  bool speaks_, terminal_;
  Clock::time_point begun_ = Clock::now(), shown_ = begun_;
  std::vector<double> losses_{};
};

}  // namespace parallel
