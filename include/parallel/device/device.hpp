// What a device is: memory, kernels, and moves of elements, in an order of its own.
#pragma once
#include <concepts>
#include <cstddef>
#include <utility>

#include <parallel/account/account.hpp>
#include <parallel/device/kernel.hpp>

namespace parallel::internals {

/// What computes, and holds what is computed with. Its work happens in the order in which it was asked for. Where
/// `asynchronous`, kernels and moves of elements return before they are done, and only `read` and `finish` wait; its
/// addresses mean nothing to the host.
///
/// A device that can `capture(f)` what f asks of it as a `Graph` replays a step by one call.
///
/// One that `keeps_packed()` is given room for the weights that a step multiplies by several times, `make_room(bytes)`,
/// told of each such product, `keep_packed(call, number, slots, stride, bytes)`, and when a step begins, `begin_step()`.
///
/// Models: CpuOf (cpu/device.hpp), CudaOf (cuda/device.hpp).
template <class D>
concept Device = std::copyable<D> && requires(const D& d, const Operation& o, Call& c, std::span<Call> calls, void* to,
                                              const void* from, const View& view, std::int64_t n) {
  { D::account } -> std::convertible_to<DeviceAccount>;  // what it takes beside a plan's tensors
  { D::asynchronous } -> std::convertible_to<bool>;
  // prepares a call; nullptr where there is no kernel
  { d.kernel(o, c) } -> std::same_as<Kernel>;
  // prepares calls that follow each other, of which `kernel` may have prepared some; none where they are to be computed
  // one by one. Asked with one call: whether there is a kernel for any number of such calls, of which it sees the
  // others when it computes. A device that is made of another and has kernels of its own answers this, too.
  { d.fused(calls) } -> std::same_as<FusedKernel>;
  { d.prepare(c) } -> std::same_as<void>;                // a call of the three below
  { d.memory(n).data() } -> std::same_as<std::byte*>;    // n bytes, all zero
  { d.mirrored(n).host() } -> std::same_as<std::byte*>;  // n bytes that the host writes and kernels read
  { D::copy(c) } -> std::same_as<void>;                  // operand 0 to result 0
  { D::zero(c) } -> std::same_as<void>;                  // result 0
  // what two parts of one full tensor have in common; the rest is zero
  { D::copy_overlap(c) } -> std::same_as<void>;
  // [outer][n][inner] elements of so many bytes to [n][outer][inner]
  { d.pack(from, to, n, n, n, 4) } -> std::same_as<void>;
  { d.unpack(from, to, n, n, n, 4) } -> std::same_as<void>;  // and back
  // as copy_overlap, from a part that the host holds, and may then change
  { d.take(view, view) } -> std::same_as<void>;
  // n bytes of the device to the host, when all before is done
  { d.read(to, from, n) } -> std::same_as<void>;
  { d.finish() } -> std::same_as<void>;  // waits until all that was asked for is done
};

/// Computes a launch by a device, which may have a way of its own.
template <class D>
void compute(const D& device, const Launch& launch) {
  if constexpr (requires { device.compute(launch); })
    device.compute(launch);
  else
    launch.run();
}

/// What a device's memory is held by.
template <class D>
using MemoryOf = decltype(std::declval<const D&>().memory(0));
struct NoGraph {
  explicit operator bool() const { return false; }
  void launch() const {}
};
template <class D>
struct GraphOf {
  using type = NoGraph;
};
template <class D>
requires requires { typename D::Graph; }
struct GraphOf<D> {
  using type = typename D::Graph;
};
template <class D>
using MirroredOf = decltype(std::declval<const D&>().mirrored(0));

}  // namespace parallel::internals

namespace parallel {
using internals::Device;
using internals::MemoryOf;
}  // namespace parallel
