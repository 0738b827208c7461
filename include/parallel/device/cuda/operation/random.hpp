// Dropout and normal numbers: an element's random word depends on its index in the full tensor, so that every layout
// draws the same, and what the CPU draws. Seed and step lie in the device's memory: a step that is captured once draws
// anew each time.
#pragma once
#include <cmath>
#include <numbers>

#include <parallel/device/cuda/body/reduction.hpp>
#include <parallel/device/stream.hpp>

namespace parallel::internals::cuda {

/// The stream of a call; one thread computes the key for all of a block.
template <class Block>
PARALLEL_DEVICE RandomStream stream_of_block(Block& block, const StreamOf& stream_of) {
  RandomStream* const shared = block.template shared<RandomStream>();
  block.each(1, [&](Index) { *shared = stream_of.get(); });
  block.sync();
  return *shared;
}

/// out[i] = function(words, k, x[i]), where the element has word k of its counter: whole blocks of the stream. A thread
/// takes n counters that are neighbours, and so four packs of elements.
template <class T, class Function>
struct DrawBlocks {
  static constexpr int threads = 256, n = pack_elements<T>, of_block = RandomStream::counters / n;
  Function function;
  StreamOf stream_of;
  const T* x;
  T* out;
  Index packs, first;  // fourfold packs; the first block in the full tensor
  Divisor row;         // blocks
  Dimensions outer;    // of rows, in blocks of the full tensor

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const RandomStream stream = stream_of_block(block, stream_of);
    block.each(threads, [&](Index thread) {
      const Index pack = block.index * threads + thread, own = pack / of_block, lane = pack % of_block * n;
      if (pack >= packs) return;
      Index r = own;
      const Index in_row = row.divide(r), whole = first + outer.offset(r) + in_row;
      std::array<std::uint32_t, 4> words[n];
      for (int i = 0; i < n; ++i)
        words[i] = stream.words_of(static_cast<std::uint64_t>(whole * RandomStream::counters + lane + i));
      for (int k = 0; k < 4; ++k) {
        const Index at = own * RandomStream::block + k * RandomStream::counters + lane;
        Pack<T, n> taken{}, made;
        if constexpr (Function::reads) taken = *reinterpret_cast<const Pack<T, n>*>(x + at);
        for (int i = 0; i < n; ++i) made.of[i] = narrow<T>(function(words[i], k, widen(taken.of[i])));
        *reinterpret_cast<Pack<T, n>*>(out + at) = made;
      }
    });
  }
};
/// The same, element by element, wherever they lie.
template <class T, class Function, class InWhole>
struct DrawElements {
  static constexpr int threads = 256;
  Function function;
  StreamOf stream_of;
  const T* x;
  T* out;
  Index elements, first;
  InWhole whole;  // by how many elements the full tensor advances

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const RandomStream stream = stream_of_block(block, stream_of);
    block.each(threads, [&](Index thread) {
      const Index i = block.index * threads + thread;
      if (i >= elements) return;
      const Index e = first + whole.offset(i), within = e % RandomStream::block;
      const auto words = stream.words_of(static_cast<std::uint64_t>(e / RandomStream::block * RandomStream::counters +
                                                                    within % RandomStream::counters));
      out[i] = narrow<T>(function(words, static_cast<int>(within / RandomStream::counters),
                                  Function::reads ? widen(x[i]) : Wide<T>{0}));
    });
  }
};
/// Which element of the full tensor an element of a part is whose dimensions stand in orders.
struct InOrders {
  int rank = 0;
  Divisor extent[max_rank]{};
  Standing standing[max_rank]{};
  Index begin[max_rank]{}, step[max_rank]{};

  explicit InOrders(const View& part) : rank(part.rank) {
    Index n = 1;
    for (int d = rank - 1; d >= 0; n *= part.whole[d--]) {
      extent[d] = Divisor(part.size[d]);
      standing[d] = part.standing(d);
      begin[d] = part.offset[d];
      step[d] = n;
    }
  }
  PARALLEL_DEVICE Index offset(Index i) const {
    Index at = 0;
    for (int d = rank - 1; d >= 0; --d) at += standing[d].element(begin[d] + extent[d].divide(i)) * step[d];
    return at;
  }
};
template <class T, class Function>
void draw_all(const Call& call, const Function& function, int scalars) {
  const View& out = call.results[0];
  if (out.elements() == 0) return;
  const cpu::InWhole whole(out);
  const Walk<2> walk = cpu::together(out, whole.steps);
  const T* const x = Function::reads ? call.operands[0].as<const T>() : nullptr;
  constexpr Index size = RandomStream::block;
  bool blocks = walk.step(1) == 1 && walk.extent() % size == 0 && whole.first % size == 0 && lies_at(x, 16) &&
                lies_at(out.data, 16);
  for (int d = 1; d < walk.rank(); ++d) blocks = blocks && walk.step(1, d) % size == 0;
  bool ordered = false;
  for (int d = 0; d < out.rank; ++d) ordered = ordered || out.order[d] != Order::contiguous;
  Dimensions advance;
  for (int d = walk.rank() - 1; d >= (blocks ? 1 : 0); --d)
    advance.add(walk.extent(d), blocks ? walk.step(1, d) / size : walk.step(1, d));
  const auto run = [&](const auto& body, Index items) {
    launch(gpu(call).stream(), blocks_of(items, body.threads), body, sizeof(RandomStream));
  };
  if (ordered) {
    const StreamOf stream{call, scalars, call.ints};
    run(DrawElements<T, Function, InOrders>{function, stream, x, out.as<T>(), out.elements(), 0, InOrders(out)},
        out.elements());
  } else if (blocks) {
    using Body = DrawBlocks<T, Function>;
    const Index packs = out.elements() / size * Body::of_block;
    run(Body{function,
             {call, scalars, call.ints},
             x,
             out.as<T>(),
             packs,
             whole.first / size,
             Divisor(walk.extent() / size),
             advance},
        packs);
  } else {
    run(
        DrawElements<T, Function, Dimensions>{
            function, {call, scalars, call.ints}, x, out.as<T>(), out.elements(), whole.first, advance},
        out.elements());
  }
}

template <class T>
struct Dropout {
  static constexpr bool reads = true;
  std::uint64_t limit;
  Wide<T> factor;
  PARALLEL_DEVICE Wide<T> operator()(const std::array<std::uint32_t, 4>& words, int k, Wide<T> x) const {
    return words[static_cast<std::size_t>(k)] < limit ? Wide<T>{0} : x * factor;
  }
};
/// (x, scalars): an element is zero with the probability that is the first number, else it grows by 1 / (1 -
/// probability). Reads and writes every element once, and computes a quarter of a Philox for it.
template <class T>
void dropout(const Call& call) {
  draw_all<T>(call, Dropout<T>{dropped_below(call.reals[0]), static_cast<Wide<T>>(1 / (1 - call.reals[0]))}, 1);
}

/// Box and Muller, 1958: words 0 and 1 of a counter make two, 2 and 3 too.
template <class T>
struct Normal {
  static constexpr bool reads = false;
  Wide<T> deviation;
  PARALLEL_DEVICE Wide<T> operator()(const std::array<std::uint32_t, 4>& words, int k, Wide<T>) const {
    using W = Wide<T>;
    const auto pair = static_cast<std::size_t>(k / 2 * 2);
    const W radius = deviation * std::sqrt(W{-2} * std::log(static_cast<W>(fraction_of(words[pair]))));
    const W angle = static_cast<W>(2 * std::numbers::pi * fraction_of(words[pair + 1]));
    return radius * (k % 2 == 0 ? std::cos(angle) : std::sin(angle));
  }
};
/// (scalars): normal numbers with the first number as standard deviation.
template <class T>
void random(const Call& call) {
  draw_all<T>(call, Normal<T>{static_cast<Wide<T>>(call.reals[0])}, 0);
}

}  // namespace parallel::internals::cuda
