// The shipped schedules against what the literature prints of them: bubbles, zero-bubble's table, activations in
// flight; and their pictures.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/schedule/check.hpp>
#include <parallel/schedule/picture.hpp>
#include <parallel/schedule/waits.hpp>

#include "../tools/planner/schedule_svg.hpp"

using namespace parallel;
using namespace parallel::internals;

namespace {

constexpr bool near(double value, double expected) { return value - expected < 1e-9 && expected - value < 1e-9; }
constexpr double bubble_time(const Schedule& schedule, int stages, int micro_batches, const Durations& d) {
  const Timing t = timed(schedule, stages, micro_batches, d);
  return t.cost - t.ideal;
}

Schedule with_chunks(Schedule schedule, int chunks) {
  schedule.chunks = chunks;
  return schedule;
}

/// Megatron's order, but the first `more` forwards of the second group of micro-batches come right behind the first
/// group's first chunk, and every stage keeps as many activations more. They fill the time in which the first group's
/// results travel from the last stage to the first. It is not shipped: stages would have to receive messages before
/// they come to what needs them.
template <int more>
Tasks ahead_tasks(int stage, int stages, int micro_batches, int chunks) {
  const int group = stages * chunks, early = micro_batches > stages ? std::min(more, stages) : 0;
  Tasks forward, backward;
  for (const Task t : schedules::interleaved_tasks(stage, stages, micro_batches, chunks))
    (t.work == Work::forward ? forward : backward).push_back(t);
  std::rotate(forward.begin() + stages, forward.begin() + group, forward.begin() + group + early);
  return schedules::in_turn(
      micro_batches * chunks, 2 * (stages - stage - 1) + (chunks - 1) * stages + early,
      [&](int k) { return forward[k]; }, [&](int k) { return backward[k]; }, [](Tasks&, int) {});
}
template <int more>
constexpr Schedule ahead_by{"ahead", 1, false, false, ahead_tasks<more>, true};
/// By how much each goes further ahead than Megatron's.
const Schedule ahead[] = {schedules::interleaved<1>, ahead_by<1>, ahead_by<2>, ahead_by<3>};

/// All that is shipped, for so many stages and micro-batches.
std::vector<Schedule> served(int stages, int micro_batches) {
  std::vector<Schedule> result;
  for (const Schedule* s : schedules::with_one_chunk) result.push_back(*s);
  for (int chunks = 1; chunks <= 4 && micro_batches % stages == 0; ++chunks)
    result.push_back(*find_schedule("interleaved", chunks));
  return result;
}

/// Tables of Zero Bubble (Qi et al., arXiv:2401.10241): what it measured, in milliseconds, and the bubble rates that it
/// prints.
struct Row {
  int stages, micro_batches, chunks;
  Durations durations;
  double one_forward_one_backward, interleaved, h1, h2;
};
const Row table[] = {
    {8, 24, 3, {18.522, 18.086, 9.337, 0, 0.601}, .2431, .1055, .1585, .1083},
    {8, 32, 3, {18.513, 18.086, 9.331, 0, 0.626}, .1985, .0818, .1242, .0837},
    {8, 64, 3, {18.546, 18.097, 9.321, 0, 0.762}, .1240, .0443, .0674, .0444},
    {8, 24, 4, {29.718, 29.444, 19.927, 0, 0.527}, .2347, .0808, .1323, .0698},
    {8, 32, 4, {29.802, 29.428, 19.530, 0, 0.577}, .1898, .0628, .1045, .0559},
    {8, 64, 4, {29.935, 29.621, 19.388, 0, 0.535}, .1091, .0320, .0554, .0294},
    {16, 48, 3, {11.347, 11.248, 8.132, 0, 0.377}, .2552, .1104, .1397, .0672},
    {16, 64, 3, {11.307, 11.254, 8.101, 0, 0.379}, .2082, .0852, .1088, .0516},
    {16, 128, 3, {11.325, 11.308, 8.109, 0, 0.378}, .1251, .0445, .0576, .0266},
    {32, 96, 2, {10.419, 10.207, 7.715, 0, 0.408}, .2646, .1493, .1421, .0641},
    {32, 128, 2, {10.408, 10.204, 7.703, 0, 0.408}, .2168, .1164, .1106, .0490},
    {32, 256, 2, {10.402, 10.248, 7.698, 0, 0.460}, .1352, .0624, .0594, .0257},
};
double to_four_decimals(double rate) { return std::round(rate * 1e4) / 1e4; }
double bubble(const Schedule& schedule, const Row& row) {
  return to_four_decimals(timed(schedule, row.stages, row.micro_batches, row.durations).bubble());
}
/// How many tasks begin before what they need has been made.
int too_early(const Timing& timing) {
  int n = 0;
  for (int stage = 0; stage < timing.tasks.size(); ++stage)
    for (int i = 0; i < timing.spans[stage].size(); ++i)
      if (const StageTask from = timing.tasks.sender(timing.tasks.stages[stage][i], stage); from.stage >= 0)
        n += timing.spans[stage][i].begin < timing.spans[from.stage][timing.tasks.place(from.task, from.stage)].end ? 1
                                                                                                                    : 0;
  return n;
}

}  // namespace

// In the compiler: accepted at ordinary sizes, with the limits that compilers have by default.
static_assert(!check(schedules::naive, 4, 8));
static_assert(!check(schedules::gpipe, 8, 32));
static_assert(!check(schedules::one_forward_one_backward, 8, 78));  // 4,056 actions
static_assert(!check(schedules::interleaved<2>, 8, 32));
static_assert(!check(schedules::interleaved<4>, 4, 8));
static_assert(!check(schedules::zero_bubble_h1, 8, 32));
static_assert(!check(schedules::zero_bubble_h2, 8, 32));
static_assert(!check(schedules::pipedream, 8, 32));
static_assert(!check(schedules::interleaved<3>, 1, 5));
static_assert(check(schedules::interleaved<2>, 4, 6).reason == ScheduleReason::partial_group);
static_assert(near(timed(schedules::one_forward_one_backward, 4, 8).bubble_over_ideal(), 3.0 / 8));

static_assert(find_schedule("zero_bubble_h1")->weights_apart && find_schedule("pipedream")->asynchronous &&
              find_schedule("interleaved", 3)->chunks == 3);
static_assert(!find_schedule("interleaved", 0) && !find_schedule("gpipe", 2) && !find_schedule("") &&
              !find_schedule("gpip"));

TEST_CASE("every shipped schedule is accepted for every number of stages and micro-batches") {
  int accepted = 0;
  for (int p = 1; p <= 12; ++p)
    for (int m = 1; m <= 3 * p || m <= 10; ++m)
      for (const Schedule& s : served(p, m)) {
        const ScheduleRefusal refusal = check(s, p, m);
        CHECK_MESSAGE(!refusal, s.name << " " << p << " " << m << ": " << text(refusal));
        ++accepted;
      }
  CHECK(accepted > 1500);
  for (const Schedule& s : served(64, 128)) CHECK(!check(s, 64, 128));
}

TEST_CASE("the bubble over the ideal time is what the papers say") {
  const Durations d{3, 4, 2, 0, 0};
  for (int p = 1; p <= 8; ++p)
    for (int groups = 1; groups <= 4; ++groups) {
      const int m = p * groups;
      CHECK(timed(schedules::naive, p, m, d).bubble_over_ideal() == doctest::Approx(p - 1));
      CHECK(timed(schedules::gpipe, p, m, d).bubble_over_ideal() == doctest::Approx((p - 1.0) / m));
      CHECK(timed(schedules::one_forward_one_backward, p, m, d).bubble_over_ideal() == doctest::Approx((p - 1.0) / m));
      CHECK(timed(schedules::pipedream, p, m, d).bubble_over_ideal() == doctest::Approx((p - 1.0) / m));
      for (int v = 1; v <= 4; ++v)
        for (const Schedule& s : ahead)
          CHECK(timed(with_chunks(s, v), p, m, d).bubble_over_ideal() == doctest::Approx((p - 1.0) / (v * m)));
      if (m < 2 * p - 1) continue;  // H2 goes further ahead than there are micro-batches
      CHECK(bubble_time(schedules::zero_bubble_h1, p, m, d) == doctest::Approx((p - 1) * (3 + 4 - 2)));
      CHECK(bubble_time(schedules::zero_bubble_h2, p, m, d) == doctest::Approx((p - 1) * (3 + 4 - 2 * 2)));
    }
  CHECK(bubble_time(schedules::zero_bubble_h2, 8, 24, {1, 1, 1, 0, 0}) == doctest::Approx(0));
}

TEST_CASE("the table of Zero Bubble comes out to its four decimals") {
  for (const Row& row : table) {
    INFO(row.stages << " stages, " << row.micro_batches << " micro-batches");
    CHECK(bubble(schedules::one_forward_one_backward, row) == row.one_forward_one_backward);
    CHECK(bubble(schedules::zero_bubble_h1, row) == row.h1);
    CHECK(bubble(schedules::zero_bubble_h2, row) == row.h2);
  }
}

// It is printed of Megatron's order, which with every dependency costs (2vp - 2) transfers and not ((2v - 1)p - 2). The
// authors' evaluation (efficiency.py of their repository) lets a chunk wait for the chunk before it on the pipeline's
// other end only with the first micro-batch of each group of p. So Megatron's order has the figures that are printed,
// and some of its backwards begin before their gradients exist.
TEST_CASE("the table's interleaved column is Megatron's order with some dependencies left out") {
  const double with_all[] = {.1090, .0847, .0461, .0827, .0644, .0328, .1136, .0878, .0459, .1528, .1192, .0641};
  for (const Row& row : table) {
    INFO(row.stages << " stages, " << row.micro_batches << " micro-batches");
    const Schedule megatron = *find_schedule("interleaved", row.chunks);
    const auto transfer = [&](int stage, Task sent) {
      const bool wraps = stage == (sent.work == Work::forward ? row.stages - 1 : 0);
      // it has always been there
      return wraps && sent.micro_batch % row.stages != 0 ? -Span::never : row.durations.transfer;
    };
    const Timing as_printed = timed(
        megatron, row.stages, row.micro_batches, [&](int, Task t) { return row.durations.of(megatron, t.work); },
        transfer);
    CHECK(to_four_decimals(as_printed.bubble()) == row.interleaved);
    CHECK(too_early(as_printed) > 0);

    const Timing whole = timed(megatron, row.stages, row.micro_batches, row.durations);
    CHECK(to_four_decimals(whole.bubble()) == with_all[&row - table]);
    CHECK(too_early(whole) == 0);
  }
}

TEST_CASE(
    "with every dependency, orders that go one to three forwards further ahead have the interleaved column, and one less has not") {
  for (const Row& row : table) {
    INFO(row.stages << " stages, " << row.micro_batches << " micro-batches");
    // their time is no shorter than that of a transfer for each stage
    const int more = row.stages == 8 ? 1 : row.stages == 16 ? 2 : 3;
    CHECK(more == std::ceil(row.stages * row.durations.transfer / (row.durations.forward / row.chunks)));
    const Schedule enough = with_chunks(ahead[more], row.chunks), less = with_chunks(ahead[more - 1], row.chunks);
    CHECK(bubble(enough, row) == row.interleaved);
    CHECK(bubble(less, row) > row.interleaved);
    CHECK(!check(enough, row.stages, row.micro_batches));
    CHECK(check_waits(enough, row.stages, row.micro_batches));  // why it is not shipped
  }
}

TEST_CASE(
    "transfers lengthen 1F1B by a round trip for each group of micro-batches, interleaved by one way through all chunks and back") {
  for (const int p : {2, 3, 4, 8})
    for (const int m : {p, 2 * p, 5 * p}) {
      const Durations free{3, 4, 2, 0, 0}, costly{3, 4, 2, 0, 0.01};
      const double one = timed(schedules::one_forward_one_backward, p, m, costly).cost -
                         timed(schedules::one_forward_one_backward, p, m, free).cost;
      CHECK(one == doctest::Approx((2.0 * (p - 1) * m / p + 2 * (p - 2)) * 0.01));
      for (const int v : {2, 3, 4}) {
        const Schedule s = *find_schedule("interleaved", v);
        CHECK(timed(s, p, m, costly).cost - timed(s, p, m, free).cost == doctest::Approx((2 * v * p - 2) * 0.01));
        const Schedule further = with_chunks(ahead_by<1>, v);
        CHECK(timed(further, p, m, costly).cost - timed(further, p, m, free).cost ==
              doctest::Approx((2 * v * p - 2 - (m > p ? p : 0)) * 0.01));
      }
    }
}

TEST_CASE("stages keep as many activations as the papers say") {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 24; ++m) {
      const auto held = [&](const Schedule& s) { return most_in_flight(actions(s, p, m)); };
      for (int rank = 0; rank < p; ++rank) {
        CHECK(held(schedules::naive)[rank] == 1);
        CHECK(held(schedules::gpipe)[rank] == m);
        CHECK(held(schedules::one_forward_one_backward)[rank] == std::min(m, p - rank));
        CHECK(held(schedules::pipedream)[rank] == std::min(m, p - rank));
        CHECK(held(schedules::zero_bubble_h1)[rank] == std::min(m, p));
        CHECK(held(schedules::zero_bubble_h2)[rank] == std::min(m, 2 * p - 1));
      }
      if (m % p == 0)
        for (int v = 2; v <= 4; ++v) {
          for (int more = 1; more <= 3; ++more)
            for (int rank = 0; rank < p; ++rank) {
              const int megatron = held(with_chunks(ahead[0], v))[rank];
              CHECK(held(with_chunks(ahead[more], v))[rank] ==
                    (m == p ? megatron : std::min(m * v, megatron + std::min(more, p))));
            }
          const int first = held(*find_schedule("interleaved", v))[0], whole = 2 * (p - 1) + (v - 1) * p + 1;
          CHECK(first == std::min(m * v, whole));
          // Korthikanti's factor
          if (m >= 2 * p) CHECK(first / (1.0 * p * v) == doctest::Approx(1 + (p - 1.0) / (p * v)));
        }
    }
}

TEST_CASE("a limit of activations in flight is kept or refused") {
  CHECK(!check(schedules::one_forward_one_backward, 4, 8, 4));
  const ScheduleRefusal refusal = check(schedules::one_forward_one_backward, 4, 8, 3);
  CHECK(refusal.reason == ScheduleReason::too_many_in_flight);
  CHECK(refusal.rank == 0);
  CHECK(refusal.micro_batch == 3);
  CHECK_THROWS_WITH_AS(
      accept_or_throw(refusal),
      (std::string(sentence_of(refusal.reason)) + ": rank 0, step 6, micro_batch 3, chunk 0, limit 3").c_str(),
      std::invalid_argument);
  CHECK_NOTHROW(accept_or_throw(check(schedules::gpipe, 4, 8)));
}

TEST_CASE("stages of their own durations: the slowest one sets the pace") {
  const Timing t = timed(
      schedules::one_forward_one_backward, 3, 6,
      [](int stage, Task task) { return (stage == 1 ? 2.0 : 1.0) * (task.work == Work::forward ? 1 : 2); },
      [](int stage, Task) { return stage == 0 ? 0.5 : 0.25; });
  CHECK(t.ideal == 6 * 6);
  CHECK(t.spans[1][0].begin == 1.5);
  CHECK(t.spans[2][0].begin == 3.75);
  CHECK(t.cost > t.ideal);
}

TEST_CASE("pictures") {
  CHECK(picture(timed(schedules::one_forward_one_backward, 2, 2)) ==
        "rank 0  F0 F1 .. .. B0    .. B1\n"
        "rank 1  .. F0 B0    F1 B1    .. ..\n");
  CHECK(picture(timed(schedules::zero_bubble_h1, 2, 2)) ==
        "rank 0  F0 F1 .. B0 W0 B1 W1\n"
        "rank 1  .. F0 B0 F1 B1 W0 W1\n");
  CHECK(picture(timed(schedules::interleaved<2>, 1, 1, {2, 1, 1, 0, 0}), 1) == "rank 0  F0a F0b B0b B0a\n");
  const std::string eight = picture(timed(schedules::one_forward_one_backward, 4, 8));
  CHECK(eight.find('\n') < 120);
  CHECK(text(actions(schedules::gpipe, 2, 1)) ==
        "rank 0  0:F0 1:F0>1 2:B0<1 3:B0 4:-0\nrank 1  0:F0<0 1:F0 2:B0 3:-0 4:B0>0\n");

  const std::string drawn = planner::svg(timed(schedules::zero_bubble_h1, 2, 2));
  const auto count = [&](const std::string& word) {
    int n = 0;
    for (std::size_t at = 0; (at = drawn.find(word, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  CHECK(count("class=\"forward\"") == 4);
  CHECK(count("class=\"backward\"") == 4);
  CHECK(count("class=\"weight\"") == 4);
  CHECK(count("prefers-color-scheme:dark") == 1);
  CHECK(drawn.find("zero_bubble_h1, 2 ranks, 2 micro-batches") != std::string::npos);
}
