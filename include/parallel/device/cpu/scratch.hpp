// Memory that kernels work in: one piece a thread and purpose, which grows to what is needed and is kept. What a call
// needs at most, account/cpu.hpp says.
#pragma once
#include <cstddef>
#include <memory>
#include <new>

#include <parallel/account/cpu.hpp>

namespace parallel::internals::cpu {

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
/// Lets every piece of this thread be as large as a plan says, so that no step asks for memory, and none is left that
/// was too small.
inline void reserve(const account::Scratch& all) {
  const auto bytes = [&](Purpose p) { return static_cast<std::size_t>(all.pieces[static_cast<int>(p)]); };
  scratch_bytes<Purpose::packing>(bytes(Purpose::packing));
  scratch_bytes<Purpose::scores>(bytes(Purpose::scores));
  scratch_bytes<Purpose::angles>(bytes(Purpose::angles));
  scratch_bytes<Purpose::widened>(bytes(Purpose::widened));
  scratch_bytes<Purpose::unfolded>(bytes(Purpose::unfolded));
  scratch_bytes<Purpose::rows>(bytes(Purpose::rows));
}
/// Room for n elements.
template <Purpose purpose, class T>
T* scratch(std::size_t n) {
  return reinterpret_cast<T*>(scratch_bytes<purpose>(n * sizeof(T)));
}

}  // namespace parallel::internals::cpu
