// A stand-in for CUDA's header of this name: see gpu.hpp. Functions have the signatures of CUDA 13.
#pragma once
#include "copy.hpp"
#include "graph.hpp"
#include "runtime.hpp"

// Errors

inline const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorNotSupported: return "cudaErrorNotSupported";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnmatched: return "cudaErrorStreamCaptureUnmatched";
    case cudaErrorStreamCaptureUnjoined: return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation: return "cudaErrorStreamCaptureIsolation";
    case cudaErrorCapturedEvent: return "cudaErrorCapturedEvent";
    default: return "cudaErrorUnknown";
  }
}
inline const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorNotSupported: return "operation not supported";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated: return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureUnmatched: return "capture was not ended in the same stream as it began";
    case cudaErrorStreamCaptureUnjoined: return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureIsolation: return "dependency created on uncaptured work in another stream";
    case cudaErrorCapturedEvent: return "operation not permitted on an event last recorded in a capturing stream";
    default: return "unknown error";
  }
}
inline cudaError_t cudaPeekAtLastError() { return stand_in::last_error; }
inline cudaError_t cudaGetLastError() { return std::exchange(stand_in::last_error, cudaSuccess); }

// Devices

inline cudaError_t cudaDriverGetVersion(int* version) {
  const auto lock = stand_in::Gpu::get().lock();
  *version = stand_in::Gpu::get().options.driver;
  return cudaSuccess;
}
inline cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return stand_in::call("cudaGetDeviceCount", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    *count = gpu.options.devices;
    return cudaSuccess;
  });
}
inline cudaError_t cudaSetDevice(int device) {
  return stand_in::call("cudaSetDevice", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    if (device < 0 || device >= gpu.options.devices) return cudaErrorInvalidDevice;
    stand_in::current_device = device;
    return cudaSuccess;
  });
}
inline cudaError_t cudaGetDevice(int* device) {
  return stand_in::call("cudaGetDevice", [&](stand_in::Gpu&, stand_in::Gpu::Lock&) {
    *device = stand_in::current_device;
    return cudaSuccess;
  });
}
inline cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* properties, int device) {
  return stand_in::call("cudaGetDeviceProperties", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    if (device < 0 || device >= gpu.options.devices) return cudaErrorInvalidDevice;
    *properties = {"stand-in", gpu.options.memory, 48 << 10,          65536, 32,
                   1024,       gpu.options.major,  gpu.options.minor, 4,     1 << 20,
                   2048,       228 << 10,          227 << 10};
    return cudaSuccess;
  });
}
inline cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p{};
  if (const cudaError_t error = cudaGetDeviceProperties(&p, device); error != cudaSuccess) return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxGridDimX: *value = 0x7fffffff; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = static_cast<int>(p.sharedMemPerBlock); break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = static_cast<int>(p.sharedMemPerMultiprocessor); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(p.sharedMemPerBlockOptin); break;
    case cudaDevAttrMemoryPoolsSupported: *value = 1; break;
    default: return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

// Memory

inline cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return stand_in::call("cudaMemGetInfo", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    const stand_in::Memory& memory = gpu.memory(stand_in::current_device);
    *total = memory.size();
    *free = memory.size() - memory.used();
    return cudaSuccess;
  });
}
inline cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  return stand_in::call("cudaMalloc", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    if (stand_in::captured(gpu, "cudaMalloc")) return cudaErrorStreamCaptureUnsupported;
    *p = bytes == 0 ? nullptr : gpu.memory(stand_in::current_device).allocate(bytes);
    return *p == nullptr && bytes > 0 ? cudaErrorMemoryAllocation : cudaSuccess;
  });
}
/// Waits for the device, as the real one does.
inline cudaError_t cudaFree(void* p) {
  return stand_in::call("cudaFree", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock& lock) {
    if (p == nullptr) return cudaSuccess;
    if (stand_in::captured(gpu, "cudaFree")) return cudaErrorStreamCaptureUnsupported;
    const int device = gpu.device_of(p);
    if (device < 0) return stand_in::refuse(gpu, cudaErrorInvalidValue, "cudaFree of what is no device memory");
    stand_in::synchronize(gpu, lock, device, "cudaFree");
    return gpu.memory(device).free(p)
               ? cudaSuccess
               : stand_in::refuse(gpu, cudaErrorInvalidValue, "cudaFree of what was not allocated, or twice");
  });
}
inline cudaError_t cudaMallocAsync(void** p, std::size_t bytes, cudaStream_t stream) {
  return stand_in::call("cudaMallocAsync", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    stand_in::Lane* const lane = stand_in::lane_of(gpu, stream);
    if (lane == nullptr) return cudaErrorInvalidResourceHandle;
    if (stand_in::captured(gpu, "cudaMallocAsync", lane)) return cudaErrorStreamCaptureUnsupported;
    *p = gpu.memory(lane->device).allocate(bytes);
    if (*p == nullptr) return cudaErrorMemoryAllocation;
    stand_in::queue(gpu, *lane, "cudaMallocAsync", {stand_in::writes(*p, bytes)}, {});
    return cudaSuccess;
  });
}
inline cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  return stand_in::call("cudaFreeAsync", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    stand_in::Lane* const lane = stand_in::lane_of(gpu, stream);
    if (lane == nullptr) return cudaErrorInvalidResourceHandle;
    if (stand_in::captured(gpu, "cudaFreeAsync", lane)) return cudaErrorStreamCaptureUnsupported;
    const int device = lane->device;
    stand_in::queue(gpu, *lane, "cudaFreeAsync", {stand_in::writes(p, 1)},
                    [&gpu, p, device] { gpu.memory(device).free(p); });
    return cudaSuccess;
  });
}
inline cudaError_t cudaMallocHost(void** p, std::size_t bytes) {
  return stand_in::call("cudaMallocHost", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    if (stand_in::captured(gpu, "cudaMallocHost")) return cudaErrorStreamCaptureUnsupported;
    *p = std::malloc(bytes > 0 ? bytes : 1);
    gpu.pinned[static_cast<const std::byte*>(*p)] = bytes;
    return cudaSuccess;
  });
}
inline cudaError_t cudaFreeHost(void* p) {
  return stand_in::call("cudaFreeHost", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock& lock) {
    if (p == nullptr) return cudaSuccess;
    if (stand_in::captured(gpu, "cudaFreeHost")) return cudaErrorStreamCaptureUnsupported;
    for (int d = 0; d < gpu.options.devices; ++d) stand_in::synchronize(gpu, lock, d, "cudaFreeHost");
    if (gpu.pinned.erase(static_cast<const std::byte*>(p)) == 0)
      return stand_in::refuse(gpu, cudaErrorInvalidValue, "cudaFreeHost of what cudaMallocHost did not give");
    std::free(p);
    return cudaSuccess;
  });
}
inline cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* p) {
  return stand_in::call("cudaPointerGetAttributes", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    const int device = gpu.device_of(p);
    const bool host = device < 0 && gpu.is_pinned(p, 1);
    void* const there = const_cast<void*>(p);
    *attributes = {device >= 0 ? cudaMemoryTypeDevice
                   : host      ? cudaMemoryTypeHost
                               : cudaMemoryTypeUnregistered,
                   device >= 0 || !host ? device : 0, device >= 0 || host ? there : nullptr,
                   device < 0 ? there : nullptr};
    return cudaSuccess;
  });
}

// Streams

/// Only streams that do not wait for stream 0: those that do are not stood in for.
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return stand_in::call("cudaStreamCreateWithFlags", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    if (flags != cudaStreamNonBlocking)
      return stand_in::refuse(gpu, cudaErrorInvalidValue,
                              "a stream that waits for stream 0; create it with cudaStreamNonBlocking");
    *stream = gpu.add<CUstream_st>(stand_in::current_device);
    return cudaSuccess;
  });
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return stand_in::call("cudaStreamDestroy", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    if (stream == nullptr || !gpu.known(stream)) return cudaErrorInvalidResourceHandle;
    gpu.abandon(stream);
    return cudaSuccess;
  });
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return stand_in::call("cudaStreamSynchronize", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock& lock) {
    stand_in::Lane* const lane = stand_in::lane_of(gpu, stream);
    if (lane == nullptr) return cudaErrorInvalidResourceHandle;
    if (stand_in::captured(gpu, "cudaStreamSynchronize", lane)) return cudaErrorStreamCaptureUnsupported;
    stand_in::finish(gpu, lock, lane->last, "cudaStreamSynchronize");
    return cudaSuccess;
  });
}
inline cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return stand_in::call("cudaStreamQuery", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    stand_in::Lane* const lane = stand_in::lane_of(gpu, stream);
    if (lane == nullptr) return cudaErrorInvalidResourceHandle;
    if (stand_in::captured(gpu, "cudaStreamQuery", lane)) return cudaErrorStreamCaptureUnsupported;
    return stand_in::query(gpu, lane->last);
  });
}
inline cudaError_t cudaDeviceSynchronize() {
  return stand_in::call("cudaDeviceSynchronize", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock& lock) {
    if (stand_in::captured(gpu, "cudaDeviceSynchronize")) return cudaErrorStreamCaptureUnsupported;
    stand_in::synchronize(gpu, lock, stand_in::current_device, "cudaDeviceSynchronize");
    return cudaSuccess;
  });
}

/// The host's own work in a stream's order. It may touch no device's memory, and none of the host's that a GPU could not
/// copy.
inline cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t f, void* of) {
  return stand_in::call("cudaLaunchHostFunc", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    stand_in::Lane* const lane = stand_in::lane_of(gpu, stream);
    if (lane == nullptr) return cudaErrorInvalidResourceHandle;
    for (const stand_in::Range& r : stand_in::of_host)
      if (r.bytes() > 0 && !gpu.is_pinned(r.begin, r.bytes()))
        return stand_in::refuse(gpu, cudaErrorInvalidValue, "cudaLaunchHostFunc: it touches what is not pinned");
    stand_in::queue(gpu, *lane, "cudaLaunchHostFunc", std::exchange(stand_in::of_host, {}), [f, of] { f(of); });
    return cudaSuccess;
  });
}

// Events

inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return stand_in::call("cudaEventCreateWithFlags", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    *event = new CUevent_st{stand_in::current_device, (flags & cudaEventDisableTiming) == 0, nullptr, nullptr, {}};
    gpu.handles.insert(*event);
    return cudaSuccess;
  });
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return stand_in::call("cudaEventDestroy", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    if (gpu.handles.erase(event) == 0) return cudaErrorInvalidResourceHandle;
    delete event;
    return cudaSuccess;
  });
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr) {
  return stand_in::call("cudaEventRecord", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    stand_in::Lane* const lane = stand_in::lane_of(gpu, stream);
    if (lane == nullptr || !gpu.handles.contains(event) || lane->device != event->device)
      return stand_in::refuse(gpu, cudaErrorInvalidResourceHandle,
                              "cudaEventRecord of an event and a stream that are not of one device");
    event->capture = lane->capture;
    event->nodes = lane->tails;
    event->task = lane->capture != nullptr ? nullptr : stand_in::queue(gpu, *lane, "cudaEventRecord", {}, {});
    return cudaSuccess;
  });
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int = 0) {
  return stand_in::call("cudaStreamWaitEvent", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    stand_in::Lane* const lane = stand_in::lane_of(gpu, stream);
    if (lane == nullptr || !gpu.handles.contains(event)) return cudaErrorInvalidResourceHandle;
    if (event->capture != nullptr) return stand_in::join_capture(gpu, *lane, *event);
    if (lane->capture != nullptr) {
      lane->capture->invalid = true;
      return stand_in::refuse(gpu, cudaErrorStreamCaptureIsolation,
                              "a captured stream waits for an event that was recorded outside of the capture");
    }
    if (event->task == nullptr) return cudaSuccess;
    auto wait = std::make_shared<stand_in::Task>();
    wait->what = "cudaStreamWaitEvent";
    wait->after = {event->task};
    stand_in::queue(gpu, *lane, [wait] { return wait; });
    return cudaSuccess;
  });
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return stand_in::call("cudaEventSynchronize", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock& lock) {
    if (!gpu.handles.contains(event)) return cudaErrorInvalidResourceHandle;
    if (event->capture != nullptr) return stand_in::void_capture(gpu, *event);
    stand_in::finish(gpu, lock, event->task, "cudaEventSynchronize");
    return cudaSuccess;
  });
}
inline cudaError_t cudaEventQuery(cudaEvent_t event) {
  return stand_in::call("cudaEventQuery", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    if (!gpu.handles.contains(event)) return cudaErrorInvalidResourceHandle;
    if (event->capture != nullptr) return stand_in::void_capture(gpu, *event);
    if (stand_in::captured(gpu, "cudaEventQuery")) return cudaErrorStreamCaptureUnsupported;
    return stand_in::query(gpu, event->task);
  });
}
/// A millisecond for each thing that ran in between.
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return stand_in::call("cudaEventElapsedTime", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    for (const cudaEvent_t e : {start, end})
      if (!gpu.handles.contains(e) || !e->timed || e->task == nullptr) return cudaErrorInvalidResourceHandle;
    if (!start->task->done || !end->task->done) return cudaErrorNotReady;
    *ms = static_cast<float>(end->task->sequence) - static_cast<float>(start->task->sequence);
    return cudaSuccess;
  });
}
