// One process per GPU that MPI has started: it brings the ranks together, NCCL carries what they exchange.
#pragma once
#include <parallel/communicator/mpi.hpp>
#include <parallel/communicator/nccl_settings.hpp>
#include <parallel/communicator/nccl_threads.hpp>

namespace parallel::internals {

namespace nccl {

/// Which GPU of its machine a process takes, and the id of the run.
struct Seat {
  int gpu = 0;
  ncclUniqueId id{};
};

/// Called by all processes. A process takes the GPU of its number on its machine, or the only one that its launcher
/// lets it see. Throws NoGpu.
inline Seat seat_under_mpi(Mpi& world) {
  int here = 0, ranks_here = 1, gpus = 0;
  {
    const Mpi machine = world.machine();
    here = machine.rank();
    ranks_here = machine.size();
  }
  if (cudaGetDeviceCount(&gpus) != cudaSuccess) cudaGetLastError();
  const char* mask = std::getenv("CUDA_VISIBLE_DEVICES");
  const bool given = gpus == 1 && mask != nullptr && *mask != '\0';  // NCCL refuses where two were given the same
  need_gpus(given ? 1 : ranks_here, "on this machine");
  Seat seat;
  seat.gpu = given ? 0 : here;
  if (world.rank() == 0)
    if (const ncclResult_t result = ncclGetUniqueId(&seat.id); result != ncclSuccess)
      throw NcclFailed(std::string("parallel::run_nccl_mpi: NCCL does not start: ") + ncclGetErrorString(result));
  static_assert(sizeof seat.id % sizeof(std::int32_t) == 0);
  exchange(world, {Collective::broadcast, &seat.id, &seat.id, sizeof seat.id / sizeof(std::int32_t), DType::i32, false,
                   0, "the id of the run under NCCL"});
  return seat;
}

}  // namespace nccl

/// Calls f(Nccl&) with all ranks of the job, each with a GPU of its own. If one throws, it says why and ends the job
/// with the exit code that the exception maps to.
template <class F>
void run_nccl_mpi(F&& f, const NcclOptions& options = {}) {
  nccl::settings();
  run_mpi(
      [&](Mpi& mpi) {
        const nccl::Seat seat = nccl::seat_under_mpi(mpi);
        Nccl world(mpi.rank(), mpi.size(), seat.id, seat.gpu, options);
        world.aside_by(std::make_shared<AsideBy<Mpi&>>(mpi));
        f(world);
        world.close();
      },
      {.deadline = options.deadline});
}

}  // namespace parallel::internals

namespace parallel {
using internals::run_nccl_mpi;
}  // namespace parallel
