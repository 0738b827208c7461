// Dropout and normal numbers: an element's random word depends on its index in the full tensor, so that every layout
// draws the same.
#pragma once
#include <cstring>
#include <numbers>

#include <parallel/device/cpu/array.hpp>
#include <parallel/device/stream.hpp>

namespace parallel::internals::cpu {

/// The words of one block, in the order of its elements: RandomStream::word.
inline void words_of_block(const RandomStream& stream, std::uint64_t block,
                           std::uint32_t (&words)[RandomStream::block]) {
  CounterColumns<RandomStream::counters> columns;
  philox<RandomStream::counters>(columns, block * RandomStream::counters, stream.high, stream.key);
  std::memcpy(words, columns, sizeof words);
}

/// Calls body(i, index within the block, count, block) for runs of the n elements from `first` of a full tensor on that
/// lie in one block.
template <class Body>
void in_blocks(Index first, Index n, Body body) {
  for (Index i = 0; i < n;) {
    const Index within = (first + i) % RandomStream::block, count = std::min(RandomStream::block - within, n - i);
    body(i, within, count, static_cast<std::uint64_t>((first + i) / RandomStream::block));
    i += count;
  }
}
/// The same for the elements of a piece of a part that has these strides and begins at `first`, a run of each dimension
/// that stands in an order at a time; i is the position in the part.
template <class Body>
void each_block(const View& piece, const Steps<max_rank>& part, Index first, Body body) {
  for (int d = 0; d < piece.rank; ++d)
    if (piece.order[d] != Order::contiguous) {
      View run = piece;
      run.order[d] = Order::contiguous;
      for (Index i = 0; i < piece.size[d]; i += run.size[d]) {
        run.size[d] = piece.run(d, i);
        run.offset[d] = piece.at(d, i);
        each_block(run, part, first + i * part[d], body);
      }
      return;
    }
  const InWhole whole(piece);
  Walk<2> walk = through(piece, {part, whole.steps});
  walk.make_rows_contiguous();
  for (auto at = walk.rows(); at; ++at)
    in_blocks(whole.first + at[1], walk.extent(), [&](Index i, Index within, Index count, std::uint64_t block) {
      body(first + at[0] + i, within, count, block);
    });
}
template <class Body>
void each_block(const View& part, Body body) {
  each_block(part, strides(part), 0, body);
}

/// (x, scalars): an element is zero with the probability that is the first number, else it grows by 1 / (1 -
/// probability).
template <class T>
void dropout(const Call& call) {
  const RandomStream stream = StreamOf(call, 1, call.ints).get();
  const std::uint64_t limit = dropped_below(call.reals[0]);
  const T factor = static_cast<T>(1 / (1 - call.reals[0]));
  const T* x = call.operands[0].as<const T>();
  T* out = call.results[0].as<T>();
  each_block(call.results[0], [&](Index at, Index within, Index count, std::uint64_t block) {
    std::uint32_t words[RandomStream::block];
    words_of_block(stream, block, words);
    const T* from = x + at;
    fill(out + at, count, [&](Index i) {
      const T grown = from[i] * factor;
      return words[within + i] < limit ? T{0} : grown;
    });
  });
}

/// (scalars): normal numbers with the first number as standard deviation (Box and Muller, 1958): words 0 and 1 of a
/// counter make two, 2 and 3 too.
template <class T>
void random(const Call& call) {
  constexpr int several = RandomStream::counters;  // and as many lanes
  const RandomStream stream = StreamOf(call, 0, call.ints).get();
  const T deviation = static_cast<T>(call.reals[0]);
  T* out = call.results[0].as<T>();
  each_block(call.results[0], [&](Index at, Index within, Index count, std::uint64_t block) {
    std::uint32_t words[RandomStream::block];
    words_of_block(stream, block, words);
    alignas(64) T normal[RandomStream::block];
    for (int pair = 0; pair < 2; ++pair) {
      Lanes<T> radius, angle;
      for (int i = 0; i < several; ++i) {
        radius[i] = static_cast<T>(fraction_of(words[2 * pair * several + i]));
        angle[i] = static_cast<T>(2 * std::numbers::pi * fraction_of(words[(2 * pair + 1) * several + i]));
      }
      radius = deviation * (T{-2} * radius.log()).sqrt();
      lanes(normal + 2 * pair * several) = radius * angle.cos();
      lanes(normal + (2 * pair + 1) * several) = radius * angle.sin();
    }
    std::copy_n(normal + within, count, out + at);
  });
}

}  // namespace parallel::internals::cpu
