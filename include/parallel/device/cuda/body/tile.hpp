// Rows of a matrix in shared memory, and how they come there beside other work.
#pragma once
#include <cstring>

#include <parallel/device/cuda/body/element.hpp>
#if !defined(__CUDACC__)
#include <vector>
#endif

namespace parallel::internals::cuda {

/// Rows in the GPU's memory, `size` elements each, `stride` apart.
template <class T>
struct MatrixRows {
  T* data;
  std::int64_t stride;
  int count, size;
  PARALLEL_DEVICE T* row(int r) const { return data + r * stride; }
};

/// Rows of `size` elements in shared memory, 16 bytes apart: so no two of eight rows' 16 bytes are in the same banks.
template <class T, int size>
struct Tile {
  static constexpr int stride = size + static_cast<int>(16 / sizeof(T));
  static constexpr std::size_t bytes(int rows) { return static_cast<std::size_t>(rows * stride) * sizeof(T); }
  T* data;
  PARALLEL_DEVICE T* row(int r) const { return data + r * stride; }
  PARALLEL_DEVICE Tile from(int r) const { return {row(r)}; }
};

/// Copies of 16 bytes from the GPU's memory to shared memory that run beside what follows, until they are waited for.
class Copies {
 public:
  /// Zeros where it `is` not; then nothing is read.
  PARALLEL_DEVICE void add(void* to, const void* from, bool is) {
#if defined(__CUDA_ARCH__)
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(is ? 16 : 0)
                 : "memory");
#elif !defined(__CUDACC__)
    running_.push_back({to, from, is});
#endif
  }
  /// Until those of this thread are done; what others' have copied is seen behind `sync`.
  PARALLEL_DEVICE void wait() {
#if defined(__CUDA_ARCH__)
    asm volatile("cp.async.wait_all;" ::: "memory");
#elif !defined(__CUDACC__)
    for (const Copy& c : running_) c.is ? std::memcpy(c.to, c.from, 16) : std::memset(c.to, 0, 16);
    running_.clear();
#endif
  }

 private:
#if !defined(__CUDACC__)
  struct Copy {
    void* to;
    const void* from;
    bool is;
  };
  std::vector<Copy> running_;  // as late as can be
#endif
};

/// Rows [first, first + count) to a tile; zeros where there are none, and behind their ends. `packed`: all of them
/// begin and end at multiples of 16 bytes, and come when `copies` has been waited for.
template <int count, class T, int size, class Block>
PARALLEL_DEVICE void stage(const Block& block, Copies& copies, bool packed, const MatrixRows<const T>& from, int first,
                           const Tile<T, size>& to) {
  constexpr int several = pack_elements<T>, packs = size / several;
  constexpr int across = packs < Block::threads ? packs : Block::threads, at_once = Block::threads / across;
  static_assert(count % at_once == 0 && packs % across == 0);
  if (packed)
    block.each(Block::threads, [&](int thread) {
      PARALLEL_UNROLL
      for (int rows = 0; rows < count; rows += at_once) PARALLEL_UNROLL
      for (int of = 0; of < packs; of += across) {
        const int r = rows + thread / across, column = (of + thread % across) * several;
        copies.add(to.row(r) + column, from.row(first + r) + column, first + r < from.count && column < from.size);
      }
    });
  else
    block.each(count * size, [&](int i) {
      const int r = i / size, column = i % size;
      to.row(r)[column] = first + r < from.count && column < from.size ? from.row(first + r)[column] : T{};
    });
}
/// And back: those rows of a tile that there are.
template <class T, int size, class Block>
PARALLEL_DEVICE void unstage(const Block& block, bool packed, const Tile<T, size>& from, const MatrixRows<T>& to,
                             int first, int count) {
  constexpr int several = pack_elements<T>, packs = size / several;
  const auto is = [&](int r, int column) { return first + r < to.count && column < to.size; };
  if (packed)
    block.each(count * packs, [&](int i) {
      const int r = i / packs, column = i % packs * several;
      if (is(r, column))
        *reinterpret_cast<Pack<T, several>*>(to.row(first + r) + column) =
            *reinterpret_cast<const Pack<T, several>*>(from.row(r) + column);
    });
  else
    block.each(count * size, [&](int i) {
      const int r = i / size, column = i % size;
      if (is(r, column)) to.row(first + r)[column] = from.row(r)[column];
    });
}

}  // namespace parallel::internals::cuda
