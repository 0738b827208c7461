// Memory that kernels work in: one piece a thread and purpose, which grows in the first step and is kept.
#pragma once
#include <cstddef>
#include <memory>
#include <new>

namespace parallel::cpu {

/// What scratch memory is for: pieces of different purposes are in use at the same time.
enum class Purpose { packing, scores, angles, widened };

/// Room for n elements, aligned to cache lines. What stood there before is undefined.
template <Purpose purpose, class T>
T* scratch(std::size_t n) {
  constexpr std::align_val_t line{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, line); }
  };
  thread_local std::unique_ptr<std::byte, Free> memory;
  thread_local std::size_t size = 0;
  if (size < n * sizeof(T)) {
    size = 0;
    memory.reset();
    memory.reset(static_cast<std::byte*>(::operator new(n * sizeof(T), line)));
    size = n * sizeof(T);
  }
  return reinterpret_cast<T*>(memory.get());
}

}  // namespace parallel::cpu
