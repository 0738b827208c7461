// Memory of the stand-in's devices: host memory that only the stand-in may touch, and only while it runs what was
// queued, if it is guarded.
#pragma once
#include <cstddef>
#include <cstring>
#include <map>
#include <stdexcept>
#include <sys/mman.h>
#include <vector>

namespace stand_in {

/// Of one device: a range of addresses that is closed to everybody until `open`. Addresses are not used twice while
/// anything is allocated, so that a pointer to freed memory is found out.
class Memory {
 public:
  static constexpr std::size_t reserved = std::size_t{1} << 36, page = 4096, huge_page = 2 << 20;

  Memory(std::size_t bytes, bool guarded) : size_(bytes), open_(!guarded), guarded_(guarded) {
    void* const p = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::runtime_error("stand_in: no addresses are left for a device");
    base_ = static_cast<std::byte*>(p);
    madvise(p, reserved, MADV_HUGEPAGE);  // large blocks are opened and closed quickly
  }
  Memory(const Memory&) = delete;
  ~Memory() { munmap(base_, reserved); }

  /// Fresh memory is full of NaN. Null where it does not fit.
  std::byte* allocate(std::size_t bytes) {
    if (bytes > size_ - used_) return nullptr;
    if (live_.empty()) next_ = 0;
    const std::size_t room = bytes == 0 ? page : (bytes + page - 1) / page * page;
    if (bytes >= huge_page) next_ += huge_page - reinterpret_cast<std::uintptr_t>(base_ + next_) % huge_page;
    if (next_ > reserved || room > reserved - next_) return nullptr;
    std::byte* const p = base_ + next_;
    next_ += room;
    used_ += bytes;
    live_[p] = bytes;
    mprotect(p, room, PROT_READ | PROT_WRITE);
    std::memset(p, 0xff, bytes);
    if (!open_) mprotect(p, room, PROT_NONE);
    return p;
  }
  bool free(void* p) {
    const auto found = live_.find(static_cast<std::byte*>(p));
    if (found == live_.end()) return false;
    madvise(p, (found->second + page - 1) / page * page, MADV_DONTNEED);
    used_ -= found->second;
    live_.erase(found);
    return true;
  }
  void open(bool yes) {
    if (!guarded_) return;
    if (open_ != yes && next_ > 0) mprotect(base_, next_, yes ? PROT_READ | PROT_WRITE : PROT_NONE);
    open_ = yes;
  }

  bool contains(const void* p) const { return p >= base_ && p < base_ + reserved; }
  /// Whether all of the range lies in one allocation.
  bool holds(const void* p, std::size_t bytes) const {
    auto after = live_.upper_bound(static_cast<std::byte*>(const_cast<void*>(p)));
    if (after == live_.begin()) return false;
    const auto& [begin, size] = *--after;
    const auto from = static_cast<std::size_t>(static_cast<const std::byte*>(p) - begin);
    return from <= size && bytes <= size - from;
  }
  std::size_t size() const { return size_; }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_ = nullptr;
  std::size_t size_, used_ = 0, next_ = 0;
  std::map<std::byte*, std::size_t> live_;
  bool open_, guarded_;
};

}  // namespace stand_in
