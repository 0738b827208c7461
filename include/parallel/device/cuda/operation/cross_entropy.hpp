// Cross entropy in the parts that ranks exchange, the loss and its gradient. A rank may hold some of the vocabulary;
// what lies behind the classes is padding. Floors are bytes per logit in bf16.
#pragma once
#include <algorithm>
#include <limits>

#include <parallel/device/classes.hpp>
#include <parallel/device/cuda/operation/softmax.hpp>

namespace parallel::internals::cuda {

template <class S, class T>
struct ClassMaximum {
  static constexpr int threads = 512, n = pack_elements<T>;
  using W = Wide<T>;
  const T* x;
  S* result;
  Rows rows;
  Index own;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index;
    const W least = -std::numeric_limits<W>::infinity();
    const Row<T> row{x + rows.begin(r)};
    const W largest = either(rows.packed, [&](auto packed) {
      constexpr int ahead = decltype(packed)::value ? 4 : 1;
      return block.template maximum<ahead>(blocks_of(own, n), least, [&](Index p) {
        const auto some = row.template pack<n, decltype(packed)::value>(p * n, own);
        W most = least;
        for (int e = 0; e < n; ++e)
          if (p * n + e < own) most = Larger{}(most, some.of[e]);
        return most;
      });
    });
    block.each(1, [&](Index) { result[r] = narrow<S>(largest); });
  }
};
/// A row's largest; what is no number is. Floor: 2 bytes.
template <class S>
void class_maximum(const Call& call) {
  const View& x = call.operands[0];
  with_element<S>(x.dtype, [&]<class T>(T) {
    using Body = ClassMaximum<S, T>;
    const Rows rows = Rows::of<Body::n>(x, x.rank - 1);
    launch_rows(call, Body{x.as<const T>(), call.results[0].as<S>(), rows, ClassColumns::of(call).own});
  });
}

/// The largest of some numbers, and the sum of their exponentials relative to it. Of none, and where all are -infinity,
/// the sum is 0.
template <class W>
struct Exponentials {
  static constexpr W none = -std::numeric_limits<W>::infinity();
  W largest = none, sum = 0;
  PARALLEL_DEVICE friend Exponentials operator+(const Exponentials& a, const Exponentials& b) {
    if (a.largest == b.largest) return {a.largest, a.sum + b.sum};
    const W less = std::exp(-std::abs(a.largest - b.largest));
    return {Larger{}(a.largest, b.largest), a.largest > b.largest ? a.sum + b.sum * less : b.sum + a.sum * less};
  }
};
#if defined(__CUDACC__)
template <class W>
__device__ Exponentials<W> of_lane(const Exponentials<W>& own, int apart) {
  return {of_lane(own.largest, apart), of_lane(own.sum, apart)};
}
#endif
template <class S, class T>
struct ClassExponentials {
  static constexpr int threads = 512, n = pack_elements<T>;
  using W = Wide<T>;
  const T* x;
  S *largest, *sum;
  Rows rows;
  Index own;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index;
    const Row<T> row{x + rows.begin(r)};
    const auto all = either(rows.packed, [&](auto packed) {
      constexpr int ahead = decltype(packed)::value ? 4 : 1;
      return block.template sum<Exponentials<W>, ahead>(blocks_of(own, n), [&](Index p) {
        const auto some = row.template pack<n, decltype(packed)::value>(p * n, own);
        Exponentials<W> found;
        for (int e = 0; e < n; ++e)
          if (p * n + e < own) found.largest = Larger{}(found.largest, some.of[e]);
        const W reference = found.largest == found.none ? W{0} : found.largest;
        for (int e = 0; e < n; ++e)
          if (p * n + e < own) found.sum += std::exp(some.of[e] - reference);
        return found;
      });
    });
    block.each(1, [&](Index) {
      largest[r] = narrow<S>(all.largest);
      sum[r] = narrow<S>(all.sum);
    });
  }
};
/// (logits): a row's largest, and its sum of exp(logit - largest). Floor: 2 bytes.
template <class S>
void class_exponentials(const Call& call) {
  const View& x = call.operands[0];
  with_element<S>(x.dtype, [&]<class T>(T) {
    using Body = ClassExponentials<S, T>;
    const Rows rows = Rows::of<Body::n>(x, x.rank - 1);
    launch_rows(call, Body{x.as<const T>(), call.results[0].as<S>(), call.results[1].as<S>(), rows,
                           ClassColumns::of(call).own});
  });
}
struct Rescaled {
  template <class W>
  PARALLEL_DEVICE W operator()(W sum, W own, W largest) const {
    return sum * std::exp(own - largest);
  }
};
/// (sum, own, max): sum exp(own - max). Floor: a few bytes a row.
template <class S>
void rescaled_exponentials(const Call& call) {
  map<Rescaled, S, S, S, S>(call, {});
}

template <class S, class T>
struct ClassMean {
  static constexpr int threads = 512, n = pack_elements<T>;
  using W = Wide<T>;
  const T* x;
  S* result;
  Rows rows;
  Index own;
  W share;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index;
    const W sum = sum_along<W, n>(
        block, rows, own, [](W a) { return a; }, Row<T>{x + rows.begin(r)});
    block.each(1, [&](Index) { result[r] = narrow<S>(share * sum); });
  }
};
/// A row's sum over the number of classes. Floor: 2 bytes.
template <class S>
void class_mean(const Call& call) {
  const View& x = call.operands[0];
  with_element<S>(x.dtype, [&]<class T>(T) {
    using Body = ClassMean<S, T>;
    const Rows rows = Rows::of<Body::n>(x, x.rank - 1);
    const auto classes = ClassColumns::of(call);
    launch_rows(call, Body{x.as<const T>(), call.results[0].as<S>(), rows, classes.own,
                           static_cast<Wide<T>>(1 / static_cast<double>(classes.classes))});
  });
}

template <class S, class T>
struct Pick {
  const T* x;
  const int* target;
  S* result;
  Index length;
  ClassColumns classes;
  PARALLEL_DEVICE void operator()(Index r) const {
    const int wanted = target[r];
    const Index column = classes.column(wanted);
    const bool counts = wanted != classes.ignored;
    const Wide<T> none = counts && !classes.is_class(wanted) ? std::numeric_limits<Wide<T>>::quiet_NaN() : Wide<T>{0};
    result[r] = narrow<S>(counts && column >= 0 ? widen(x[r * length + column]) : none);
  }
};
/// (logits, target): the target's logit where the rank holds it, else 0; no number where there is no such class, unless
/// it is ignored. Floor: a sector of 32 bytes a row.
template <class S>
void pick(const Call& call) {
  const View& x = call.operands[0];
  with_element<S>(x.dtype, [&]<class T>(T) {
    launch_each(gpu(call).stream(), call.results[0].elements(),
                Pick<S, T>{x.as<const T>(), call.operands[1].as<const int>(), call.results[0].as<S>(),
                           x.size[x.rank - 1], ClassColumns::of(call)});
  });
}

template <class S>
struct NegativeLogLikelihood {
  using W = Wide<S>;
  const int* target;
  Reals<W> largest, sum, picked, mean;
  S* loss;
  Index ignored;
  W smoothing;
  PARALLEL_DEVICE void operator()(Index r) const {
    const bool counts = ignored == operation::Classes::none || target[r] != ignored;
    const W one = picked[r], target_logit = smoothing == 0 ? one : (W{1} - smoothing) * one + smoothing * mean[r];
    loss[r] = narrow<S>(counts ? std::log(sum[r]) + (largest[r] - target_logit) : W{0});
  }
};
/// (logits, target, max, sum, picked[, mean]): log(sum) + max - picked, where the first number says how much of picked
/// is mean. Floor: the numbers of a row.
template <class S>
void negative_log_likelihood(const Call& call) {
  using Number = Reals<Wide<S>>;
  const auto picked = Number::of(call.operands[4]),
             mean = call.operands.size() > 5 ? Number::of(call.operands[5]) : picked;
  launch_each(gpu(call).stream(), call.results[0].elements(),
              NegativeLogLikelihood<S>{call.operands[1].as<const int>(), Number::of(call.operands[2]),
                                       Number::of(call.operands[3]), picked, mean, call.results[0].as<S>(),
                                       operation::Classes(call.ints).ignored, static_cast<Wide<S>>(call.reals[0])});
}

template <class T>
struct CrossEntropyGradient {
  static constexpr int threads = 512, n = pack_elements<T>;
  using W = Wide<T>;
  const T* x;
  const int* target;
  Reals<W> largest, sum, g;
  T* out;
  Rows rows;
  ClassColumns classes;
  W smoothing;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index, begin = rows.begin(r);
    const int wanted = target[r];
    const Index own = wanted == classes.ignored ? 0 : classes.own,
                column = wanted == classes.ignored ? -1 : classes.column(wanted);
    const W most = largest[r], of_row = g[r], share = of_row / sum[r],
            less = of_row * (smoothing / static_cast<W>(classes.classes)), hit = of_row * (W{1} - smoothing);
    map_along<n>(
        block, rows, out + begin,
        [=](Index i, W a) { return i < own ? std::exp(a - most) * share - less - (i == column ? hit : W{0}) : W{0}; },
        Row<T>{x + begin});
  }
};
/// (logits, target, max, sum, g): g (softmax - what the target spreads); 0 where the target is ignored, and for
/// padding. Floor: 2 + 2 bytes.
template <class T>
void cross_entropy_gradient(const Call& call) {
  const View& x = call.operands[0];
  using W = Wide<T>;
  using Body = CrossEntropyGradient<T>;
  const Rows rows = Rows::of<Body::n>(x, x.rank - 1, call.results[0]);
  launch_rows(call, Body{x.as<const T>(), call.operands[1].as<const int>(), Reals<W>::of(call.operands[2]),
                         Reals<W>::of(call.operands[3]), Reals<W>::of(call.operands[4]), call.results[0].as<T>(), rows,
                         ClassColumns::of(call), static_cast<W>(call.reals[0])});
}

template <class S>
struct CountTargets {
  static constexpr int threads = 1024;
  const int* target;
  S* result;
  Index count, ignored;
  double factor;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index others =
        block.template sum<Index>(count, [&](Index i) { return static_cast<Index>(target[i] != ignored); });
    block.each(1, [&](Index) { *result = narrow<S>(factor * static_cast<double>(others)); });
  }
};
/// (target): how many are not the attribute, times the first number. Floor: 4 bytes a target, by one block.
template <class S>
void count_targets(const Call& call) {
  const View& target = call.operands[0];
  launch(
      gpu(call).stream(), 1,
      CountTargets<S>{target.as<const int>(), call.results[0].as<S>(), target.elements(), call.ints[0], call.reals[0]});
}

}  // namespace parallel::internals::cuda
