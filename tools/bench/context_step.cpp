// A training step of an attention layer whose sequence two ranks share: keys and values gathered, around a ring, all
// brought to the heads, by turns.
//
//   context_step [--rounds N]                  ranks are threads
//   mpirun -n 2 context_step --mpi [...]       ranks are processes
//
// One sequence of 8 heads of 64; causal queries see half of the keys, and of a ring's two ranks the second sees three
// quarters of that, but where positions stand in zigzag. That all give the same loss and gradient norm is checked.
#include <cmath>
#include <cstring>
#include <memory>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>
#if defined(WITH_MPI)
#include <parallel/communicator/mpi.hpp>
#endif

#include "measure.hpp"

namespace bench {

using namespace parallel;
using namespace parallel::axes;

inline constexpr int channels = 512, heads = 8, size = channels / heads;

template <Context how, bool causal>
struct Layer {
  Parameter<float, Shape<channels, 3, heads, size>> qkv{normal(0.04)};
  Parameter<float, Shape<heads, size, channels>> projection{normal(0.04)};
  constexpr auto operator()(Distributed auto x) const {
    const auto all = matmul(x, qkv);
    const auto y = attention<causal, how>(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all));
    return mean(square(x + matmul<2>(y, projection)));
  }
};
template <Context how, bool causal, int length, Order order = Order::contiguous>
using Step = Training<Layer<how, causal>, Sgd, Tensor<float, Shape<1, length / Ordered{&sequence, order}, channels>>>;

/// One way to find the keys of the other rank.
template <Communicator World>
struct Way {
  std::string name;
  OwnedPlan plan;
  std::unique_ptr<Parameters> parameters;
  std::unique_ptr<Trainer<World, Cpu>> trainer;
  std::vector<double> times{};
  StepResult last{};

  Way(const char* n, const OwnedPlan& p, World& world, const std::vector<float>& x)
      : name(n),
        plan(p),
        parameters(std::make_unique<Parameters>(plan, world.rank(), 1)),
        trainer(std::make_unique<Trainer<World, Cpu>>(plan, world, *parameters, Sgd::Hyperparameters{}, 1)) {
    trainer->executor().input(0, x);
  }
};

template <bool causal, int length, Communicator World>
void measure(World& world, const char* over, int rounds) {
  const Mesh mesh{sequence = world.size()};
  std::vector<float> x(std::size_t{length} * channels);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i % 10007)));
  std::vector<Way<World>> ways;
  ways.emplace_back("gathered", derive<Step<Context::gathered, causal, length>>(mesh), world, x);
  ways.emplace_back("ring", derive<Step<Context::ring, causal, length>>(mesh), world, x);
  if (causal) {
    ways.emplace_back("gathered, zigzag", derive<Step<Context::gathered, causal, length, Order::zigzag>>(mesh), world,
                      x);
    ways.emplace_back("ring, zigzag", derive<Step<Context::ring, causal, length, Order::zigzag>>(mesh), world, x);
  }
  ways.emplace_back("to the heads", derive<Step<Context::ulysses, causal, length>>(mesh), world, x);
  for (int i = -1; i < rounds; ++i)
    for (Way<World>& way : ways) {
      world.barrier();
      const double time = seconds([&] {
        way.last = way.trainer->step(0);
        world.barrier();
      });
      if (i >= 0) way.times.push_back(1e3 * time);
      if (std::abs(way.last.loss / ways[0].last.loss - 1) > 1e-4 ||
          std::abs(way.last.gradient_norm / ways[0].last.gradient_norm - 1) > 1e-3)
        throw Failure("context_step: " + way.name + " gives other numbers than gathered; one of them is wrong");
    }
  if (world.rank() != 0) return;
  const std::string what = std::to_string(length) + " positions, " + (causal ? "causal" : "whole") + ", " + over + ": ";
  for (const Way<World>& way : ways) {
    row("context", what + way.name, spread(way.times), "ms");
    if (&way != &ways[0])
      row("context", what + way.name + " / gathered", ratio(way.times, ways[0].times), "of the time");
    row("context", what + way.name + ", a rank", static_cast<double>(way.plan->peak_memory()) / (1 << 20),
        "MiB planned");
  }
}
template <Communicator World>
void measure_all(World& world, const char* over, int rounds) {
  measure<false, 1024>(world, over, rounds);
  measure<true, 1024>(world, over, rounds);
  measure<false, 4096>(world, over, rounds);
  measure<true, 4096>(world, over, rounds);
  measure<true, 16384>(world, over, rounds > 3 ? 3 : rounds);
}

}  // namespace bench

int main(int argc, char** argv) {
  int rounds = 7;
  bool mpi = false;
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--mpi") == 0)
      mpi = true;
    else if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
      rounds = std::atoi(argv[++i]);
    else
      return std::fprintf(stderr, "context_step: say context_step [--rounds N] [--mpi]\n"), 2;
  if (!mpi)
    return parallel::run_threads(2, [&](parallel::Threads& world) { bench::measure_all(world, "threads", rounds); }), 0;
#if defined(WITH_MPI)
  return parallel::run_mpi([&](parallel::Mpi& world) { bench::measure_all(world, "MPI", rounds); }, {.ranks = 2}), 0;
#else
  return std::fprintf(stderr, "context_step: this build has no MPI\n"), 69;
#endif
}
