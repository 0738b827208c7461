// What the functions of the CUDA runtime share: how a call begins, and how something is queued or captured.
#pragma once
#include <atomic>
#include <thread>

#include "gpu.hpp"
#include "types.hpp"

#define PARALLEL_STAND_IN 1

struct CUstream_st : stand_in::Lane {};

struct CUevent_st {
  int device = 0;
  bool timed = false;
  stand_in::TaskPointer task;           ///< of its last record
  std::shared_ptr<CUgraph_st> capture;  ///< or where the last record was captured, behind these nodes
  std::vector<int> nodes;
};

struct CUgraph_st {
  struct Node {
    stand_in::Maker make;
    std::vector<int> after;
    stand_in::Lane* lane;
  };
  std::vector<Node> nodes;
  std::vector<stand_in::Lane*> lanes;  ///< that are captured, the first of them where it began
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalid = false;
  std::vector<std::shared_ptr<void>> held;  ///< as long as the graph lives, and what is made of it: CUDA's user objects
};

struct CUgraphExec_st {
  std::vector<CUgraph_st::Node> nodes;
  int device = 0;
  std::vector<std::shared_ptr<void>> held;
};

namespace stand_in {

inline thread_local cudaError_t last_error = cudaSuccess;
/// What the next function of the host touches that a stream is given.
inline thread_local std::vector<Range> of_host;
inline thread_local std::uint64_t launched = 0;  ///< how many kernels the thread has asked for

/// One call of the runtime: the error that the test asked for, what the machine lacks, or what f returns.
template <class F>
cudaError_t call(const char* function, F f) {
  Gpu& gpu = Gpu::get();
  Gpu::Lock lock = gpu.lock();
  auto error = static_cast<cudaError_t>(gpu.injected(function));
  if (error == cudaSuccess && gpu.options.driver < CUDART_VERSION) error = cudaErrorInsufficientDriver;
  if (error == cudaSuccess && gpu.options.devices == 0) error = cudaErrorNoDevice;
  if (error == cudaSuccess) error = static_cast<cudaError_t>(gpu.sticky(current_device));
  if (error == cudaSuccess) error = f(gpu, lock);
  if (error == cudaSuccess) error = static_cast<cudaError_t>(gpu.sticky(current_device));
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// Notes in words why a call is refused.
inline cudaError_t refuse(Gpu& gpu, cudaError_t error, const std::string& words) {
  gpu.fault(current_device, 0, "stand_in: " + words);
  return error;
}

/// A call that captures in this mode forbid, as they forbid all that may wait for the device.
inline bool captured(Gpu& gpu, const char* function, Lane* only = nullptr) {
  bool found = false;
  gpu.each_lane([&](Lane& lane) {
    if (lane.capture == nullptr || (only != nullptr && &lane != only)) return;
    CUgraph_st& graph = *lane.capture;
    const bool counts = only != nullptr || graph.mode == cudaStreamCaptureModeGlobal ||
                        (graph.mode == cudaStreamCaptureModeThreadLocal && graph.thread == std::this_thread::get_id());
    if (counts) graph.invalid = found = true;
  });
  if (found)
    refuse(gpu, cudaErrorStreamCaptureUnsupported,
           std::string(function) + " while a stream is captured; the capture is void");
  return found;
}

inline Lane* lane_of(Gpu& gpu, cudaStream_t stream) {
  if (stream == nullptr) return gpu.default_of<CUstream_st>(current_device);
  return gpu.known(stream) ? stream : nullptr;
}

/// Queues what `make` makes, or writes it into the graph that is captured.
inline TaskPointer queue(Gpu& gpu, Lane& lane, const Maker& make) {
  if (lane.capture != nullptr) {
    CUgraph_st& graph = *lane.capture;
    graph.nodes.push_back({make, lane.tails, &lane});
    lane.tails = {static_cast<int>(graph.nodes.size()) - 1};
    return nullptr;
  }
  const TaskPointer task = make();
  gpu.push(lane, task);
  gpu.some();
  return task;
}
inline TaskPointer queue(Gpu& gpu, Lane& lane, const std::string& what, std::vector<Range> ranges,
                         std::function<void()> work, bool any_device = false) {
  return queue(gpu, lane, [=] {
    auto task = std::make_shared<Task>();
    task->what = what;
    task->ranges = ranges;
    task->work = work;
    task->any_device = any_device;
    return task;
  });
}

/// Waits on the host for a task. A device on which nothing moves any more does not return either; here the program
/// ends.
inline void finish(Gpu& gpu, Gpu::Lock& lock, const TaskPointer& task, const char* function) {
  if (task == nullptr) return;
  if (!gpu.until(lock, [&] { return task->done; })) {
    std::fprintf(stderr, "stand_in: %s waits for ever\n", function);
    std::abort();
  }
  gpu.seen(*task);
}

/// Queues a function on a stream, as the launch of a kernel does. It may touch device memory. Ranges are what it reads
/// and writes, for the search for races; where none are given none are found.
inline cudaError_t enqueue(cudaStream_t stream, std::function<void()> work, std::vector<Range> ranges = {},
                           const std::string& what = "a kernel") {
  return call("enqueue", [&](Gpu& gpu, Gpu::Lock&) {
    Lane* const lane = lane_of(gpu, stream);
    if (lane == nullptr) return refuse(gpu, cudaErrorInvalidResourceHandle, what + " is launched on no stream");
    if (lane->device != current_device)
      return refuse(gpu, cudaErrorInvalidResourceHandle,
                    what + " is launched on a stream of device " + std::to_string(lane->device) + " while device " +
                        std::to_string(current_device) + " is current");
    queue(gpu, *lane, what, std::move(ranges), std::move(work));
    ++launched;
    return cudaSuccess;
  });
}

/// What a stream is asked for from now on does not run before the flag is set: for tests that the host does not wait
/// meanwhile.
inline void hold(cudaStream_t stream, const std::atomic<bool>& flag) {
  Gpu& gpu = Gpu::get();
  const auto lock = gpu.lock();
  const auto task = std::make_shared<Task>();
  task->what = "a task that is held";
  task->ready = [&flag](Task&) { return flag.load(); };
  gpu.push(*lane_of(gpu, stream), task);
}

}  // namespace stand_in
