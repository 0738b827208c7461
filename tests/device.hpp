// The CPU device, compiled once for all tests: its kernels are the largest part of a test's compile time.
#pragma once
#include <parallel/device/kernel.hpp>

namespace tests {

struct Device {
  parallel::Kernel kernel(const parallel::Operation& operation, const parallel::Call& call) const;
  static void copy(const parallel::View& to, const parallel::View& from);
  static void zero(const parallel::View& view);
  static void copy_overlap(const parallel::View& from, const parallel::View& to);
  static void pack(const void* from, void* to, std::int64_t outer, std::int64_t n, std::int64_t inner, int bytes);
  static void unpack(const void* from, void* to, std::int64_t outer, std::int64_t n, std::int64_t inner, int bytes);
};

}  // namespace tests
