// Sums, maxima and repetition over dimensions.
#pragma once
#include <bit>

#include <parallel/device/cuda/body/reduction.hpp>
#include <parallel/device/cuda/body/row.hpp>
#include <parallel/device/cuda/operation/elementwise.hpp>

namespace parallel::internals::cuda {

inline constexpr Index enough_blocks = 1024;  ///< that each GPU is filled by

/// The largest power of two that is not above n, at most `most`, at least 1.
inline int power_below(Index n, int most) {
  return n < 1 ? 1
               : static_cast<int>(std::min<std::uint64_t>(std::bit_floor(static_cast<std::uint64_t>(n)),
                                                          static_cast<std::uint64_t>(most)));
}

/// Into how many parts the terms of a result are divided: so many that there are enough blocks, and that every thread
/// of a part has `least` terms.
inline Index parts_of(Index blocks, Index terms, Index least) {
  return std::clamp<Index>(std::min(enough_blocks / std::max<Index>(blocks, 1), terms / least), 1, enough_blocks);
}

/// Launches a body whose results are parts, in the workspace, and one that reduces them; or the body alone.
template <class Body, class What, class Out>
void launch_parts(Gpu& gpu, Body& body, Index blocks, Index terms, Index parts, const What& what, Out* out,
                  Index results);

template <class What, class Out>
void reduce_columns(Gpu& gpu, const What& what, const typename What::From* x, Out* out, Index width,
                    const Dimensions& kept, const Dimensions& gone, bool in_one = false) {
  using Body = ReduceColumns<What, Out>;
  const Index in_row = blocks_of(width, Body::n), packs = kept.size * in_row;
  const int down = power_below(gone.size / Body::several, in_one ? 32 : 8);
  const int across = static_cast<int>(
      std::min<Index>(Body::threads / down, static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(packs)))));
  Body body{what,
            x,
            out,
            nullptr,
            width,
            packs,
            0,
            kept,
            gone,
            Divisor(in_row),
            {},
            across,
            width % Body::n == 0 && lies_at(x, 16)};
  const Index parts =
      in_one ? 1 : parts_of(blocks_of(packs, across), gone.size, Body::threads / across * 2 * Body::several);
  launch_parts(gpu, body, blocks_of(packs, across), gone.size, parts, what, out, kept.size * width);
}
template <class What, class Out>
void reduce_rows(Gpu& gpu, const What& what, const typename What::From* x, Out* out, Index results, Index length,
                 const Dimensions& kept, const Dimensions& gone) {
  using Body = ReduceRows<What, Out>;
  const Index in_row = blocks_of(length, Body::n), packs = gone.size * in_row;
  const int group = power_below(packs / Body::several, Body::threads);
  Body body{what, x,    out,  nullptr,         results, length, packs,
            0,    kept, gone, Divisor(in_row), {},      group,  length % Body::n == 0 && lies_at(x, 16)};
  const Index blocks = blocks_of(results, Body::threads / group);
  launch_parts(gpu, body, blocks, packs, parts_of(blocks, packs, group * Body::several), what, out, results);
}

template <class Body, class What, class Out>
void launch_parts(Gpu& gpu, Body& body, Index blocks, Index terms, Index parts, const What& what, Out* out,
                  Index results) {
  body.in_part = blocks_of(terms, parts);
  parts = std::max<Index>(blocks_of(terms, std::max<Index>(body.in_part, 1)), 1);
  body.parts = Divisor(parts);
  if (parts > 1) body.partial = static_cast<typename Body::All*>(gpu.workspace());
  launch(gpu.stream(), blocks * parts, body, Body::shared_bytes);
  if (parts == 1) return;
  Dimensions kept, gone;
  gone.add(parts, results);
  reduce_columns(gpu, what.parts(), body.partial, out, results, kept, gone, true);
}

/// Reduces x over the dimensions along which `steps`, the result's, is 0.
template <class What, class Out>
void reduce(const Call& call, const What& what, const View& x, const Steps& steps, Out* out, Index results) {
  if (results == 0) return;
  const Walk<2> walk = cpu::together(x, steps);
  Dimensions kept, gone;
  for (int enclosing = walk.rank() - 1; enclosing > 0; --enclosing)
    (walk.step(1, enclosing) == 0 ? gone : kept).add(walk.extent(enclosing), walk.step(0, enclosing));
  const auto* const from = x.as<const typename What::From>();
  if (walk.step(1) == 0)
    reduce_rows(gpu(call), what, from, out, results, walk.extent(), kept, gone);
  else
    reduce_columns(gpu(call), what, from, out, walk.extent(), kept, gone);
}

/// The sum over the dimensions `ints` (none: all), times the first number. Of bf16 and f16 it is f32.
template <class Out>
void sum(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  with_element<Out>(x.dtype, [&]<class T>(T) {
    reduce(call, SumOf<T>{call.reals[0]}, x, cpu::reduced(x, call.ints), out.as<Out>(), out.elements());
  });
}
/// The sum over the dimensions along which the result would be repeated.
template <class T>
void sum_to(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  reduce(call, SumOf<T>{}, x, repeated(out, x), out.as<T>(), out.elements());
}
/// The maximum over the dimensions `ints` (none: all) of the rank's part. What is no number is the maximum.
template <class T>
void local_max(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  reduce(call, MaximumOf<T>{}, x, cpu::reduced(x, call.ints), out.as<T>(), out.elements());
}
/// The minimum, which what is no number is, too.
template <class T>
void local_min(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  reduce(call, MinimumOf<T>{}, x, cpu::reduced(x, call.ints), out.as<T>(), out.elements());
}
/// (x, max): how many elements of the rank's part equal the maximum.
template <class Out>
void count_maxima(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  with_element<Out>(x.dtype, [&]<class T>(T) {
    reduce(call, CountOf<T>{call.operands[1].as<const T>()}, x, cpu::reduced(x, call.ints), out.as<Out>(),
           out.elements());
  });
}

/// Repeats x along the dimensions `ints` of the result (none: all), times the first number. Writes every element of the
/// result once.
template <class T>
void expand(const Call& call) {
  const auto from = [&]<class From>(From) {
    map<Scale<T>, T, From>(call, {static_cast<Wide<T>>(call.reals[0])}, {cpu::reduced(call.results[0], call.ints)});
  };
  if constexpr (Half<T>)
    if (call.operands[0].dtype == DType::f32) return from(float{});
  with_element<T>(call.operands[0].dtype, from);
}
struct MaximumShare {
  template <class T>
  PARALLEL_DEVICE T operator()(T x, T largest, T count, T g) const {
    return x == largest ? g / count : T{0};
  }
};
/// (x, max, count, g): g / count where x equals max. Reads every element of x and writes every element of the result
/// once.
template <class T>
void max_gradient(const Call& call) {
  const Steps over = cpu::reduced(call.operands[0], call.ints);
  // the count of bf16 and f16 is f32
  map<MaximumShare, T, T, T, Wide<T>, T>(call, {}, {strides(call.operands[0]), over, over, over});
}

}  // namespace parallel::internals::cuda
