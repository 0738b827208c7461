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
    way.cost(piece, cost(i, way.past_caches(piece)));
    way.finished(piece);
  }
  return way.past_caches(period * QuickerWay::period + QuickerWay::tries);
}

}  // namespace

TEST_CASE("both ways are tried as often, whatever was chosen") {
  QuickerWay way;
  for (const bool past : {true, false}) {
    CHECK(after_a_period(way, 0, [&](std::uint64_t, bool now) { return now == past ? 1.0 : 2.0; }) == past);
    int tried = 0, past_caches = 0;
    for (std::uint64_t piece = 0; piece < 10 * QuickerWay::period; ++piece) {
      if (QuickerWay::tried(piece)) ++tried, past_caches += way.past_caches(piece);
      if (!QuickerWay::tried(piece)) CHECK(way.past_caches(piece) == past);
    }
    CHECK(tried == 80);
    CHECK(past_caches == 40);
    CHECK(way.past_caches() == past);
  }
}

TEST_CASE("the choice follows what costs change to, within a period") {
  QuickerWay way;
  for (std::uint64_t period = 0; period < 20; ++period) {
    const bool past = period / 3 % 2 == 1;
    CHECK(after_a_period(way, period, [&](std::uint64_t, bool now) { return now == past ? 0.9 : 1.0; }) == past);
  }
}

TEST_CASE("one disturbed piece of each way decides nothing") {
  for (std::uint64_t most = 0; most < QuickerWay::tries; ++most)
    for (std::uint64_t other = 0; other < QuickerWay::tries; ++other)
      for (const bool past : {false, true}) {
        QuickerWay way;
        if (way.past_caches(most) == way.past_caches(other)) continue;
        const auto cost = [&](std::uint64_t i, bool now) {
          return (now == past ? 1.0 : 1.5) + (i == most ? 9.0 : i == other ? 4.0 : 0.0);
        };
        CHECK(after_a_period(way, 0, cost) == past);
      }
}

TEST_CASE("pieces of two kinds that alternate count alike") {
  for (const bool past : {false, true})
    for (const std::uint64_t dear : {0, 1}) {
      QuickerWay way;
      const auto cost = [&](std::uint64_t i, bool now) {
        return (i % 2 == dear ? 5.0 : 1.0) + (now == past ? 0.0 : 0.5);
      };
      CHECK(after_a_period(way, 0, cost) == past);
    }
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
