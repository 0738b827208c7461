// Graphs of the stand-in: what streams were given while they were captured, and its replay.
#pragma once
#include "runtime.hpp"

namespace stand_in {

inline void synchronize(Gpu& gpu, Gpu::Lock& lock, int device, const char* function) {
  std::vector<TaskPointer> last;
  gpu.each_lane([&](Lane& lane) {
    if (lane.device == device && lane.last != nullptr) last.push_back(lane.last);
  });
  for (const TaskPointer& task : last) finish(gpu, lock, task, function);
}

/// The host looks without waiting; meanwhile something may have run.
inline cudaError_t query(Gpu& gpu, const TaskPointer& task) {
  gpu.one();
  if (task != nullptr && !task->done) return cudaErrorNotReady;
  if (task != nullptr) gpu.seen(*task);
  return cudaSuccess;
}

inline cudaError_t void_capture(Gpu& gpu, CUevent_st& event) {
  event.capture->invalid = true;
  return refuse(gpu, cudaErrorCapturedEvent, "the host looks at an event that was recorded in a capture");
}

/// A stream waits for an event of a capture: it belongs to the capture from then on.
inline cudaError_t join_capture(Gpu& gpu, Lane& lane, const CUevent_st& event) {
  CUgraph_st& graph = *event.capture;
  if (graph.lanes.empty())
    return refuse(gpu, cudaErrorStreamCaptureIsolation, "a stream waits for an event of a capture that is over");
  if (lane.capture != nullptr && lane.capture != event.capture) {
    graph.invalid = lane.capture->invalid = true;
    return refuse(gpu, cudaErrorStreamCaptureMerge, "two captures meet");
  }
  if (lane.capture == nullptr) {
    lane.capture = event.capture;
    lane.tails.clear();
    graph.lanes.push_back(&lane);
  }
  lane.tails.insert(lane.tails.end(), event.nodes.begin(), event.nodes.end());
  return cudaSuccess;
}

inline cudaError_t end_capture(Gpu& gpu, Lane& lane, cudaGraph_t* result) {
  *result = nullptr;
  const std::shared_ptr<CUgraph_st> graph = lane.capture;
  if (graph == nullptr)
    return refuse(gpu, cudaErrorStreamCaptureUnmatched, "cudaStreamEndCapture of a stream that is not captured");
  if (graph->lanes.front() != &lane)
    return refuse(gpu, cudaErrorStreamCaptureUnmatched, "cudaStreamEndCapture on another stream than it began on");
  std::vector<bool> joined(graph->nodes.size());
  std::vector<int> open = lane.tails;
  while (!open.empty()) {
    const auto node = static_cast<std::size_t>(open.back());
    open.pop_back();
    if (joined[node]) continue;
    joined[node] = true;
    open.insert(open.end(), graph->nodes[node].after.begin(), graph->nodes[node].after.end());
  }
  const bool all = std::find(joined.begin(), joined.end(), false) == joined.end();
  for (Lane* l : graph->lanes) {
    l->capture = nullptr;
    l->tails.clear();
  }
  graph->lanes.clear();
  // events may keep the capture longer than the graph lives
  auto made = std::make_unique<CUgraph_st>(std::move(*graph));
  if (made->invalid)
    return refuse(gpu, cudaErrorStreamCaptureInvalidated, "cudaStreamEndCapture of a capture that is void");
  if (!all)
    return refuse(gpu, cudaErrorStreamCaptureUnjoined, "cudaStreamEndCapture before all streams have joined again");
  *result = made.release();
  gpu.handles.insert(*result);
  return cudaSuccess;
}

/// The tasks of one launch, each on the lane of the graph that its stream was, between two on the stream.
inline void launch(Gpu& gpu, CUgraphExec_st& exec, Lane& stream) {
  const auto plain = [](const char* what) {
    auto task = std::make_shared<Task>();
    task->what = what;
    return task;
  };
  const TaskPointer begin = plain("the begin of a graph"), end = plain("the end of a graph");
  gpu.push(stream, begin);
  std::vector<TaskPointer> tasks;
  for (const CUgraph_st::Node& node : exec.nodes) {
    const TaskPointer task = node.make();
    task->after.push_back(begin);
    for (const int a : node.after) task->after.push_back(tasks[static_cast<std::size_t>(a)]);
    tasks.push_back(task);
    gpu.push(*node.lane, task);
  }
  end->after = tasks;
  gpu.push(stream, end);
  gpu.some();
}

}  // namespace stand_in

inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  return stand_in::call("cudaStreamBeginCapture", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    if (stream == nullptr)
      return stand_in::refuse(gpu, cudaErrorStreamCaptureUnsupported, "stream 0 cannot be captured");
    if (!gpu.known(stream)) return cudaErrorInvalidResourceHandle;
    if (stream->capture != nullptr) return cudaErrorInvalidValue;
    stream->capture = std::make_shared<CUgraph_st>();
    stream->capture->mode = mode;
    stream->capture->thread = std::this_thread::get_id();
    stream->capture->lanes = {stream};
    stream->tails.clear();
    return cudaSuccess;
  });
}
inline cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* status) {
  return stand_in::call("cudaStreamIsCapturing", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    stand_in::Lane* const lane = stand_in::lane_of(gpu, stream);
    if (lane == nullptr) return cudaErrorInvalidResourceHandle;
    *status = lane->capture == nullptr ? cudaStreamCaptureStatusNone
              : lane->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return stand_in::call("cudaStreamEndCapture", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    stand_in::Lane* const lane = stand_in::lane_of(gpu, stream);
    return lane == nullptr ? cudaErrorInvalidResourceHandle : stand_in::end_capture(gpu, *lane, graph);
  });
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long = 0) {
  return stand_in::call("cudaGraphInstantiate", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    if (!gpu.handles.contains(graph)) return cudaErrorInvalidValue;
    *exec = new CUgraphExec_st{graph->nodes, stand_in::current_device, graph->held};
    std::map<stand_in::Lane*, stand_in::Lane*> lanes;
    for (auto& node : (*exec)->nodes) {
      stand_in::Lane*& lane = lanes[node.lane];
      if (lane == nullptr) lane = gpu.add<stand_in::Lane>((*exec)->device);
      node.lane = lane;
    }
    gpu.handles.insert(*exec);
    return cudaSuccess;
  });
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return stand_in::call("cudaGraphLaunch", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    stand_in::Lane* const lane = stand_in::lane_of(gpu, stream);
    if (lane == nullptr || !gpu.handles.contains(exec)) return cudaErrorInvalidResourceHandle;
    if (lane->capture != nullptr)
      return stand_in::refuse(gpu, cudaErrorNotSupported, "a graph in a graph is not stood in for");
    stand_in::launch(gpu, *exec, *lane);
    return cudaSuccess;
  });
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return stand_in::call("cudaGraphDestroy", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    if (gpu.handles.erase(graph) == 0) return cudaErrorInvalidValue;
    delete graph;
    return cudaSuccess;
  });
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return stand_in::call("cudaGraphExecDestroy", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    if (gpu.handles.erase(exec) == 0) return cudaErrorInvalidValue;
    for (const auto& node : exec->nodes)
      if (gpu.known(node.lane)) gpu.abandon(node.lane);
    delete exec;
    return cudaSuccess;
  });
}
