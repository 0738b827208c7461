// A training step of an attention layer whose sequence two ranks share, on request: tools/bench/context asks, by turns
// with other peers.
//
//   context_step WAY --length N [--causal]                  ranks are threads
//   mpirun -n 2 context_step WAY --length N [...] --mpi     ranks are processes
//
// WAY is how queries meet the other rank's keys: gathered, ring, heads (all are brought to the heads, Ulysses);
// gathered and ring with `-zigzag`, too, where positions stand so that both ranks see as many keys.
#include <cstring>
#include <string>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/run/trainer.hpp>

#include "context_model.hpp"
#include "serve.hpp"

namespace bench {
using namespace attending;

template <Communicator World>
class Derived {
 public:
  Derived(World& world, const Plan& plan)
      : parameters_(plan, world.rank(), 1), trainer_(plan, world, parameters_, Sgd::Hyperparameters{}, 1) {
    give_numbers(trainer_);
  }
  StepResult step() { return trainer_.step(0); }
  static std::vector<Checked> checked(const StepResult& result) {
    return {{"loss", result.loss}, {"norm", result.gradient_norm}};
  }

 private:
  Parameters parameters_;
  Trainer<World, Cpu> trainer_;
};

struct Options {
  std::string way{};
  int length = 0;
  bool causal = false, mpi = false;
};

template <class Program>
void served(const Options& options) {
  const auto run = [&](auto& world, auto requests) {
    const OwnedPlan plan = derive<Program>(Mesh{sequence = 2});
    Derived<std::remove_cvref_t<decltype(world)>> peer(world, plan);
    serve(peer, requests, world.rank() == 0);
  };
  if (!options.mpi) {
    std::atomic<int> steps;
    return run_threads(2, [&](Threads& world) { run(world, ThreadRequests(world, steps)); });
  }
#if defined(WITH_MPI)
  run_mpi([&](Mpi& world) { run(world, MpiRequests()); }, {.ranks = 2});
#endif
}
template <bool causal, int length>
bool of_length(const Options& options) {
  const auto is = [&](const char* way) { return options.way == way; };
  if (is("gathered")) return served<Step<Context::gathered, causal, length, Order::contiguous>>(options), true;
  if (is("ring")) return served<Step<Context::ring, causal, length, Order::contiguous>>(options), true;
  if (is("heads")) return served<Step<Context::ulysses, causal, length, Order::contiguous>>(options), true;
  if (is("gathered-zigzag")) return served<Step<Context::gathered, causal, length, Order::zigzag>>(options), true;
  if (is("ring-zigzag")) return served<Step<Context::ring, causal, length, Order::zigzag>>(options), true;
  return false;
}
template <bool causal>
bool of_attention(const Options& options) {
  switch (options.length) {
    case 1024: return of_length<causal, 1024>(options);
    case 4096: return of_length<causal, 4096>(options);
    case 16384: return of_length<causal, 16384>(options);
    default: return false;
  }
}

}  // namespace bench

int main(int argc, char** argv) {
  bench::Options options;
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--mpi") == 0)
      options.mpi = true;
    else if (std::strcmp(argv[i], "--causal") == 0)
      options.causal = true;
    else if (std::strcmp(argv[i], "--length") == 0 && i + 1 < argc)
      options.length = std::atoi(argv[++i]);
    else
      options.way = argv[i];
#if !defined(WITH_MPI)
  if (options.mpi) return std::fprintf(stderr, "context_step: this build has no MPI\n"), 69;
#endif
  if (options.causal ? bench::of_attention<true>(options) : bench::of_attention<false>(options)) return 0;
  std::fprintf(stderr,
               "context_step: say context_step gathered|ring|heads|gathered-zigzag|ring-zigzag --length "
               "1024|4096|16384 [--causal] [--mpi]\n");
  return 2;
}
