// Which samples a step is of: a shuffled order that is computed, not stored.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <parallel/device/random.hpp>
#include <parallel/meta/failure.hpp>
#include <parallel/meta/other_names.hpp>

namespace parallel::internals {

/// A permutation of the numbers below `size`, drawn by a seed and an epoch, in no memory: swap-or-not (Hoang, Morris
/// and Rogaway, 2012). A round pairs x with key - x and swaps them or not, as a bit says that is drawn for the pair.
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch) : size_(size), seed_(seed), epoch_(epoch) {
    for (std::size_t r = 0; r < rounds; ++r) keys_[r] = word(r, keys) % size;
  }
  std::uint64_t operator()(std::uint64_t x) const {
    for (std::size_t r = 0; r < rounds; ++r) {
      const std::uint64_t partner = keys_[r] >= x ? keys_[r] - x : size_ - x + keys_[r];
      if ((word(std::max(x, partner), r) & 1) != 0) x = partner;
    }
    return x;
  }

 private:
  /// As many as a set of 2^40 needs for each sample to come anywhere as often, within what can be told.
  static constexpr std::size_t rounds = 64, keys = rounds;
  /// Epochs and rounds have streams of their own, and none that dropout or first values have: their words are 32 bits.
  std::uint64_t word(std::uint64_t index, std::size_t purpose) const {
    const auto w = random_words(seed_, std::uint64_t{purpose + 1} << 56 ^ epoch_, index);
    return std::uint64_t{w[0]} << 32 | w[1];
  }

  std::uint64_t size_, seed_, epoch_;
  std::array<std::uint64_t, rounds> keys_{};
};

/// What a last batch is that the samples do not fill.
enum class LastBatch {
  dropped,  ///< it is none: other samples are left out in each epoch
  padded    ///< it is filled up with `no_sample`, whose weight is to be 0
};
/// In the place of a sample, where a batch is filled up.
inline constexpr std::int64_t no_sample = -1;

/// In which order samples come.
struct SamplerOptions {
  std::uint64_t seed = 1;
  LastBatch last = LastBatch::dropped;
  bool shuffled = true;  ///< each epoch anew; else in order, as for an evaluation
};

/// The samples of every step of a training, of any number of epochs. All follows from a step's number: nothing is
/// stored, so a training that goes on at a step goes on with its samples, and they are the same on every mesh. Every
/// rank asks alike, and reads those of its own rows (`rows_of`).
class Sampler {
 public:
  /// `samples`: how many there are; `batch`: rows of a step on all ranks together. Throws Failure, internal where a
  /// batch has no rows, bad_data where none is filled.
  Sampler(std::int64_t samples, std::int64_t batch, SamplerOptions how = {})
      : samples_(samples), batch_(batch), how_(how) {
    if (batch < 1)
      throw Failure("a batch of " + std::to_string(batch) + " rows is asked for; give a number from 1 on",
                    exit_code::internal);
    if (samples < 1)
      throw Failure("the data have " + std::to_string(samples) + " samples; give one or more", exit_code::bad_data);
    if (how.last == LastBatch::dropped && samples < batch)
      throw Failure("a batch of " + std::to_string(batch) + " is asked for, but the data have " +
                        std::to_string(samples) + " samples; give more of them, or make the batch smaller",
                    exit_code::bad_data);
  }
  template <class... More>
  requires(sizeof...(More) != 1 && !(std::is_same_v<More, SamplerOptions> || ...)) explicit Sampler(std::int64_t,
                                                                                                    More...) {
    static_assert(
        sizeof...(More) > 99,
        "parallel: a Sampler is made of how many samples there are, the rows of a batch on all ranks together, "
        "and options by their names; write Sampler(60000, 128, {.seed = 3})");
  }
  template <class Data, class... More>
  requires(!std::is_convertible_v<const Data&, std::int64_t> &&
           !std::is_same_v<Data, Sampler>) explicit Sampler(const Data&, const More&...) {
    static_assert(std::is_void_v<Data>,
                  "parallel: a Sampler is made of how many samples there are, not of the samples; write "
                  "Sampler(60000, 128), and take of the data the rows that samples(step) names");
  }
  template <int is_named = 0>
  Sampler(std::int64_t, std::int64_t, const OtherNames&) {
    static_assert(is_named > 0,
                  "parallel: the options of a Sampler are seed, last and shuffled, in this order; write Sampler(60000, "
                  "128, {.seed = 3, .last = LastBatch::padded, .shuffled = false})");
  }
  std::int64_t batch() const { return batch_; }
  std::int64_t steps_per_epoch() const {
    return how_.last == LastBatch::dropped ? samples_ / batch_ : (samples_ - 1) / batch_ + 1;
  }
  std::int64_t epoch(std::int64_t step) const { return step / steps_per_epoch(); }

  /// The samples of a step, one for each row of the batch. Throws Failure (internal) for a step before the first.
  std::vector<std::int64_t> samples(std::int64_t step) const {
    if (step < 0)
      throw Failure("samples of step " + std::to_string(step) + " are asked for; steps are counted from 0",
                    exit_code::internal);
    const Permutation shuffle(static_cast<std::uint64_t>(samples_), how_.seed, static_cast<std::uint64_t>(epoch(step)));
    std::vector<std::int64_t> all(static_cast<std::size_t>(batch_));
    std::int64_t at = step % steps_per_epoch() * batch_;
    for (std::int64_t& sample : all) {
      sample = at >= samples_  ? no_sample
               : how_.shuffled ? static_cast<std::int64_t>(shuffle(static_cast<std::uint64_t>(at)))
                               : at;
      ++at;
    }
    return all;
  }

 private:
  std::int64_t samples_, batch_;
  SamplerOptions how_;
};

}  // namespace parallel::internals

namespace parallel {
using internals::LastBatch;
using internals::no_sample;
using internals::Sampler;
using internals::SamplerOptions;
}  // namespace parallel
