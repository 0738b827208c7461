// Indices of elements, and how they are divided.
#pragma once
#include <cstdint>

#include <parallel/device/cuda/body/block.hpp>

namespace parallel::internals::cuda {

using Index = std::int64_t;

/// A number, known before the launch, by which indices are divided: those below 2^31, as almost all are, by a product
/// and a shift (Granlund and Montgomery, 1994).
class Divisor {
 public:
  Divisor() = default;  // by 1
  explicit Divisor(Index by) : by_(by < 1 ? 1 : by) {
    if (by_ >> 31 != 0) return;
    while (Index{1} << shift_ < by_) ++shift_;
    factor_ =
        static_cast<std::uint32_t>((std::uint64_t{1} << 32) * static_cast<std::uint64_t>((Index{1} << shift_) - by_) /
                                       static_cast<std::uint64_t>(by_) +
                                   1);
  }

  PARALLEL_DEVICE Index by() const { return by_; }
  PARALLEL_DEVICE Index quotient(Index n) const {
    if ((n | by_) >> 31 != 0) return n / by_;
    const auto small = static_cast<std::uint32_t>(n);
    return (static_cast<std::uint32_t>(std::uint64_t{small} * factor_ >> 32) + small) >> shift_;
  }
  /// Leaves the quotient in n, and returns the remainder.
  PARALLEL_DEVICE Index divide(Index& n) const {
    const Index q = quotient(n), rest = n - q * by_;
    n = q;
    return rest;
  }

 private:
  Index by_ = 1;
  std::uint32_t factor_ = 1, shift_ = 0;
};

}  // namespace parallel::internals::cuda
