// The step of a pipeline, derived or by hand, on request: tools/bench/pipeline asks, by turns with other peers.
//
//   pipeline_step derived SCHEDULE --micro-batches 4|8|16 [--ranks N | --mpi] [--packs-once]
//                                                   as many stages as ranks: threads, or processes of mpirun
//   mpirun -n N pipeline_step by-hand SCHEDULE --micro-batches M                    1F1B or GPipe
#include <cstring>

#include "pipeline_run.hpp"
#include "serve.hpp"
#if defined(WITH_MPI)
#include "pipeline_by_hand.hpp"
#endif

namespace bench {

struct Options {
  bool by_hand = false, mpi = false, packs_once = false;
  const Schedule* schedule = nullptr;
  int micro_batches = 0, ranks = 1;
};

template <int micro_batches>
void derived(const Options& options) {
  const auto run = [&](auto& world, auto requests) {
    PipelineRun<std::remove_cvref_t<decltype(world)>> peer(
        with(build<PipelineStep<micro_batches>>(), *options.schedule), world, Cpu{.packs_once = options.packs_once});
    serve(peer, requests, world.rank() == 0);
  };
  if (!options.mpi) {
    std::atomic<int> steps;
    return run_threads(options.ranks, [&](Threads& world) { run(world, ThreadRequests(world, steps)); });
  }
#if defined(WITH_MPI)
  run_mpi([&](Mpi& world) { run(world, MpiRequests()); });
#endif
}

#if defined(WITH_MPI)
void by_hand(const Options& options) {
  run_mpi([&](Mpi& world) {
    const int ahead = options.schedule == &schedules::gpipe ? options.micro_batches : world.size() - world.rank() - 1;
    PipelineByHand peer(world.rank(), world.size(), options.micro_batches, ahead);
    serve(peer, MpiRequests(), world.rank() == 0);
  });
}
#endif

int usage() {
  std::fprintf(stderr,
               "pipeline_step: say pipeline_step derived|by-hand SCHEDULE --micro-batches 4|8|16 [--ranks N | --mpi] "
               "[--packs-once]\n");
  return 2;
}

}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  Options options;
  if (argc < 3 || (std::strcmp(argv[1], "derived") != 0 && std::strcmp(argv[1], "by-hand") != 0)) return usage();
  options.by_hand = std::strcmp(argv[1], "by-hand") == 0;
  for (const Schedule* s : piped::schedules)
    if (s->name == argv[2]) options.schedule = s;
  for (int i = 3; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (std::strcmp(argv[i], "--mpi") == 0)
      options.mpi = true;
    else if (std::strcmp(argv[i], "--packs-once") == 0)
      options.packs_once = true;
    else if (more && std::strcmp(argv[i], "--micro-batches") == 0)
      options.micro_batches = std::atoi(argv[++i]);
    else if (more && std::strcmp(argv[i], "--ranks") == 0)
      options.ranks = std::atoi(argv[++i]);
    else
      return usage();
  }
  const bool written =
      options.schedule == &schedules::gpipe || options.schedule == &schedules::one_forward_one_backward;
  if (options.schedule == nullptr || (options.by_hand && !written)) return usage();
#if defined(WITH_MPI)
  if (options.by_hand) return by_hand(options), 0;
#else
  if (options.mpi || options.by_hand) return std::fprintf(stderr, "pipeline_step: this build has no MPI\n"), 69;
#endif
  switch (options.micro_batches) {
    case 4: return derived<4>(options), 0;
    case 8: return derived<8>(options), 0;
    case 16: return derived<16>(options), 0;
    default: return usage();
  }
}
