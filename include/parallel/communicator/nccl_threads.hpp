// One process with many GPUs: ranks are threads, each with a GPU, under NCCL.
#pragma once
#include <mutex>

#include <parallel/communicator/nccl.hpp>
#include <parallel/communicator/nccl_settings.hpp>
#include <parallel/communicator/threads.hpp>

namespace parallel::internals {

namespace nccl {

/// Throws NoGpu where there are fewer GPUs than ranks. `where`: "here", or what machine it is.
inline void need_gpus(int ranks, const char* where = "here") {
  int gpus = 0;
  const cudaError_t status = cudaGetDeviceCount(&gpus);
  if (status != cudaSuccess) cudaGetLastError();
  if (gpus >= ranks) return;
  const std::string there =
      gpus == 0 ? std::string("there is no GPU ") + where +
                      (status == cudaSuccess ? "" : std::string(" (") + cudaGetErrorString(status) + ")")
      : gpus == 1 ? std::string("there is 1 GPU ") + where
                  : "there are " + std::to_string(gpus) + " GPUs " + where;
  throw NoGpu("parallel::Nccl: " + std::to_string(ranks) + (ranks == 1 ? " rank wants" : " ranks want") +
              " a GPU each, but " + there +
              (gpus == 0 ? "; run on the CPU with Cpu"
                         : "; start " + std::to_string(gpus) + ", or let ranks share a GPU by run_threads to verify"));
}

/// The first failure of a run, that the other ranks shall give up for.
class Fallen {
 public:
  void note(int rank, const std::string& why) {
    const std::lock_guard guard(mutex_);
    if (why_.empty()) why_ = "rank " + std::to_string(rank) + " failed: " + why;
  }
  std::string why() const {
    const std::lock_guard guard(mutex_);
    return why_;
  }

 private:
  mutable std::mutex mutex_;
  std::string why_;
};

}  // namespace nccl

/// Calls f(Nccl&) on so many threads, each a rank with the GPU of its number, and returns when all have ended. If one
/// throws, the others end with PeerFailed where they next wait, and the first exception is thrown again here. A rank
/// that hangs elsewhere ends the program, as in run_threads.
template <class F>
void run_nccl(int ranks, F&& f, const NcclOptions& options = {}) {
  nccl::settings();
  nccl::need_gpus(ranks);
  ncclUniqueId id{};
  if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess)
    throw NcclFailed(std::string("parallel::run_nccl: NCCL does not start: ") + ncclGetErrorString(result));
  nccl::Fallen fallen;
  run_threads(
      ranks,
      [&](Threads& t) {
        try {
          Nccl world(t.rank(), ranks, id, t.rank(), options, [&] { return fallen.why(); });
          world.aside_by(std::make_shared<AsideBy<Threads&>>(t));
          f(world);
          world.close();
        } catch (const std::exception& error) {
          fallen.note(t.rank(), error.what());
          throw;
        } catch (...) {
          fallen.note(t.rank(), "an exception");
          throw;
        }
      },
      options.deadline);
}

}  // namespace parallel::internals

namespace parallel {
using internals::run_nccl;
}  // namespace parallel
