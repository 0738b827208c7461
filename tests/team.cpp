// Threads that compute one call together give the bits of one thread, whatever their number and the call's length.
#include <doctest/doctest.h>

#include <parallel/device/cpu.hpp>
#include <parallel/device/cpu/team.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;

namespace {

struct Sides {
  std::vector<float> parameter, mean, variance;
  bool operator==(const Sides&) const = default;
};
/// Three steps of AdamW on n elements, by so many threads; none: without a team.
Sides stepped(std::int64_t n, int threads) {
  const auto numbers = [n](std::uint64_t stream) { return program::numbers<float>(n, stream); };
  Sides s{numbers(1), std::vector<float>(static_cast<std::size_t>(n)), std::vector<float>(static_cast<std::size_t>(n))};
  std::vector<float> gradient = numbers(2);
  std::vector<double> scalars{1e-2, 0.9, 0.99, 1e-8, 0.1, 1};
  double factor = 0.5;
  const auto view = [](auto* data, std::int64_t size) {
    View v;
    v.data = data;
    v.dtype = dtype_of<std::remove_pointer_t<decltype(data)>>;
    v.rank = size > 0 ? 1 : 0;
    v.size[0] = v.whole[0] = size;
    return v;
  };
  Call call;
  call.operation = &operation::adamw;
  for (float* data : {s.parameter.data(), s.mean.data(), s.variance.data()}) {
    call.operands.push_back(view(data, n));
    call.results.push_back(view(data, n));
  }
  call.operands.push_back(view(gradient.data(), n));
  call.operands.push_back(view(&factor, 0));
  call.operands.push_back(view(scalars.data(), 6));
  call.ints = {0, 1, 2, 3, 4, 5, 1};
  call.kernel = Cpu{}.kernel(*call.operation, call);
  REQUIRE(bool(call.kernel));
  const Launch launch{{&call, 1}};
  if (threads == 0) {
    for (int step = 0; step < 3; ++step) launch.run();
  } else {
    cpu::Team team(threads);
    for (int step = 0; step < 3; ++step) cpu::compute(team, launch);
  }
  return s;
}

}  // namespace

TEST_CASE("an update by several threads") {
  for (const std::int64_t n : {1, 63, 4096, 8192, 8193, 20'001, 100'000}) {
    const Sides alone = stepped(n, 0);
    for (int threads = 1; threads <= 5; ++threads) {
      CAPTURE(n);
      CAPTURE(threads);
      CHECK(stepped(n, threads) == alone);
    }
  }
}
TEST_CASE("each part is asked for once, and all threads come back") {
  for (int threads = 1; threads <= 4; ++threads) {
    cpu::Team team(threads);
    for (int round = 0; round < 1000; ++round) {
      std::vector<int> parts(static_cast<std::size_t>(threads), 0);
      team.each([&](int i) { ++parts[static_cast<std::size_t>(i)]; });
      for (const int times : parts) REQUIRE(times == 1);
    }
  }
}
