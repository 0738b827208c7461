// What all communicators of a rank under NCCL share: its GPU, the stream of its computation, how it waits, and how it
// gives up.
#pragma once
#include <algorithm>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <parallel/communicator/communicator.hpp>
#include <parallel/communicator/history.hpp>

namespace parallel::internals {

struct NcclOptions {
  std::chrono::milliseconds deadline = default_deadline;
  /// Communicators of NCCL that block: a start costs the host less (where steps are not captured as graphs), but no
  /// deadline holds while they are set up.
  bool blocking = false;
  /// Blocks of threads that carry a message. Each message on its way holds so many until its other end comes, so they
  /// must be few.
  int message_blocks = 4;
};

/// A rank has no GPU of its own. Exit code 69.
struct NoGpu : Failure {
  explicit NoGpu(const std::string& sentence) : Failure(sentence, parallel::exit_code::unavailable) {}
};

/// A call of NCCL failed.
struct NcclFailed : Failure {
  explicit NcclFailed(const std::string& sentence) : Failure(sentence, parallel::exit_code::peer) {}
};

namespace nccl {

using Clock = std::chrono::steady_clock;

inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw Failure(std::string("parallel::Nccl: ") + what + ": " + cudaGetErrorString(status));
}

struct Destroy {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy>;
inline Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  return Stream(stream);
}
inline Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
  return Event(event);
}

struct Free {
  void operator()(void* p) const { cudaFree(p); }
};
using Room = std::unique_ptr<void, Free>;
/// So many bytes of the GPU.
inline Room make_room(std::size_t bytes) {
  void* room = nullptr;
  check(cudaMalloc(&room, bytes), "memory");
  return Room(room);
}

class Line;

/// One rank's. All that wait do it here, so that errors are seen, the deadline holds, and one failure ends all.
class Job {
 public:
  Job(int rank, int ranks, int gpu, const NcclOptions& o) : options(o), rank_(rank), ranks_(ranks), gpu_(gpu) {
    check(cudaSetDevice(gpu), "a GPU could not be chosen");
    own_ = make_stream();
    compute = own_.get();
    room_ = make_room(2 * sizeof(float));
    check(cudaMemsetAsync(room_.get(), 0, 2 * sizeof(float), compute), "memory");
    check(cudaStreamSynchronize(compute), "memory");  // it is used on other streams, too
  }

  NcclOptions options;
  LongPhase phase;
  History history;  ///< here an exchange was "waited for" when the compute stream was asked to wait for it
  cudaStream_t compute = nullptr;  ///< exchanges begin when what it was asked for before is done
  /// why another rank of the run has failed, where that is known; empty while none has
  std::function<std::string()> others;
  std::vector<Line*> lines;
  /// Where NCCL may write a new communicator to, as long as there is one of this rank.
  ncclComm_t& place_for_new() { return made_.emplace_back(nullptr); }
  std::uint64_t started = 0;  ///< exchanges, of all groups

  int rank() const { return rank_; }
  int gpu() const { return gpu_; }
  float* room() const { return static_cast<float*>(room_.get()); }  ///< two floats, for exchanges that carry nothing
  bool failed() const { return failed_; }
  bool capturing() const {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(compute, &status), "a stream");
    return status != cudaStreamCaptureStatusNone;
  }
  ncclConfig_t config() const {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = options.blocking ? 1 : 0;
    return config;
  }

  /// Waits for what a call of NCCL has begun; most calls of communicators that do not block are not done when they
  /// return. `of` is asked for the communicator anew each time. Throws Deadline, PeerFailed, Failure.
  template <class Of>
  void settle(ncclResult_t result, Of of, const std::string& what) {
    const auto since = Clock::now();
    while (result == ncclInProgress) {
      const ncclComm_t communicator = of();
      if (const ncclResult_t asked = ncclCommGetAsyncError(communicator, &result); asked != ncclSuccess) result = asked;
      if (result != ncclInProgress) break;
      watch(since, [&] { return what; });
    }
    if (result != ncclSuccess) give_up(result, what);
  }

  /// Waits on the host until done() says so. Throws Deadline, PeerFailed, Failure, and names the exchange that is not
  /// done.
  template <class Done>
  void until(Done done, const std::string& what) {
    const auto since = Clock::now();
    int polls = 1;
    for (; !done(); ++polls) {
      if (polls % 16 != 0) continue;
      poll(what);
      watch(since, [&] { return unfinished(what); });
    }
    if (polls > 1) cudaGetLastError();  // that something was not ready is no error of a kernel's start
  }
  /// Waits until the GPU has done all that the compute stream was asked for.
  void finish(const std::string& what) {
    need_alive(what);
    cudaError_t state = cudaSuccess;
    until([&] { return (state = cudaStreamQuery(compute)) != cudaErrorNotReady; }, what);
    check(state, what.c_str());
  }

  void need_alive(const std::string& what) const {
    if (failed_) throw PeerFailed("parallel::Nccl: " + who() + " gave up " + what + ": " + why_);
  }
  /// NCCL ends all exchanges of the rank, with whatever numbers: before this returns, but on groups that a graph has
  /// captured a little later.
  void abort(const std::string& why) noexcept;
  std::string who() const { return rank_text(rank_, ranks_); }

 private:
  /// What all loops that wait look at: other ranks, the time.
  template <class Name>
  void watch(Clock::time_point since, Name name) {
    if (others)
      if (const std::string why = others(); !why.empty()) {
        const std::string what = name();
        abort(why);
        throw PeerFailed("parallel::wait: " + who() + " gave up " + what + ": " + why);
      }
    const auto time = Clock::now() - since;
    if (const auto limit = patience(options.deadline, phase); time >= limit) {
      const std::string words = "parallel::wait: " + who() + " waited " + text(limit) + " in " + name() +
                                (phase.name != nullptr ? std::string(" (in the phase '") + phase.name + "')" : "") +
                                "; another rank hangs, has ended or calls something else, or the deadline is too short";
      std::fputs(history.text(who()).c_str(), stderr);
      abort(words);
      throw Deadline(words);
    }
    if (time > std::chrono::milliseconds(1))
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    else
      std::this_thread::yield();
  }
  void poll(const std::string& what);
  std::string unfinished(const std::string& what) const;
  [[noreturn]] void give_up(ncclResult_t result, const std::string& what) {
    const bool peer = result == ncclRemoteError || result == ncclSystemError;
    std::string words = "parallel::Nccl: " + who() + ": " + what + " failed: " + ncclGetErrorString(result);
    if (peer) words += "; another rank has ended, or cannot be reached";
    if (result == ncclInvalidUsage)
      words += "; let all ranks call the same in the same order, each on a GPU of its own (NCCL_DEBUG=WARN says more)";
    abort(words);
    if (peer) throw PeerFailed(words);
    if (result == ncclInvalidUsage) throw Mismatch(words);
    throw NcclFailed(words);
  }

  int rank_, ranks_, gpu_;
  bool failed_ = false;
  std::string why_;
  Stream own_;
  Room room_;
  std::deque<ncclComm_t> made_;
};

}  // namespace nccl
}  // namespace parallel::internals

namespace parallel {
using internals::NcclFailed;
using internals::NcclOptions;
using internals::NoGpu;
}  // namespace parallel
