// Copies of the stand-in, which know where their ends lie.
#pragma once
#include "graph.hpp"

namespace stand_in {

/// Rows of so many bytes, so far apart at either end.
struct Copy {
  std::byte* to;
  std::size_t to_pitch;
  const std::byte* from;
  std::size_t from_pitch, width, rows;
  void operator()() const {
    for (std::size_t i = 0; i < rows; ++i) std::memcpy(to + i * to_pitch, from + i * from_pitch, width);
  }
};

/// Empty where the ends lie as the kind says and what they hold is allocated; else what is wrong.
inline std::string fault_of(Gpu& gpu, const Copy& c, enum cudaMemcpyKind kind) {
  const auto end = [&](const std::byte* p, std::size_t pitch, bool device, const char* name) -> std::string {
    const int at = gpu.device_of(p);
    if (kind != cudaMemcpyDefault && device != (at >= 0))
      return std::string("the ") + name + " lies on the " + (at >= 0 ? "device" : "host");
    if (at >= 0 && !gpu.memory(at).holds(p, (c.rows - 1) * pitch + c.width))
      return std::string("the ") + name + " is not all of it allocated";
    return "";
  };
  if (c.width > c.to_pitch || c.width > c.from_pitch) return "rows are longer than they are apart";
  const std::string to =
      end(c.to, c.to_pitch, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice, "destination");
  return !to.empty()
             ? to
             : end(c.from, c.from_pitch, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice, "source");
}

/// Pageable memory is read before the call returns; to write it, the host waits, as on a device.
inline cudaError_t copy(Gpu& gpu, Gpu::Lock& lock, Copy c, enum cudaMemcpyKind kind, cudaStream_t stream,
                        const char* function) {
  Lane* const lane = lane_of(gpu, stream);
  if (lane == nullptr) return cudaErrorInvalidResourceHandle;
  if (c.width == 0 || c.rows == 0) return cudaSuccess;
  if (const std::string wrong = fault_of(gpu, c, kind); !wrong.empty())
    return refuse(gpu, cudaErrorInvalidValue, std::string(function) + ": " + wrong);
  const bool to_device = gpu.device_of(c.to) >= 0, from_device = gpu.device_of(c.from) >= 0;
  const bool pageable_to = !to_device && !gpu.is_pinned(c.to, (c.rows - 1) * c.to_pitch + c.width);
  const bool pageable_from = !from_device && !gpu.is_pinned(c.from, (c.rows - 1) * c.from_pitch + c.width);
  if ((pageable_to || pageable_from) && lane->capture != nullptr) {
    lane->capture->invalid = true;
    return refuse(gpu, cudaErrorStreamCaptureUnsupported,
                  std::string(function) + " of pageable memory in a capture; take memory of cudaMallocHost");
  }
  std::shared_ptr<std::vector<std::byte>> staged;
  std::vector<Range> ranges;
  if (pageable_from) {
    staged = std::make_shared<std::vector<std::byte>>(c.rows * c.width);
    Copy{staged->data(), c.width, c.from, c.from_pitch, c.width, c.rows}();
    c.from = staged->data();
    c.from_pitch = c.width;
  } else {
    ranges.push_back(reads(c.from, c.width, c.from_pitch, c.rows));
  }
  if (!pageable_to) ranges.push_back(writes(c.to, c.width, c.to_pitch, c.rows));
  const TaskPointer task = queue(
      gpu, *lane, function, ranges, [c, staged] { c(); }, true);
  if (pageable_to) finish(gpu, lock, task, function);
  return cudaSuccess;
}

}  // namespace stand_in

inline cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                     std::size_t width, std::size_t height, enum cudaMemcpyKind kind,
                                     cudaStream_t stream = nullptr) {
  return stand_in::call("cudaMemcpy2DAsync", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock& lock) {
    return stand_in::copy(
        gpu, lock,
        {static_cast<std::byte*>(to), to_pitch, static_cast<const std::byte*>(from), from_pitch, width, height}, kind,
        stream, "cudaMemcpy2DAsync");
  });
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, enum cudaMemcpyKind kind,
                                   cudaStream_t stream = nullptr) {
  return stand_in::call("cudaMemcpyAsync", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock& lock) {
    return stand_in::copy(gpu, lock,
                          {static_cast<std::byte*>(to), bytes, static_cast<const std::byte*>(from), bytes, bytes, 1},
                          kind, stream, "cudaMemcpyAsync");
  });
}
/// On stream 0, which waits for no other. The host waits where its own memory is written, or is read in place.
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, enum cudaMemcpyKind kind) {
  return stand_in::call("cudaMemcpy", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock& lock) {
    if (stand_in::captured(gpu, "cudaMemcpy")) return cudaErrorStreamCaptureUnsupported;
    const cudaError_t error = stand_in::copy(
        gpu, lock, {static_cast<std::byte*>(to), bytes, static_cast<const std::byte*>(from), bytes, bytes, 1}, kind,
        nullptr, "cudaMemcpy");
    const bool waits = gpu.device_of(to) < 0 || gpu.is_pinned(from, bytes);
    if (waits) stand_in::finish(gpu, lock, stand_in::lane_of(gpu, nullptr)->last, "cudaMemcpy");
    return error;
  });
}
inline cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t stream = nullptr) {
  return stand_in::call("cudaMemsetAsync", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    stand_in::Lane* const lane = stand_in::lane_of(gpu, stream);
    if (lane == nullptr) return cudaErrorInvalidResourceHandle;
    const int device = gpu.device_of(p);
    if (bytes > 0 && (device < 0 || !gpu.memory(device).holds(p, bytes)))
      return stand_in::refuse(gpu, cudaErrorInvalidValue, "cudaMemset of what is not all of it device memory");
    if (bytes > 0)
      stand_in::queue(
          gpu, *lane, "cudaMemsetAsync", {stand_in::writes(p, bytes)}, [=] { std::memset(p, value, bytes); }, true);
    return cudaSuccess;
  });
}
/// The host does not wait.
inline cudaError_t cudaMemset(void* p, int value, std::size_t bytes) {
  return cudaMemsetAsync(p, value, bytes, nullptr);
}
