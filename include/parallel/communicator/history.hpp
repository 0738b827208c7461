// The last exchanges of a rank, which are printed where it, or a rank that waits for it, reaches the deadline.
#pragma once
#include <array>
#include <atomic>
#include <cstring>
#include <string>

#include <parallel/communicator/exchange.hpp>
#include <parallel/meta/name.hpp>

namespace parallel::internals {

/// Its rank writes it, any thread may read it meanwhile: what is just being written is left out. Nothing is allocated
/// but by `text`.
class History {
 public:
  static constexpr int length = 64;

  /// The number of an exchange that is started, counted from 1 over all groups of the rank.
  std::uint64_t start(const Exchange& e, int ranks) {
    return start(static_cast<std::uint64_t>(e.kind), e.count * bytes_of(e.dtype), e.dtype, ranks, e.peer, e.label);
  }
  std::uint64_t start_barrier(int ranks) { return start(barrier, 0, DType::f32, ranks, -1, nullptr); }
  /// The exchange of this number was waited for. 0 is of none.
  void end(std::uint64_t number) {
    std::atomic<std::uint64_t>& state = entry(number).state;
    if (number != 0 && state.load(std::memory_order_relaxed) == 2 * number)
      state.store(2 * number + 1, std::memory_order_release);
  }
  std::uint64_t started() const { return last_.load(std::memory_order_relaxed); }

  /// One line an exchange, the oldest first, each with `who`.
  std::string text(const std::string& who) const {
    std::string lines;
    const std::uint64_t last = started(), first = last > length ? last - length + 1 : 1;
    for (std::uint64_t number = first; number <= last; ++number) lines += line(who, number);
    return lines;
  }

 private:
  static constexpr std::uint64_t barrier = 255;
  static constexpr std::size_t words = 5;
  struct alignas(64) Entry {
    std::atomic<std::uint64_t> state{0};  ///< 2 * its number, + 1 when it was waited for; 0 while it is written
    std::atomic<std::uint64_t> what{0};   ///< the kind, the element type, the peer + 1, the ranks of the group
    std::atomic<std::int64_t> bytes{0};
    std::atomic<std::uint64_t> label[words]{};  ///< copied, of a long one both ends: it may be gone when it is printed
  };

  Entry& entry(std::uint64_t number) { return entries_[number % length]; }

  std::uint64_t start(std::uint64_t kind, std::int64_t bytes, DType dtype, int ranks, int peer, const char* label) {
    const std::uint64_t number = last_.load(std::memory_order_relaxed) + 1;
    Entry& e = entry(number);
    e.state.store(0, std::memory_order_relaxed);
    const auto bits = [](auto value, int from) { return static_cast<std::uint64_t>(value) << from; };
    e.what.store(kind | bits(dtype, 8) | bits((peer + 1) & 65535, 16) | bits(ranks, 32), std::memory_order_release);
    e.bytes.store(bytes, std::memory_order_release);
    std::uint64_t copy[words]{};
    if (label != nullptr) std::memcpy(copy, abbreviated<sizeof copy>(label).characters, sizeof copy);
    for (std::size_t i = 0; i < words; ++i) e.label[i].store(copy[i], std::memory_order_release);
    e.state.store(2 * number, std::memory_order_release);
    last_.store(number, std::memory_order_release);
    return number;
  }

  std::string line(const std::string& who, std::uint64_t number) const {
    const Entry& e = entries_[number % length];
    const std::uint64_t state = e.state.load(std::memory_order_acquire);
    const std::uint64_t what = e.what.load(std::memory_order_acquire);
    const std::int64_t bytes = e.bytes.load(std::memory_order_acquire);
    std::uint64_t copy[words];
    for (std::size_t i = 0; i < words; ++i) copy[i] = e.label[i].load(std::memory_order_acquire);
    if (state / 2 != number || e.state.load(std::memory_order_acquire) / 2 != number) return "";
    char label[sizeof copy];
    std::memcpy(label, copy, sizeof copy);
    const bool gate = (what & 255) == barrier;
    const auto kind = static_cast<Collective>(what & 255);
    std::string text = who + ": " + std::to_string(number) + " ";
    text += gate ? "barrier" : std::string(name_of(kind));
    if (!gate)
      text += " of " + std::to_string(bytes) + " bytes " + std::string(name_of(static_cast<DType>(what >> 8 & 255)));
    if (!gate && point_to_point(kind))
      text += (kind == Collective::send ? " to rank " : " from rank ") + std::to_string((what >> 16 & 65535) - 1);
    text += (!gate && point_to_point(kind) ? " of " : " among ") + std::to_string(what >> 32);
    if (label[0] != '\0') text += std::string(" (") + label + ")";
    return text + (state % 2 == 1 ? ", waited for\n" : ", started\n");
  }

  std::atomic<std::uint64_t> last_{0};
  std::array<Entry, length> entries_{};
};

}  // namespace parallel::internals
