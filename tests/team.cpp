// Threads that compute one call together give the bits of one thread, whatever their number and the call's length.
#include <mutex>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/device/cpu/team.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

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

namespace own {

/// (parameter, velocity, gradient, factor, scalars) -> parameter, velocity. It has no table: it goes element by element.
inline constexpr Operation push{.name = "push", .updates = true};
/// v = momentum v + factor g; p -= learning_rate v.
struct Push {
  struct Hyperparameters {
    double learning_rate = 0.1, momentum = 0.5, clip_norm = 0;
  };
  static constexpr void update(Update& u) {
    u.replace(push, {u.parameter(), u.state("velocity")}, {u.gradient(), u.factor()}, {"learning_rate", "momentum"});
  }
};
std::mutex counting;
std::vector<std::int64_t> lengths;  // of the calls
void push_kernel(const Call& call) {
  {
    const std::lock_guard lock(counting);
    lengths.push_back(call.results[0].elements());
  }
  const double* const scalars = call.operands[4].as<const double>();
  const double rate = scalars[call.ints[0]], momentum = scalars[call.ints[1]];
  const double factor = *call.operands[3].as<const double>();
  float *const p = call.results[0].as<float>(), *const v = call.results[1].as<float>();
  const float* const g = call.operands[2].as<const float>();
  for (std::int64_t i = 0; i < call.results[0].elements(); ++i) {
    v[i] = static_cast<float>(momentum * v[i] + factor * g[i]);
    p[i] = static_cast<float>(p[i] - rate * v[i]);
  }
}
constexpr CpuKernels kernels[]{{&push, push_kernel, nullptr}};

struct Square {
  Parameter<float, Shape<128, 128>> w{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
/// Losses of some steps where so many threads update.
std::vector<double> losses(int threads) {
  const OwnedPlan plan = derive<AllStored<Training<Square, Push, Tensor<float, Shape<4, 128>>>, Stored<host>>>(Mesh{});
  std::vector<double> seen;
  run_threads(1, [&](Threads& world) {
    Parameters parameters(*plan, 0, 1);
    Trainer<Threads, Cpu> trainer(*plan, world, parameters, Push::Hyperparameters{}, 1, Cpu{kernels, threads});
    trainer.executor().input(0, program::numbers<float>(4 * 128, 1));
    for (int step = 0; step < 4; ++step) seen.push_back(trainer.step(0.1).loss);
  });
  return seen;
}

}  // namespace own

TEST_CASE("an optimizer of one's own is shared among the threads of the host, whose device is the host") {
  own::lengths.clear();
  const std::vector<double> alone = own::losses(1);
  CHECK(own::lengths == std::vector<std::int64_t>(4, 128 * 128));
  CHECK(alone.front() > alone.back());
  for (const int threads : {2, 4}) {
    own::lengths.clear();
    CHECK(own::losses(threads) == alone);
    CHECK(own::lengths == std::vector<std::int64_t>(static_cast<std::size_t>(4 * threads), 128 * 128 / threads));
  }
}
