// The blocks of memory that a rank has, and where in them a value lies.
#pragma once
#include <cstdint>

#include <parallel/plan/packing.hpp>
#include <parallel/plan/view.hpp>

namespace parallel::internals {

/// The block of memory that a value lies in, of the device or of its host. All but the arenas outlive the step.
enum class MemoryBlock : std::uint8_t {
  none,
  parameter,
  state,
  input,
  scalars,
  arena,
  host_parameter,
  host_state,
  host_arena
};
inline constexpr int memory_blocks = 9;
constexpr bool of_host(MemoryBlock b) { return b >= MemoryBlock::host_parameter; }
/// The address of a value: block + offset + stride * slot, where slot follows a loop's index (0 to count - 1).
struct Storage {
  MemoryBlock block = MemoryBlock::none;
  std::int64_t offset = 0;
  std::int64_t stride = 0;  ///< 0: one slot
  int loop = 0;             ///< the loop whose index chooses the slot
  bool of_chunk = false;    ///< slots count from the first layer of a stage's chunk, not of the stage
  std::int64_t lane = 0;    ///< bytes from one lane to the next of what parts of a stage's work hand to each other
  int shift = 0;            ///< slot = (iteration + shift) mod modulo
  int modulo = 0;           ///< 0: slot = index; else iterations are counted from 0 also where the loop goes back
  int region = 0;
  bool operator==(const Storage&) const = default;
};

struct Memory {
  std::int64_t arena = 0;                ///< bytes of the arena: the largest sum of what lives at one time, as packed
  std::int64_t host_arena = 0;           ///< of the host's
  std::int64_t blocks[memory_blocks]{};  ///< bytes of each persistent block, by MemoryBlock
  /// bytes by use, of the device and of the host; arena uses are counted whole, though they share room over time
  std::int64_t by_use[uses]{};
  std::int64_t host_by_use[uses]{};

  constexpr std::int64_t of(Use use) const { return by_use[static_cast<int>(use)]; }
  template <class... Asked>
  constexpr std::int64_t operator()(const Asked&...) const {
    static_assert(sizeof...(Asked) > 99,
                  "parallel: a plan's memory is asked of a use; write plan.memory.of(Use::activations), or "
                  "plan.peak_memory() of all");
    return 0;
  }
  constexpr std::int64_t of(MemoryBlock block) const {
    return block == MemoryBlock::arena        ? arena
           : block == MemoryBlock::host_arena ? host_arena
                                              : blocks[static_cast<int>(block)];
  }
  /// All that lies in the device's memory, and in the host's.
  constexpr std::int64_t peak() const { return total(false); }
  constexpr std::int64_t host() const { return total(true); }
  constexpr std::int64_t total(bool host) const {
    std::int64_t bytes = 0;
    for (int b = 0; b < memory_blocks; ++b)
      if (of_host(static_cast<MemoryBlock>(b)) == host) bytes += of(static_cast<MemoryBlock>(b));
    return bytes;
  }
};

inline constexpr std::int64_t alignment = 64;
constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace parallel::internals

namespace parallel {
using internals::Memory;
}  // namespace parallel
