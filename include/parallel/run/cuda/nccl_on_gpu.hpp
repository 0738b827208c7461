// Ranks under NCCL that compute on their GPUs: exchanges follow the device's stream, and who waits for the device sees
// when they fail.
#pragma once
#include <parallel/communicator/nccl.hpp>
#include <parallel/device/cuda/device.hpp>

namespace parallel::internals {

/// Called by an executor before its groups are made.
template <class... T>
void attach(Nccl& world, const CudaOf<T...>& device) {
  if (device.gpu().number() != world.gpu())
    throw GpuFailed("rank " + std::to_string(world.rank()) + " computes on GPU " +
                    std::to_string(device.gpu().number()) + ", but exchanges what lies on GPU " +
                    std::to_string(world.gpu()) + "; make its device with the number world.gpu()");
  world.compute(device.gpu().stream());
  device.gpu().waits_by(world.waiter());
}

}  // namespace parallel::internals
