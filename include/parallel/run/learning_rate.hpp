// Schedules of the learning rate, or of any number from 0 on: at(step) for steps from 0. A loop calls them itself, so a
// callable of one's own does as well. They throw Misuse for a step before the first, and at any step for numbers that
// make no schedule: no length, a warm-up that is longer than it, a floor above the peak, a value below 0.
#pragma once
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <type_traits>

#include <parallel/run/misuse.hpp>

namespace parallel::internals {

namespace learning_rates {
/// Throws Misuse for a step before the first.
inline void check_step(int step) {
  if (step < 0) throw Misuse("a schedule is asked for step " + std::to_string(step) + "; steps are counted from 0");
}
/// And for what lasts no step, by its name.
inline void check(int step, const char* name, int steps, int least = 1) {
  check_step(step);
  if (steps < least)
    throw Misuse("a schedule's ." + std::string(name) + " is " + std::to_string(steps) + "; give a number from " +
                 std::to_string(least) + " on");
}
/// And for a value that is below 0, infinite or no number.
inline void check_value(const char* name, double value) {
  if (!(value >= 0 && std::isfinite(value)))
    throw Misuse("a schedule's ." + std::string(name) + " is " + shortest(value) + "; give a number from 0 on");
}
}  // namespace learning_rates

/// at(i) = value.
struct ConstantSchedule {
  double value = 1e-3;
  double at(int step) const {
    learning_rates::check_step(step);
    learning_rates::check_value("value", value);
    return value;
  }
};
/// at(i) = begin + (end - begin) min(i, steps) / steps, with steps from 1 on; PyTorch's LinearLR.
struct LinearSchedule {
  double begin = 1e-3, end = 0;
  int steps = 2000;
  double at(int step) const {
    learning_rates::check(step, "steps", steps);
    learning_rates::check_value("begin", begin);
    learning_rates::check_value("end", end);
    return begin + (end - begin) * std::min(step, steps) / steps;
  }
};
/// at(i) = value factor^floor(i / every), with every from 1 on; PyTorch's StepLR.
struct StepSchedule {
  double value = 1e-3, factor = 0.1;
  int every = 1000;
  double at(int step) const {
    learning_rates::check(step, "every", every);
    learning_rates::check_value("value", value);
    learning_rates::check_value("factor", factor);
    return value * std::pow(factor, step / every);
  }
};
/// Linear warm-up, then half a cosine from `peak` down to `floor` (Loshchilov and Hutter, 2017; nanoGPT's counting):
/// for i < warmup at(i) = peak (i + 1) / (warmup + 1), then floor + (peak - floor) (1 + cos(pi (i - warmup) / (steps -
/// warmup))) / 2, from `steps` on floor. Without warm-up it is PyTorch's CosineAnnealingLR.
struct CosineSchedule {
  double peak = 1e-3, floor = 1e-4;
  int warmup = 100, steps = 2000;
  double at(int step) const {
    learning_rates::check(step, "steps", steps);
    learning_rates::check(step, "warmup", warmup, 0);
    learning_rates::check_value("peak", peak);
    learning_rates::check_value("floor", floor);
    if (warmup > steps)
      throw Misuse(
          "a schedule's .warmup is " + std::to_string(warmup) + " of " + std::to_string(steps) +
          " .steps, so that it never comes to its peak; give fewer, .warmup = 0 for none (100 unless said), of "
          "which .steps counts the warm-up, too");
    if (floor > peak)
      throw Misuse("a schedule's .floor, " + shortest(floor) + ", is above its .peak, " + shortest(peak) +
                   "; it goes down from the peak to the floor: give one below, as .floor = 0 (1e-4 unless said)");
    if (step < warmup) return peak * (step + 1) / (warmup + 1);
    if (step >= steps) return floor;
    const double progress = static_cast<double>(step - warmup) / (steps - warmup);
    return floor + (peak - floor) * (1 + std::cos(std::numbers::pi * progress)) / 2;
  }
};
/// One cycle (Smith and Topin, 2018): half a cosine from peak / begins_below up to `peak`, which it reaches at rise
/// steps - 1, and another down to peak / begins_below / ends_below, at steps - 1, where it stays; PyTorch's OneCycleLR
/// of two phases.
struct OneCycleSchedule {
  double peak = 1e-3;
  int steps = 2000;
  double rise = 0.3, begins_below = 25, ends_below = 1e4;
  double at(int step) const {
    learning_rates::check(step, "steps", steps);
    learning_rates::check_value("peak", peak);
    if (!(rise >= 0 && rise < 1) || !(begins_below > 0) || !(ends_below > 0))
      throw Misuse("a cycle's .rise is from 0 on and below 1, its .begins_below and .ends_below are above 0, not " +
                   shortest(rise) + ", " + shortest(begins_below) + " and " + shortest(ends_below));
    const double top = rise * steps - 1, last = steps - 1, begin = peak / begins_below, end = begin / ends_below;
    const auto half_a_cosine = [](double from, double to, double progress) {
      return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * progress));
    };
    if (step < top) return half_a_cosine(begin, peak, step / top);
    return half_a_cosine(peak, end, (std::min<double>(step, last) - top) / (last - top));
  }
};
template <class... Given>
struct NoSchedule;
/// Linear warm-up before any other: for i < steps at(i) = then.at(0) (begin + (1 - begin) i / steps), then
/// then.at(i - steps); PyTorch's SequentialLR of LinearLR and another.
template <class Schedule>
struct WarmedUp {
  int steps = 100;
  Schedule then{};
  double begin = 0;  ///< of then.at(0)
  double at(int step) const {
    learning_rates::check(step, "steps", steps, 0);
    if (!(begin >= 0 && begin <= 1))
      throw Misuse("a warm-up's .begin is " + shortest(begin) +
                   "; give the part of the rate with which it begins, from 0 to 1");
    if constexpr (requires { then.warmup; })
      if (then.warmup > 0)
        throw Misuse("a schedule within a WarmedUp has a .warmup of its own, " + std::to_string(then.warmup) +
                     " steps, to whose first rate the other would go; give it .warmup = 0");
    return step < steps ? then.at(0) * (begin + (1 - begin) * step / steps) : then.at(step - steps);
  }
};
template <class Schedule>
WarmedUp(int, Schedule) -> WarmedUp<Schedule>;
template <class Schedule>
WarmedUp(int, Schedule, double) -> WarmedUp<Schedule>;
/// What is made of anything else.
template <class... Given>
struct WarmedUp<NoSchedule<Given...>> {
  static_assert(
      sizeof...(Given) > 99,
      "parallel: WarmedUp takes its steps, then the schedule behind them; write WarmedUp{20, CosineSchedule{.peak "
      "= 1e-3, .warmup = 0, .steps = 2000}}");
  constexpr explicit WarmedUp(const Given&...) {}
  double at(int) const { return 0; }
};
WarmedUp(int)->WarmedUp<NoSchedule<int>>;
template <class First, class... More>
requires(!std::is_convertible_v<First, int>) WarmedUp(First, More...)
->WarmedUp<NoSchedule<First, More...>>;

}  // namespace parallel::internals

namespace parallel {
using internals::ConstantSchedule;
using internals::CosineSchedule;
using internals::LinearSchedule;
using internals::OneCycleSchedule;
using internals::StepSchedule;
using internals::WarmedUp;
}  // namespace parallel
