// The random words of one random operation: a word for every element of the full tensor, by its global index, whoever
// computes it.
#pragma once
#include <parallel/device/kernel.hpp>
#include <parallel/device/random.hpp>

namespace parallel::internals {

/// Words come in blocks of 64: a block is four words of each of 16 counters, first all first words, so that devices
/// make 16 counters at once.
///
///     element of a block     0 ... 15   16 ... 31   32 ... 47   48 ... 63
///     word of its counter        0          1           2           3
struct RandomStream {
  static constexpr int counters = 16, block = 4 * counters;
  std::array<std::uint32_t, 2> key{};
  std::array<std::uint32_t, 2> high{};  ///< the upper half of every counter

  /// The stream of a call: ints are the positions of seed and step among the scalars, and the number of the operation,
  /// to which above 32 bits is added by how many its layer is behind the first of the iteration.
  static constexpr RandomStream of(const Ints& ints, const double* scalars, std::int64_t layer,
                                   std::int64_t micro_batch) {
    const auto key = static_cast<std::uint64_t>(static_cast<std::int64_t>(scalars[ints[0]]));
    const auto words = philox(
        {static_cast<std::uint32_t>(static_cast<std::int64_t>(scalars[ints[1]])), static_cast<std::uint32_t>(ints[2]),
         static_cast<std::uint32_t>(layer + (ints[2] >> 32)), static_cast<std::uint32_t>(micro_batch)},
        {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
    return {{words[0], words[1]}, {words[2], words[3]}};
  }
  constexpr std::array<std::uint32_t, 4> words_of(std::uint64_t counter) const {
    return philox({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), high[0], high[1]},
                  key);
  }
  constexpr std::uint32_t word(std::uint64_t element) const {
    return words_of(element / block * counters + element % counters)[element % block / counters];
  }
};

/// Which stream a call draws from. Seed and step may lie in a device's memory, and change from step to step.
struct StreamOf {
  Ints ints{};  ///< as RandomStream::of has them
  const double* scalars = nullptr;
  std::int64_t layer = 0, micro_batch = 0;

  StreamOf() = default;
  StreamOf(const Call& call, int operand, const Ints& which)
      : ints(which),
        scalars(call.operands[operand].as<const double>()),
        layer(call.layer),
        micro_batch(call.micro_batch) {}
  constexpr RandomStream get() const { return RandomStream::of(ints, scalars, layer, micro_batch); }
};

/// Elements whose word is below this are dropped: probability times 2^32.
constexpr std::uint64_t dropped_below(double probability) {
  return probability <= 0   ? 0
         : probability >= 1 ? std::uint64_t{1} << 32
                            : static_cast<std::uint64_t>(probability * 4294967296.0);
}
/// A word as a fraction in (0, 1].
constexpr double fraction_of(std::uint32_t word) { return (static_cast<double>(word) + 1) / 4294967296.0; }

}  // namespace parallel::internals
