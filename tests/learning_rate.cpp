// Schedules are PyTorch's, number by number (tools/fixtures/loop.py).
#include <cmath>

#include <doctest/doctest.h>

#include <parallel/run/learning_rate.hpp>
#include <parallel/run/progress.hpp>

#include "fixture.hpp"

using namespace parallel;

namespace {
template <class Schedule>
void check(const char* name, const Schedule& schedule) {
  INFO(name);
  const std::vector<double> expected = fixture().values<double>(std::string("schedule/") + name);
  REQUIRE(expected.size() == 60);
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(schedule.at(static_cast<int>(i)) == doctest::Approx(expected[i]).epsilon(1e-12));
}
}  // namespace

TEST_CASE("schedules are PyTorch's") {
  check("constant", ConstantSchedule{0.02});
  check("linear", LinearSchedule{.begin = 0.02, .end = 0.005, .steps = 40});
  check("step", StepSchedule{.value = 0.02, .factor = 0.5, .every = 7});
  check("cosine", CosineSchedule{.peak = 0.02, .floor = 0.002, .warmup = 0, .steps = 59});
  check("one_cycle", OneCycleSchedule{.peak = 0.02, .steps = 60});
  check("one_cycle_early",
        OneCycleSchedule{.peak = 0.02, .steps = 60, .rise = 0.1, .begins_below = 10, .ends_below = 100});
  check("warmed_up_cosine", WarmedUp{9, CosineSchedule{.peak = 0.02, .floor = 0.002, .warmup = 0, .steps = 51}, 0.1});
  check("warmed_up_step", WarmedUp{4, StepSchedule{.value = 0.02, .factor = 0.1, .every = 20}, 0.5});
}
TEST_CASE("behind their last step they stay") {
  CHECK(LinearSchedule{.begin = 1, .end = 0.5, .steps = 10}.at(1000) == 0.5);
  CHECK(CosineSchedule{.peak = 1, .floor = 0.25, .warmup = 2, .steps = 10}.at(1000) == 0.25);
  CHECK(OneCycleSchedule{.peak = 1, .steps = 10}.at(1000) == OneCycleSchedule{.peak = 1, .steps = 10}.at(9));
}
TEST_CASE("a warm-up of nanoGPT's: its first step is no zero") {
  const CosineSchedule schedule{.peak = 1, .floor = 0.1, .warmup = 4, .steps = 20};
  for (int i = 0; i < 4; ++i) CHECK(schedule.at(i) == doctest::Approx((i + 1) / 5.0));
  CHECK(schedule.at(4) == 1);
}
TEST_CASE("a step before the first and numbers that make no schedule are refused") {
  const auto said = [](const auto& schedule, int step) {
    try {
      static_cast<void>(schedule.at(step));
    } catch (const Misuse& m) {
      CHECK(m.exit_code == exit_code::internal);
      return std::string(m.what());
    }
    return std::string();
  };
  const std::string before = "a schedule is asked for step -3; steps are counted from 0";
  CHECK(said(ConstantSchedule{}, -3) == before);
  CHECK(said(LinearSchedule{}, -3) == before);
  CHECK(said(StepSchedule{}, -3) == before);
  CHECK(said(CosineSchedule{}, -3) == before);
  CHECK(said(OneCycleSchedule{}, -3) == before);
  CHECK(said(WarmedUp{5, ConstantSchedule{}}, -3) == before);
  const std::string none = "a schedule's .steps is 0; give a number from 1 on";
  CHECK(said(LinearSchedule{.steps = 0}, 3) == none);
  CHECK(said(CosineSchedule{.warmup = 0, .steps = 0}, 3) == none);
  CHECK(said(OneCycleSchedule{.steps = 0}, 3) == none);
  CHECK(said(StepSchedule{.every = 0}, 3) == "a schedule's .every is 0; give a number from 1 on");
  CHECK(said(StepSchedule{.every = -2}, 3) == "a schedule's .every is -2; give a number from 1 on");
  CHECK(said(CosineSchedule{.warmup = -1}, 3) == "a schedule's .warmup is -1; give a number from 0 on");
  CHECK(said(WarmedUp{-1, ConstantSchedule{}}, 3) == "a schedule's .steps is -1; give a number from 0 on");
  CHECK(said(OneCycleSchedule{.steps = 10, .rise = 1}, 9) ==
        "a cycle's .rise is from 0 on and below 1, its .begins_below and .ends_below are above 0, not 1, 25 and 10000");
  CHECK(said(CosineSchedule{.warmup = 100, .steps = 50}, 3) ==
        "a schedule's .warmup is 100 of 50 .steps, so that it never comes to its peak; give fewer, .warmup "
        "= 0 for none (100 unless said), of which .steps "
        "counts the warm-up, too");
  CHECK(CosineSchedule{.warmup = 50, .steps = 50}.at(50) == 1e-4);  // a warm-up alone
  CHECK(said(CosineSchedule{.peak = 1e-4, .floor = 1e-3}, 3) ==
        "a schedule's .floor, 0.001, is above its .peak, 1e-04; it goes down from the peak to the floor: give one "
        "below, as .floor = 0 (1e-4 unless said)");
  CHECK(CosineSchedule{.peak = 1e-3, .floor = 1e-3}.at(1000) == 1e-3);
  CHECK(said(ConstantSchedule{-1}, 0) == "a schedule's .value is -1; give a number from 0 on");
  CHECK(said(LinearSchedule{.begin = 1e-3, .end = -1e-3}, 0) == "a schedule's .end is -0.001; give a number from 0 on");
  CHECK(said(LinearSchedule{.begin = NAN}, 0) == "a schedule's .begin is nan; give a number from 0 on");
  CHECK(said(StepSchedule{.factor = -0.1}, 0) == "a schedule's .factor is -0.1; give a number from 0 on");
  CHECK(said(CosineSchedule{.floor = -1e-4}, 0) == "a schedule's .floor is -1e-04; give a number from 0 on");
  CHECK(said(OneCycleSchedule{.peak = INFINITY}, 0) == "a schedule's .peak is inf; give a number from 0 on");
  CHECK(said(WarmedUp{5, ConstantSchedule{}, 2}, 0) ==
        "a warm-up's .begin is 2; give the part of the rate with which it begins, from 0 to 1");
  CHECK(said(WarmedUp{5, CosineSchedule{}}, 0) ==
        "a schedule within a WarmedUp has a .warmup of its own, 100 steps, to whose first rate the other would go; "
        "give it .warmup = 0");
  CHECK(WarmedUp{0, ConstantSchedule{2}}.at(0) == 2);
  CHECK(LinearSchedule{.begin = 1, .end = 0.5, .steps = 1}.at(7) == 0.5);
}
TEST_CASE("a progress of no steps is refused") {
  CHECK_THROWS_WITH_AS(Progress(0, 8, false), "a progress is told of 0 steps; give a number from 1 on", Misuse);
  CHECK_THROWS_AS(Progress(-5, 8, true), Misuse);
}
TEST_CASE("a progress counts the steps of its own run") {
  Progress resumed(110, 8, false);
  for (int step = 100; step < 110; ++step) resumed.step(step, 1, 1);
  CHECK(resumed.steps_a_second(109, 2) == 5);
  Progress whole(110, 8, false);
  for (int step = 0; step < 110; ++step) whole.step(step, 1, 1);
  CHECK(whole.steps_a_second(109, 2) == 55);
}
