// Many random numbers by counter, for tensors: as random_uniform, and normal ones.
#pragma once
#include <cstdint>

#include <parallel/device/random.hpp>
#include <parallel/meta/library.hpp>

namespace parallel::internals {

/// What is drawn: normal numbers with mean 0 and deviation `scale`, or such as are even between -scale and scale.
struct Draw {
  std::uint64_t seed = 0, stream = 0;
  bool normal = true;
  double scale = 1;
};
/// Writes n numbers, those of the indices from `first` on. Each depends on its own index alone, and not on who draws
/// how many: the same compiler with the same flags makes the same bits on every machine.
PARALLEL_SHARED PARALLEL_INLINE void draw(const Draw& what, std::uint64_t first, std::int64_t n, float* to);
PARALLEL_SHARED PARALLEL_INLINE void draw(const Draw& what, std::uint64_t first, std::int64_t n, double* to);
/// One, with mean 0 and deviation 1 (Box and Muller, 1958).
PARALLEL_SHARED PARALLEL_INLINE double random_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

}  // namespace parallel::internals

namespace parallel {
using internals::random_normal;
}  // namespace parallel

#ifndef PARALLEL_LIBRARY
#include <parallel/device/draw.ipp>
#endif
