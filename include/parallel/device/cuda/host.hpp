// The host of a GPU: what is Stored<host> lies in memory that the GPU copies from and to, and is updated by the CPU.
#pragma once
#include <algorithm>
#include <deque>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include <parallel/device/cpu/device.hpp>
#include <parallel/device/cpu/team.hpp>
#include <parallel/device/cuda/device.hpp>
#include <parallel/device/host.hpp>

namespace parallel::internals {

template <class Device>
class GpuHost;

/// A GPU whose host computes: a device for programs that store something on the host. `threads`: of an update, this
/// rank's share of the machine's cores; the others are CudaOf's. The program is linked with the kernels of the CPU, or
/// includes <parallel/device/cpu.hpp> in a file.
template <class... T>
class CudaAndCpuOf : public CudaOf<T...> {
 public:
  using HostSide = GpuHost<CudaAndCpuOf>;
  /// The CPU's kernels compute what is bf16 in float.
  using Host = std::conditional_t<(std::is_same_v<T, double> || ...), CpuOf<float, double>, CpuOf<float>>;

  CudaAndCpuOf() = default;
  explicit CudaAndCpuOf(int number, int threads = 1, bool tf32 = false, std::span<const OwnKernels> own = {},
                        const Host& host = {})
      : CudaOf<T...>(number, tf32, own), host_(host), threads_(threads) {}
  const Host& host() const { return host_; }
  int threads() const { return threads_; }

 private:
  Host host_;
  int threads_ = 1;
};
using CudaAndCpu = CudaAndCpuOf<float, bfloat16, float16>;
using CudaAndCpuDouble = CudaAndCpuOf<float, bfloat16, float16, double>;

/// Work of the host in the order of the GPU's: one stream has what the host computes, one each what is copied to it and
/// from it. A copy begins when device and host have done all before it, and whoever waits for it, both wait; so nothing
/// else needs order.
template <class Device>
class GpuHost {
 public:
  explicit GpuHost(const Device& device) : device_(device), team_(std::make_unique<cpu::Team>(device.threads())) {
    gpu().use();
    for (Stream* s : {&computes_, &offloads_, &fetches_}) *s = Stream(gpu());
    for (Event* e : {&of_device_, &of_host_}) *e = Event(gpu());
  }
  using Memory = PinnedMemory;
  static Memory memory(const Device& device, std::int64_t bytes) { return PinnedMemory(device.shared_gpu(), bytes); }
  const auto& device() const { return device_.host(); }

  /// All streams begin behind what the device was asked for before, and end before what it is asked for later.
  void begin_step() {
    next_ = 0;
    of_device_.record(gpu().stream());
    for (const Stream* s : {&computes_, &offloads_, &fetches_}) of_device_.hold(s->get());
  }
  void end_step() {
    for (const Stream* s : {&computes_, &offloads_, &fetches_}) {
      of_host_.record(s->get());
      of_host_.hold(gpu().stream());
    }
  }
  /// In the first step each of its calls is kept; the others ask for the same.
  void compute(std::span<const Launch> launches) {
    if (next_ == work_.size()) work_.emplace_back(launches, *team_);
    Work& work = work_[next_++];
#if defined(PARALLEL_STAND_IN)
    work.declare();
#endif
    cuda::check(cudaLaunchHostFunc(
                    computes_.get(), [](void* of) { static_cast<Work*>(of)->run(); }, &work),
                "an update of the host");
  }
  void start(int node, void* to, const void* from, std::int64_t bytes, bool offloads) {
    const Stream& stream = offloads ? offloads_ : fetches_;
    of_device_.record(gpu().stream());
    of_host_.record(computes_.get());
    of_device_.hold(stream.get());
    of_host_.hold(stream.get());
    cuda::check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes),
                                offloads ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice, stream.get()),
                "a copy between a GPU and its host");
    there(node).record(stream.get());
  }
  void wait(int node) {
    there(node).hold(gpu().stream());
    there(node).hold(computes_.get());
  }

 private:
  class Stream {
   public:
    Stream() = default;
    explicit Stream(const Gpu&) {
      cudaStream_t stream = nullptr;
      cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
      stream_.reset(stream);
    }
    cudaStream_t get() const { return stream_.get(); }

   private:
    struct Destroy {
      void operator()(cudaStream_t stream) const {
        cudaStreamSynchronize(stream);
        cudaStreamDestroy(stream);
      }
    };
    std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy> stream_{};
  };
  class Event {
   public:
    Event() = default;
    explicit Event(const Gpu&) {
      cudaEvent_t event = nullptr;
      cuda::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
      event_.reset(event);
    }
    explicit operator bool() const { return event_ != nullptr; }
    void record(cudaStream_t stream) const { cuda::check(cudaEventRecord(event_.get(), stream), "an event"); }
    /// What a stream is asked for from now on waits for what was recorded last.
    void hold(cudaStream_t stream) const { cuda::check(cudaStreamWaitEvent(stream, event_.get(), 0), "an event"); }

   private:
    struct Destroy {
      void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
    };
    std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy> event_{};
  };
  /// Calls as they were when they were asked for: loops move the executor's on.
  struct Work {
    Work(std::span<const Launch> all, cpu::Team& of) : team(of) {
      for (const Launch& launch : all) calls.insert(calls.end(), launch.calls.begin(), launch.calls.end());
      for (const Call* at = calls.data(); const Launch& launch : all) {
        launches.push_back({{at, launch.calls.size()}, launch.kernel});
        at += launch.calls.size();
      }
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    void run() const {
      if (calls[0].commit != nullptr && *calls[0].commit == 0) return;
      for (const Launch& launch : launches) cpu::compute(team, launch);
    }
#if defined(PARALLEL_STAND_IN)
    void declare() const {
      for (const Call& c : calls) {
        for (const View& v : c.operands) stand_in::of_host.push_back(stand_in::reads(v.data, v.bytes()));
        for (const View& v : c.results) stand_in::of_host.push_back(stand_in::writes(v.data, v.bytes()));
      }
    }
#endif
    cpu::Team& team;
    std::vector<Call> calls{};
    std::vector<Launch> launches{};
  };

  Gpu& gpu() const { return device_.gpu(); }
  /// Recorded behind a node's copy. Made when it is asked for first.
  const Event& there(int node) {
    if (there_.size() <= static_cast<std::size_t>(node)) there_.resize(static_cast<std::size_t>(node) + 1);
    Event& event = there_[static_cast<std::size_t>(node)];
    if (!event) event = Event(gpu());
    return event;
  }

  Device device_;
  std::unique_ptr<cpu::Team> team_;
  std::deque<Work> work_{};  // a deque leaves what it holds where it is
  std::size_t next_ = 0;
  Event of_device_{}, of_host_{};
  std::vector<Event> there_{};
  Stream computes_{}, offloads_{}, fetches_{};  // go first: nothing runs any more when the others go
};

}  // namespace parallel::internals

namespace parallel {
using internals::CudaAndCpu;
using internals::CudaAndCpuDouble;
using internals::CudaAndCpuOf;
}  // namespace parallel
