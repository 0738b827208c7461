// What the executor itself costs per planned operation: plans of operations whose kernel does nothing.
//
//   overhead [--rounds N]
//
// Beside it the bare loop that calls as many kernels through pointers: what is above it is the executor's own.
#include <cstring>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu/device.hpp>
#include <parallel/operation/cumulative.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/executor.hpp>
#include <parallel/run/parameters.hpp>

#include "measure.hpp"

namespace bench {

using namespace parallel;
using namespace parallel::internals;

inline long calls = 0;
inline void nothing(const Call& call) { calls += call.layer + 1; }

/// The CPU, but that nothing is computed.
struct Idle : Cpu {
  Kernel kernel(const Operation&, const Call&) const { return nothing; }
  FusedKernel fused(std::span<Call>) const { return {}; }
};

inline constexpr int length = 64, layers = 64;

/// A chain of tiny operations, which are not fused.
template <int n, class X>
constexpr auto chain(const X& x) {
  if constexpr (n == 0)
    return x;
  else
    return chain<n - 1>(cumulative_sum<0>(x));
}

struct Straight {
  constexpr auto operator()(Distributed auto x) const { return chain<length>(x); }
};
struct Link {
  Parameter<float, Shape<4>> weight{ones};
  constexpr auto operator()(Distributed auto x) const { return chain<length - 1>(x * weight); }
};
struct Looped {
  Layers<layers, Link> links;
  constexpr auto operator()(Distributed auto x) const { return links(x); }
};

template <class Model>
void measure(const char* name, int rounds) {
  const OwnedPlan plan = derive<Evaluation<Model, Tensor<float, Shape<4>>>>(Mesh{});
  long operations = 0;
  for (const Event& e : plan->events)
    if (e.kind == EventKind::compute) operations += plan->graph.times(plan->graph.node(e.node));
  std::vector<double> times, bare;
  run_threads(1, [&](Threads& world) {
    Parameters parameters(plan, 0, 1);
    Executor<Threads, Idle> executor(plan, world, parameters);
    executor.input(0);  // zeros
    std::vector<Call> all(static_cast<std::size_t>(length));
    std::vector<Kernel> kernels(all.size(), nothing);
    const long repeats = 200000 / operations + 1;
    const double each = 1e9 / static_cast<double>(repeats * operations);
    for (int round = -1; round < rounds; ++round) {
      calls = 0;
      const double own = seconds([&] {
        for (long i = 0; i < repeats; ++i) executor.run();
      });
      if (calls < operations * repeats) throw Failure("overhead: the plan has run fewer operations than it has");
      const double loop = seconds([&] {
        for (long i = 0; i < repeats * operations; ++i)
          kernels[static_cast<std::size_t>(i % length)](all[static_cast<std::size_t>(i % length)]);
      });
      if (round >= 0) {
        times.push_back(own * each);
        bare.push_back(loop * each);
      }
    }
  });
  row("overhead", std::string(name) + " of " + std::to_string(operations) + " operations", spread(times),
      "ns per operation");
  row("overhead", std::string(name) + ": a bare loop over pointers to kernels", spread(bare), "ns per operation");
}

}  // namespace bench

int main(int argc, char** argv) {
  int rounds = 9;
  if (argc == 3 && std::strcmp(argv[1], "--rounds") == 0)
    rounds = std::atoi(argv[2]);
  else if (argc != 1)
    return std::fprintf(stderr, "overhead: unknown argument '%s'; say overhead [--rounds N]\n", argv[1]), 2;
  bench::measure<bench::Straight>("a chain", rounds);
  bench::measure<bench::Looped>("layers", rounds);
}
