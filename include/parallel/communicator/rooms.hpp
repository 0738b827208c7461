// Memory for what a process is sent while a sum over ranks is under way.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace parallel::internals {

/// Rooms that are lent, and kept for the next: of those that are free the smallest that is large enough, else a new
/// one.
class Rooms {
 public:
  std::byte* take(std::int64_t bytes) {
    Room* best = nullptr;
    for (Room& r : rooms_)
      if (!r.lent && r.bytes >= bytes && (best == nullptr || r.bytes < best->bytes)) best = &r;
    if (best == nullptr)
      best = &rooms_.emplace_back(
          Room{std::unique_ptr<std::byte[]>(new std::byte[static_cast<std::size_t>(bytes)]), bytes, false});
    best->lent = true;
    return best->memory.get();
  }
  void give_back(const std::byte* memory) {
    for (Room& r : rooms_)
      if (r.memory.get() == memory) r.lent = false;
  }

 private:
  struct Room {
    std::unique_ptr<std::byte[]> memory;
    std::int64_t bytes;
    bool lent;
  };
  std::vector<Room> rooms_{};
};

}  // namespace parallel::internals
