// Host memory that a run holds: one block per purpose, touched once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include <parallel/account/cpu.hpp>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace parallel::internals {

/// A zeroed block, touched once: a first touch of a page costs more than a step's arithmetic on it. Large ones ask for
/// huge pages.
class HostMemory {
 public:
  HostMemory() = default;
  explicit HostMemory(std::int64_t bytes) : bytes_(bytes) {
    if (bytes <= 0) return;
    const auto page = static_cast<std::size_t>(account::page_of(bytes)),
               whole = static_cast<std::size_t>(account::block_on_cpu(bytes));
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(page, whole)));
    if (!data_) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (page == account::huge_page) madvise(data_.get(), whole, MADV_HUGEPAGE);
#endif
    std::memset(data_.get(), 0, whole);
  }
  std::byte* data() const { return data_.get(); }
  std::int64_t bytes() const { return bytes_; }

  /// Calls f(host) where bytes [offset, offset + bytes) can be read and written.
  template <class F>
  void change(std::int64_t offset, std::int64_t, F f) {
    f(data() + offset);
  }
  template <class F>
  void look(std::int64_t offset, std::int64_t, F f) const {
    f(static_cast<const std::byte*>(data() + offset));
  }
  /// As numbers that the host writes and kernels read: here they are the same.
  std::byte* host() const { return data(); }
  void send() {}

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_{};
  std::int64_t bytes_ = 0;
};

}  // namespace parallel::internals

namespace parallel {
using internals::HostMemory;
}  // namespace parallel
