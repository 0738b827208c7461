// What a training says of itself, compiled ahead.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unistd.h>

#include <parallel/meta/library.hpp>
#include <parallel/run/misuse.hpp>
#include <parallel/run/progress.hpp>

namespace parallel::internals {

PARALLEL_INLINE Progress::Progress(int steps, int tokens, bool speaks)
    : steps_(steps), tokens_(tokens), speaks_(speaks), terminal_(isatty(2) != 0) {
  if (steps < 1) throw Misuse("a progress is told of " + std::to_string(steps) + " steps; give a number from 1 on");
  losses_.reserve(static_cast<std::size_t>(steps));
}

PARALLEL_INLINE void Progress::step(int step, double loss, double gradient_norm) {
  if (losses_.empty()) first_ = step;
  losses_.push_back(loss);
  if (!speaks_) return;
  const auto now = Clock::now();
  const bool last = step + 1 == steps_;
  if (!last && now - shown_ < (terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(5)) && step != first_)
    return;
  shown_ = now;
  const double rate = steps_a_second(step, std::chrono::duration<double>(now - begun_).count());
  const int left = static_cast<int>(std::lround((steps_ - step - 1) / rate));
  std::fprintf(stderr, "%sstep %d/%d  loss %.4f  gradient norm %.3f  %.0f tokens/s  %d:%02d left%s",
               terminal_ ? "\r\033[K" : "", step + 1, steps_, loss, gradient_norm, rate * tokens_, left / 60, left % 60,
               terminal_ ? "" : "\n");
  std::fflush(stderr);
}

PARALLEL_INLINE std::string Progress::curve(int width, int height) const {
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
    char label[32];
    std::snprintf(label, sizeof label, "%7.3f |", low + (high - low) * line / (height - 1));
    picture += label;
    for (const double value : columns) {
      const int at = high > low ? static_cast<int>(std::lround((value - low) / (high - low) * (height - 1))) : 0;
      picture += at == line ? '*' : ' ';
    }
    picture.erase(picture.find_last_not_of(' ') + 1);
    picture += '\n';
  }
  return picture + "        +" + std::string(static_cast<std::size_t>(width), '-') + " step " + std::to_string(count) +
         "\n";
}

}  // namespace parallel::internals
