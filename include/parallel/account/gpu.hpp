// What a GPU takes beside the tensors of a plan: one workspace, whatever runs. What the driver takes, a context and its
// code, is not counted.
#pragma once
#include <parallel/account/account.hpp>

namespace parallel::internals::account {

namespace gpu {
/// for cuBLASLt: what it asks for on Hopper; kernels cut what they do to fit
inline constexpr std::int64_t workspace = 32 << 20;
constexpr std::int64_t block(std::int64_t bytes) { return bytes; }
constexpr Scratch scratch_of(const Extents&) { return {{workspace}}; }
}  // namespace gpu

inline constexpr DeviceAccount on_gpu{"GPU", gpu::block, gpu::scratch_of};

}  // namespace parallel::internals::account
