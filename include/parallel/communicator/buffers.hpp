// How a rank's thread touches buffers, its own and those of others that it meets: memory of the host, or of a device
// that is asked to.
#pragma once
#include <cstring>
#include <memory>

#include <parallel/communicator/ordered_sum.hpp>

namespace parallel::internals {

/// Memory of the host: what was computed is there, and what is asked for is done at once. Devices override all of it.
class Buffers {
 public:
  Buffers() = default;
  Buffers(const Buffers&) = delete;
  virtual ~Buffers() = default;
  /// Whether this thread may read them itself.
  virtual bool of_host() const { return true; }
  /// Before others may touch the buffers of an exchange: waits until this rank's work on them is done.
  virtual void ready() {}
  /// As ordered_sum.
  virtual void sum(DType dtype, bool maximum, void* const* outs, int copies, const void* const* terms, int n,
                   std::int64_t count, std::int64_t past_caches_from) {
    ordered_sum(dtype, maximum, outs, copies, terms, n, count, 0, past_caches_from);
  }
  virtual void copy(void* to, const void* from, std::int64_t bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  /// Waits until the sums and copies are done.
  virtual void done() {}
};

}  // namespace parallel::internals
