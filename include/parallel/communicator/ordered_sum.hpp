// Sums and maxima of several ranks' terms, taken in rank order, so that every backend gives the same bits.
#pragma once
#include <cstdint>
#include <string>

#include <parallel/algebra/type.hpp>
#include <parallel/meta/library.hpp>

namespace parallel::internals {

/// Bytes that caches do not keep until they are read again.
inline constexpr std::int64_t more_than_caches = 8 << 20;

/// Writes the sum (or the maximum) of n terms of `count` elements to each of `copies` buffers. A buffer may be one of
/// the terms. Halves are added in float, and the sum is rounded once. `all`: elements of the whole, where this is one
/// call of several, one behind the other. Where all copies have `past_caches_from` bytes and more they are written past
/// the caches, but for halves, over a term, and where not aligned to 16 bytes.
PARALLEL_SHARED PARALLEL_INLINE void ordered_sum(DType dtype, bool maximum, void* const* outs, int copies,
                                                 const void* const* terms, int n, std::int64_t count,
                                                 std::int64_t all = 0,
                                                 std::int64_t past_caches_from = more_than_caches);

/// With what numbers are made: compiler and vectors, which decide the last bits.
PARALLEL_SHARED PARALLEL_INLINE std::string numerics();

}  // namespace parallel::internals

#ifndef PARALLEL_LIBRARY
#include <parallel/communicator/ordered_sum.ipp>
#endif
