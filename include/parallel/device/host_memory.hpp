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

/// Not under AddressSanitizer, which sees what is written beyond what malloc gave.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool maps_large_blocks = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool maps_large_blocks = false;
#else
inline constexpr bool maps_large_blocks = true;
#endif
#else
inline constexpr bool maps_large_blocks = true;
#endif

#if defined(__linux__) && defined(MADV_HUGEPAGE)
/// So many bytes, a multiple of huge pages, in a mapping of their own: pages that an allocator once asked for as huge
/// stay so where it gives them to others, whose memory then grows by whole ones. Null where there is no memory.
inline void* map_huge_pages(std::size_t bytes) {
  constexpr std::size_t page = account::huge_page;
  if (!maps_large_blocks) return std::aligned_alloc(page, bytes);
  void* const all = mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(all);
  const std::size_t before = (page - reinterpret_cast<std::uintptr_t>(all) % page) % page;
  if (before > 0) munmap(first, before);
  munmap(first + before + bytes, page - before);
  madvise(first + before, bytes, MADV_HUGEPAGE);
  return first + before;
}
inline void unmap_huge_pages(void* p, std::size_t bytes) {
  maps_large_blocks ? static_cast<void>(munmap(p, bytes)) : std::free(p);
}
#else
inline void* map_huge_pages(std::size_t bytes) { return std::aligned_alloc(account::huge_page, bytes); }
inline void unmap_huge_pages(void* p, std::size_t) { std::free(p); }
#endif

/// A zeroed block, touched once: a first touch of a page costs more than a step's arithmetic on it. Large ones lie in
/// huge pages.
class HostMemory {
 public:
  HostMemory() = default;
  explicit HostMemory(std::int64_t bytes) : bytes_(bytes) {
    if (bytes <= 0) return;
    const auto whole = static_cast<std::size_t>(account::block_on_cpu(bytes));
    if (account::page_of(bytes) == account::huge_page)
      data_ = {static_cast<std::byte*>(map_huge_pages(whole)), Free{whole}};
    else
      data_ = {static_cast<std::byte*>(std::aligned_alloc(account::line, whole)), Free{0}};
    if (!data_) throw std::bad_alloc();
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
    std::size_t mapped;  // bytes; 0: it was allocated
    void operator()(std::byte* p) const { mapped > 0 ? unmap_huge_pages(p, mapped) : std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_{nullptr, Free{0}};
  std::int64_t bytes_ = 0;
};

}  // namespace parallel::internals

namespace parallel {
using internals::HostMemory;
}  // namespace parallel
