// What decides about updates: the norm of all gradients. Sums of squares are made together, of as many gradients as
// follow each other in the plan.
#pragma once
#include <cmath>

#include <parallel/device/cuda/body/together.hpp>
#include <parallel/device/cuda/operation/reduce.hpp>

namespace parallel::internals::cuda {

/// The sum of squares of one part of a gradient's elements for each block, all of it in double: neither length nor size
/// of the numbers loses anything.
template <class T>
struct SumOfSquares {
  static constexpr int threads = 256, n = pack_elements<T>, ahead = 4;
  static constexpr std::size_t shared_bytes = 0;
  const T* x;
  double* sums;             ///< of each block
  Index elements, in_part;  // in_part: packs
  bool packed;              // all packs are whole, and lie at multiples of 16 bytes

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const Index begin = block.index * in_part, all = blocks_of(elements, n),
                end = begin + in_part < all ? begin + in_part : all;
    const double sum =
        block.template sum<double, ahead>(end - begin, [&](Index i) { return squares((begin + i) * n); });
    block.each(1, [&](Index) { sums[block.index] = sum; });
  }

 private:
  PARALLEL_DEVICE double squares(Index first) const {
    Pack<T, n> some;
    if (packed)
      some = *reinterpret_cast<const Pack<T, n>*>(x + first);
    else
      for (int j = 0; j < n; ++j) some.of[j] = first + j < elements ? x[first + j] : narrow<T>(0);
    double sum = 0;
    for (const T each : some.of) sum += static_cast<double>(widen(each)) * static_cast<double>(widen(each));
    return sum;
  }
};
/// The sum of what blocks have summed up.
struct SumOfSums {
  static constexpr int threads = 256;
  static constexpr std::size_t shared_bytes = 0;
  const double* sums;
  double* all;
  Index count;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const double sum = block.template sum<double>(count, [&](Index i) { return sums[i]; });
    block.each(1, [&](Index) { *all = sum; });
  }
};
template <class T>
void square_sums_of(Gpu& gpu, std::span<const Call> all) {
  using Body = SumOfSquares<T>;
  constexpr int most = Bodies<Body>::most;
  static_assert(most <= Bodies<SumOfSums>::most && most * enough_blocks * sizeof(double) <= Gpu::workspace_bytes);
  at_most(most, all, [&](std::span<const Call> calls) {
    Bodies<Body> squares;
    Bodies<SumOfSums> sums;
    double* room = static_cast<double*>(gpu.workspace());
    for (const Call& call : calls) {
      const T* const x = call.operands[0].as<const T>();
      double* const result = call.results[0].as<double>();
      const Index elements = call.operands[0].elements(), packs = std::max<Index>(blocks_of(elements, Body::n), 1);
      const Index in_part = blocks_of(packs, parts_of(1, packs, Body::threads * Body::ahead)),
                  parts = blocks_of(packs, in_part);
      squares.add(gpu.stream(),
                  {x, parts == 1 ? result : room, elements, in_part, elements % Body::n == 0 && lies_at(x, 16)}, parts);
      if (parts == 1) continue;
      sums.add(gpu.stream(), {room, result, parts}, 1);
      room += parts;
    }
    squares.launch(gpu.stream());
    sums.launch(gpu.stream());
  });
}
/// Of each call the sum of squares of a rank's part, f64.
inline void square_sums(std::span<const Call> calls) {
  with_type(calls[0].operands[0].dtype, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, int>) square_sums_of<T>(gpu(calls[0]), calls);
  });
}
inline void square_sum(const Call& call) { square_sums({&call, 1}); }

/// Sums of two scalars, one behind the other: an operand may be an earlier sum.
struct AddScalars {
  static constexpr int threads = 32, most = 128;
  const double *a[most], *b[most];
  double* sum[most];
  int count;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    block.each(1, [&](Index) {
      for (int i = 0; i < count; ++i) *sum[i] = *a[i] + *b[i];
    });
  }
};
inline void add_scalars(std::span<const Call> all) {
  at_most(AddScalars::most, all, [](std::span<const Call> calls) {
    AddScalars body{};
    for (const Call& call : calls) {
      const int i = body.count++;
      body.a[i] = call.operands[0].as<const double>();
      body.b[i] = call.operands[1].as<const double>();
      body.sum[i] = call.results[0].as<double>();
    }
    launch(gpu(calls[0]).stream(), 1, body);
  });
}
inline void add_scalars(const Call& call) { add_scalars(std::span(&call, 1)); }

template <class T>
struct ScaledBy {
  const double* number;
  bool divides;
  PARALLEL_DEVICE Wide<T> operator()(Wide<T> x) const {
    return x * static_cast<Wide<T>>(divides ? 1 / *number : *number);
  }
};
/// (x, scalars): x times a number of the run, or divided by it; ints: its position, whether it divides.
template <class T>
void scaled(const Call& call) {
  with_element<T>(call.operands[0].dtype, [&]<class From>(From) {
    map<ScaledBy<T>, T, From>(call, {call.operands[1].as<const double>() + call.ints[0], call.ints[1] != 0});
  });
}

/// (sum of squares, scalars, loss): the norm, the factor min(1, clip_norm / norm) and whether norm and loss are finite
/// numbers.
struct Clip {
  static constexpr int threads = 32;
  const double *squares, *limit, *scale;  ///< no scale: 1
  const void* loss;
  DType type;  ///< of the loss
  double *norm, *factor, *finite;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    block.each(1, [&](Index) {
      const double by = scale != nullptr ? *scale : 1, n = std::sqrt(*squares) / by, share = *limit / (n + 1e-6),
                   l = value();
      *norm = n;
      *factor = (*limit > 0 && share < 1 ? share : 1) / by;
      *finite = n - n == 0 && l - l == 0 ? 1 : 0;
    });
  }

 private:
  PARALLEL_DEVICE double value() const {
    if (type == DType::f64) return *static_cast<const double*>(loss);
    if (type == DType::bf16) return static_cast<double>(widen(*static_cast<const bfloat16*>(loss)));
    if (type == DType::f16) return static_cast<double>(widen(*static_cast<const float16*>(loss)));
    return static_cast<double>(*static_cast<const float*>(loss));
  }
};
/// ints: positions of clip_norm and, where it is to be taken out, loss_scale.
inline void clip(const Call& call) {
  const double* scalars = call.operands[1].as<const double>();
  launch(gpu(call).stream(), 1,
         Clip{call.operands[0].as<const double>(), scalars + call.ints[0],
              call.ints.size() > 1 ? scalars + call.ints[1] : nullptr, call.operands[2].data, call.operands[2].dtype,
              call.results[0].as<double>(), call.results[1].as<double>(), call.results[2].as<double>()});
}

}  // namespace parallel::internals::cuda
