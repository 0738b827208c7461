// Times of interleaved runs as medians with their spread, and the rows of the one table that tools/bench/run prints.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace bench {

using Clock = std::chrono::steady_clock;

/// How long f() takes, in seconds.
template <class F>
double seconds(F&& f) {
  const auto begin = Clock::now();
  f();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Seconds in which this thread could have run, and others did (Linux; else 0).
inline double waited_for_a_core() {
  double nanoseconds = 0;
  if (std::FILE* file = std::fopen("/proc/thread-self/schedstat", "r")) {
    if (std::fscanf(file, "%*f %lf", &nanoseconds) != 1) nanoseconds = 0;
    std::fclose(file);
  }
  return nanoseconds * 1e-9;
}

struct Spread {
  double median = 0, minimum = 0, maximum = 0;
};
inline Spread spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back()};
}
/// Of the quotients of runs that stood side by side.
inline Spread ratio(const std::vector<double>& over, const std::vector<double>& under) {
  std::vector<double> quotients;
  for (std::size_t i = 0; i < over.size(); ++i) quotients.push_back(over[i] / under[i]);
  return spread(std::move(quotients));
}
/// Of `constant` / value.
inline Spread per(double constant, const std::vector<double>& values) {
  return ratio(std::vector<double>(values.size(), constant), values);
}

/// Of `constant` * value.
inline Spread scaled(double constant, std::vector<double> values) {
  for (double& value : values) value *= constant;
  return spread(std::move(values));
}

/// Three digits, more where the number is larger.
inline std::string text(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.*f", value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3, value);
  return digits;
}

/// | benchmark | case | median | unit | min to max |
inline void row(const char* benchmark, const std::string& what, const Spread& s, const char* unit) {
  std::printf("| %-14s | %-66s | %8s | %-24s | %s to %s |\n", benchmark, what.c_str(), text(s.median).c_str(), unit,
              text(s.minimum).c_str(), text(s.maximum).c_str());
  std::fflush(stdout);
}
inline void row(const char* benchmark, const std::string& what, double value, const char* unit) {
  std::printf("| %-14s | %-66s | %8s | %-24s |  |\n", benchmark, what.c_str(), text(value).c_str(), unit);
  std::fflush(stdout);
}

}  // namespace bench
