// What is asked of `new`, counted thread by thread. One unit of a program includes it: it replaces all forms of both.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <thread>

namespace news {

inline constexpr std::size_t least_line = 64;
/// Bytes that a thread has asked `new` for and not given back, and the most at one time.
struct OfNews {
  std::int64_t now = 0, most = 0;
  void add(std::int64_t bytes) {
    now += bytes;
    most = now > most ? now : most;
  }
};
inline thread_local OfNews of_news;

/// In front of what is given stands how much it is.
inline void* give(std::size_t size, std::size_t aligned_to) {
  const std::size_t line = aligned_to < least_line ? least_line : aligned_to;
  auto* const block = static_cast<std::byte*>(std::aligned_alloc(line, (size + 2 * line - 1) / line * line));
  if (block == nullptr) throw std::bad_alloc();
  of_news.add(static_cast<std::int64_t>(size));
  ::new (block) std::size_t(size);
  return block + line;
}
inline void take(void* given, std::size_t aligned_to) {
  if (given == nullptr) return;
  std::byte* const block = static_cast<std::byte*>(given) - (aligned_to < least_line ? least_line : aligned_to);
  of_news.add(-static_cast<std::int64_t>(*reinterpret_cast<std::size_t*>(block)));
  std::free(block);
}

inline void* give_or_none(std::size_t size, std::size_t aligned_to) noexcept {
  try {
    return give(size, aligned_to);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

/// What a function asks for on a thread that has no scratch yet.
template <class F>
std::int64_t taken_by(F f) {
  std::int64_t most = 0;
  std::thread([&] {
    of_news = {};
    f();
    most = of_news.most;
  }).join();
  return most;
}

}  // namespace news

// All of them: what is left out a sanitizer brings, and with it all the others.
void* operator new(std::size_t size) { return news::give(size, 1); }
void* operator new[](std::size_t size) { return news::give(size, 1); }
void* operator new(std::size_t size, std::align_val_t line) { return news::give(size, static_cast<std::size_t>(line)); }
void* operator new[](std::size_t size, std::align_val_t line) {
  return news::give(size, static_cast<std::size_t>(line));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return news::give_or_none(size, 1); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return news::give_or_none(size, 1); }
void* operator new(std::size_t size, std::align_val_t line, const std::nothrow_t&) noexcept {
  return news::give_or_none(size, static_cast<std::size_t>(line));
}
void* operator new[](std::size_t size, std::align_val_t line, const std::nothrow_t&) noexcept {
  return news::give_or_none(size, static_cast<std::size_t>(line));
}
void operator delete(void* given) noexcept { news::take(given, 1); }
void operator delete[](void* given) noexcept { news::take(given, 1); }
void operator delete(void* given, std::size_t) noexcept { news::take(given, 1); }
void operator delete[](void* given, std::size_t) noexcept { news::take(given, 1); }
void operator delete(void* given, const std::nothrow_t&) noexcept { news::take(given, 1); }
void operator delete[](void* given, const std::nothrow_t&) noexcept { news::take(given, 1); }
void operator delete(void* given, std::align_val_t line) noexcept { news::take(given, static_cast<std::size_t>(line)); }
void operator delete[](void* given, std::align_val_t line) noexcept {
  news::take(given, static_cast<std::size_t>(line));
}
void operator delete(void* given, std::size_t, std::align_val_t line) noexcept {
  news::take(given, static_cast<std::size_t>(line));
}
void operator delete[](void* given, std::size_t, std::align_val_t line) noexcept {
  news::take(given, static_cast<std::size_t>(line));
}
void operator delete(void* given, std::align_val_t line, const std::nothrow_t&) noexcept {
  news::take(given, static_cast<std::size_t>(line));
}
void operator delete[](void* given, std::align_val_t line, const std::nothrow_t&) noexcept {
  news::take(given, static_cast<std::size_t>(line));
}
