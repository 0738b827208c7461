// A training step on two ranks with what a stage of ZeRO stores split, on request: tools/bench/zero asks, by turns with
// other peers.
//
//   zero_step whole|states|gradients|parameters|per_pass               ranks are threads
//   mpirun -n 2 zero_step whole|... --mpi                              ranks are processes
#include <cstring>

#include <parallel/device/cpu.hpp>
#include <parallel/run/trainer.hpp>

#include "serve.hpp"
#include "zero_model.hpp"

namespace bench {

template <Communicator World>
class Derived {
 public:
  Derived(World& world, const Plan& plan)
      : parameters_(plan, world.rank(), 1), trainer_(plan, world, parameters_, zero_words, 1) {
    give_numbers(plan, trainer_, parameters_, world.rank());
  }
  StepResult step() { return trainer_.step(zero_rate); }
  /// Two steps more: that parameters were updated alike.
  std::vector<Checked> checked(const StepResult& first) {
    std::vector<Checked> all{{"loss", first.loss}, {"norm", first.gradient_norm}};
    for (const char* which : {"second", "third"}) {
      const StepResult next = step();
      all.push_back({std::string(which) + "_loss", next.loss});
      all.push_back({std::string(which) + "_norm", next.gradient_norm});
    }
    return all;
  }

 private:
  Parameters parameters_;
  Trainer<World, Cpu> trainer_;
};

template <class... S>
void derived(bool mpi) {
  const auto run = [&](auto& world, auto requests) {
    const OwnedPlan plan = derive<ZeroStep<S...>>(Mesh{data = 2});
    Derived<std::remove_cvref_t<decltype(world)>> peer(world, plan);
    serve(peer, requests, world.rank() == 0);
  };
  if (!mpi) {
    std::atomic<int> steps;
    return run_threads(2, [&](Threads& world) { run(world, ThreadRequests(world, steps)); });
  }
#if defined(WITH_MPI)
  run_mpi([&](Mpi& world) { run(world, MpiRequests()); }, {.ranks = 2});
#endif
}

struct Way {
  const char* name;
  void (*run)(bool mpi);
};
inline constexpr Way ways[] = {{"whole", derived<>},
                               {"states", derived<Stored<data, Zero::states>>},
                               {"gradients", derived<Stored<data, Zero::gradients>>},
                               {"parameters", derived<Stored<data>>},
                               {"per_pass", derived<Stored<data, Gathered::per_pass>>}};

}  // namespace bench

int main(int argc, char** argv) {
  const bool mpi = argc == 3 && std::strcmp(argv[2], "--mpi") == 0;
#if !defined(WITH_MPI)
  if (mpi) return std::fprintf(stderr, "zero_step: this build has no MPI\n"), 69;
#endif
  if (argc == 2 || mpi)
    for (const bench::Way& way : bench::ways)
      if (std::strcmp(argv[1], way.name) == 0) return way.run(mpi), 0;
  std::fprintf(stderr, "zero_step: say zero_step whole|states|gradients|parameters|per_pass [--mpi]\n");
  return 2;
}
