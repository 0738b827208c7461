// How a way of writing is chosen by what both have cost.
#include <cstdint>

#include <doctest/doctest.h>

#include <parallel/communicator/quicker_way.hpp>

using parallel::internals::QuickerWay;

namespace {

/// A period of pieces, of which one written each way costs so much. Returns which way those go that are not tried.
template <class Cost>
bool after_a_period(QuickerWay& way, std::uint64_t period, Cost cost) {
  for (std::uint64_t i = 0; i < QuickerWay::tries; ++i) {
    const std::uint64_t piece = period * QuickerWay::period + i;
    way.cost(piece, cost(i, way.second(piece)));
    way.finished(piece);
  }
  return way.second(period * QuickerWay::period + QuickerWay::tries);
}

}  // namespace

TEST_CASE("both ways are tried as often, whatever was chosen") {
  QuickerWay way;
  for (const bool second : {true, false}) {
    CHECK(after_a_period(way, 0, [&](std::uint64_t, bool now) { return now == second ? 1.0 : 2.0; }) == second);
    int tried = 0, seconds = 0;
    for (std::uint64_t piece = 0; piece < 10 * QuickerWay::period; ++piece) {
      if (QuickerWay::tried(piece)) ++tried, seconds += way.second(piece);
      if (!QuickerWay::tried(piece)) CHECK(way.second(piece) == second);
    }
    CHECK(tried == 80);
    CHECK(seconds == 40);
    CHECK(way.second() == second);
  }
}

TEST_CASE("the choice follows what costs change to, within a period") {
  QuickerWay way;
  for (std::uint64_t period = 0; period < 20; ++period) {
    const bool second = period / 3 % 2 == 1;
    CHECK(after_a_period(way, period, [&](std::uint64_t, bool now) { return now == second ? 0.9 : 1.0; }) == second);
  }
}

TEST_CASE("one disturbed piece of each way decides nothing") {
  for (std::uint64_t disturbed = 0; disturbed < QuickerWay::tries; ++disturbed)
    for (const bool second : {false, true}) {
      QuickerWay way;
      const auto cost = [&](std::uint64_t i, bool now) {
        return (now == second ? 1.0 : 1.5) + (i == disturbed || i == (disturbed + 2) % 8 ? 9.0 : 0.0);
      };
      CHECK(after_a_period(way, 0, cost) == second);
    }
}

TEST_CASE("pieces of two kinds that alternate count alike") {
  for (const bool second : {false, true})
    for (const std::uint64_t dear : {0, 1}) {
      QuickerWay way;
      const auto cost = [&](std::uint64_t i, bool now) {
        return (i % 2 == dear ? 5.0 : 1.0) + (now == second ? 0.0 : 0.5);
      };
      CHECK(after_a_period(way, 0, cost) == second);
    }
}

TEST_CASE("pieces that end in another order than they began decide when all have") {
  QuickerWay way;
  for (const std::uint64_t piece : {7, 3, 0, 5, 1, 6, 2}) {
    way.cost(piece, way.second(piece) ? 1.0 : 2.0);
    way.finished(piece);
    CHECK(!way.second());
  }
  way.cost(4, 2.0);
  way.finished(4);
  CHECK(way.second());
}

TEST_CASE("work is done once, whether its time is taken or not") {
  QuickerWay way;
  std::uint64_t done = 0;
  for (std::uint64_t piece = 0; piece < 2 * QuickerWay::period; ++piece) {
    way.measure(piece, 1, [&] { ++done; });
    way.finished(piece);
  }
  CHECK(done == 2 * QuickerWay::period);
}
