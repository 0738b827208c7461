// A rank's host beside its device: its memory, what computes there, and copies between the two memories.
#pragma once
#include <cstring>
#include <span>

#include <parallel/device/device.hpp>

namespace parallel::internals {

/// The host of a device whose memory is the host's: what is offloaded is copied to another block, and is there at once.
///
/// A device with a memory of its own says by which class its host is used, `HostSide`. What that is asked for happens
/// as if in the order of the calls: what is computed here, copies that are started and waited for, and what the device
/// is asked for.
template <class D>
class OwnHost {
 public:
  explicit OwnHost(const D& device) : device_(device) {}
  /// What a block of the host's memory is held by. n bytes, all zero.
  using Memory = MemoryOf<D>;
  static Memory memory(const D& device, std::int64_t bytes) { return device.memory(bytes); }
  /// What computes here.
  const D& device() const { return device_; }

  void begin_step() {}
  void end_step() {}
  /// By kernels of its device. What is not to be updated the executor does not ask for.
  void compute(std::span<const Launch> launches) {
    for (const Launch& launch : launches) internals::compute(device_, launch);
  }
  /// Copies of one move, by its node: from the device to the host where `offloads`, else back.
  void start(int, void* to, const void* from, std::int64_t bytes, bool) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void wait(int) {}

 private:
  D device_;
};

template <class D>
struct HostOf {
  using type = OwnHost<D>;
};
template <class D>
requires requires { typename D::HostSide; }
struct HostOf<D> {
  using type = typename D::HostSide;
};
/// In what the parameters of a rank lie that are Stored<host>, beside those in a device's Memory.
template <class Memory>
struct BesideOf {
  using type = Memory;
};

}  // namespace parallel::internals
