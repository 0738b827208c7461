// Memory that kernels work in: one piece a thread and purpose, which grows in the first step and is kept. What a call needs at most,
// account/cpu.hpp says.
#pragma once
#include <cstddef>
#include <memory>
#include <new>

#include <parallel/account/cpu.hpp>

namespace parallel::cpu {

using account::cpu::Purpose;

/// A piece of so many bytes, aligned to cache lines. What stood there before is undefined.
template <Purpose purpose>
std::byte* scratch_bytes(std::size_t bytes) {
  constexpr std::align_val_t line{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, line); }
  };
  thread_local std::unique_ptr<std::byte, Free> memory;
  thread_local std::size_t size = 0;
  if (size < bytes) {
    size = 0;
    memory.reset();
    memory.reset(static_cast<std::byte*>(::operator new(bytes, line)));
    size = bytes;
  }
  return memory.get();
}
/// Room for n elements.
template <Purpose purpose, class T>
T* scratch(std::size_t n) {
  return reinterpret_cast<T*>(scratch_bytes<purpose>(n * sizeof(T)));
}

}  // namespace parallel::cpu
