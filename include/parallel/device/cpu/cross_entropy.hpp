// Cross entropy in the parts that ranks exchange, the loss and its gradient. A rank may hold some of the vocabulary;
// what lies behind the classes is padding.
#pragma once
#include <limits>

#include <parallel/device/classes.hpp>
#include <parallel/device/cpu/norm.hpp>

namespace parallel::internals::cpu {

/// A rank's rows of logits.
struct ClassRows : Rows, ClassColumns {
  explicit ClassRows(const Call& call) : Rows(call.operands[0]), ClassColumns(ClassColumns::of(call)) {}
};
/// A function of its own, which is called by one thread or by several.
template <class Row>
[[gnu::noinline, gnu::flatten]] void row_of_classes(const Row& row, Index r) {
  row(r);
}
/// result[row] = statistic(row, its classes, how many)
template <class T, class Statistic>
void each_row(const Call& call, Statistic statistic) {
  const ClassRows rows(call);
  const auto of_row = [&](Index r) {
    call.results[0].as<T>()[r] = statistic(r, call.operands[0].as<const T>() + r * rows.length, rows.own);
  };
  each_row(call, rows, [&](Index r) { row_of_classes(of_row, r); });
}

template <class T>
void class_maximum(const Call& call) {
  each_row<T>(call, [](Index, const T* x, Index n) { return largest_of(x, n); });
}
/// Largest and sum together, piece by piece, each of which stays in the cache: what has been summed is made relative to
/// the new largest.
template <class T>
void class_exponentials(const Call& call) {
  constexpr T none = -std::numeric_limits<T>::infinity();
  each_row<T>(call, [sums = call.results[1].as<T>()](Index r, const T* x, Index n) {
    T largest = none, sum = 0;
    in_chunks(
        n,
        [&](Index first, Index count) {
          const T before = largest, here = largest_of(x + first, count);
          if (here > before || here != here) largest = here;
          const T reference = largest == none ? T{0} : largest;
          sum = sum * std::exp(before - reference) +
                sum_by_lanes<T, 1>(
                    count, [=](const T* a) { return exponential(lanes(a) - reference); }, x + first);
        },
        2048);
    sums[r] = sum;
    return largest;
  });
}
/// (sum, own, max): sum exp(own - max)
template <class T>
[[gnu::flatten]] void rescaled_exponentials(const Call& call) {
  by_lanes(
      call.results[0].elements(),
      [](T* to, const T* sum, const T* own, const T* largest) {
        lanes(to) = lanes(sum) * exponential(lanes(own) - lanes(largest));
      },
      call.results[0].as<T>(), call.operands[0].as<const T>(), call.operands[1].as<const T>(),
      call.operands[2].as<const T>());
}
template <class T>
void class_mean(const Call& call) {
  each_row<T>(call, [share = static_cast<T>(1 / static_cast<double>(call.ints[0]))](Index, const T* x, Index n) {
    return share * sum_of(x, n);
  });
}
/// (logits, target): the target's logit where the rank holds it, else 0; no number where there is no such class, unless
/// it is ignored.
template <class T>
void pick(const Call& call) {
  const ClassRows rows(call);
  each_row<T>(call, [&, targets = call.operands[1].as<const int>()](Index r, const T* x, Index) {
    const int target = targets[r];
    if (target == rows.ignored) return T{0};
    if (!rows.is_class(target)) return std::numeric_limits<T>::quiet_NaN();
    return rows.column(target) < 0 ? T{0} : x[rows.column(target)];
  });
}
/// (logits, target, max, sum, picked[, mean]): log(sum) + max - picked, where the first number says how much of picked
/// is mean
template <class T>
[[gnu::flatten]] void negative_log_likelihood(const Call& call) {
  const T smoothing = static_cast<T>(call.reals[0]), *largest = call.operands[2].as<const T>(),
          *sum = call.operands[3].as<const T>(), *picked = call.operands[4].as<const T>();
  const Index rows = call.results[0].elements();
  T* const losses = call.results[0].as<T>();
  if (call.operands.size() > 5)
    by_lanes(
        rows,
        [=](T* loss, const T* most, const T* s, const T* one, const T* all) {
          lanes(loss) = lanes(s).log() + (lanes(most) - ((T{1} - smoothing) * lanes(one) + smoothing * lanes(all)));
        },
        losses, largest, sum, picked, call.operands[5].as<const T>());
  else  // without the product of no smoothing and an infinite logit
    by_lanes(
        rows,
        [](T* loss, const T* most, const T* s, const T* one) {
          lanes(loss) = lanes(s).log() + (lanes(most) - lanes(one));
        },
        losses, largest, sum, picked);
  const operation::Classes classes(call.ints);
  if (classes.ignored == operation::Classes::none) return;
  for (Index i = 0; i < call.results[0].elements(); ++i)
    if (call.operands[1].as<const int>()[i] == classes.ignored) call.results[0].as<T>()[i] = 0;
}
/// (logits, target, max, sum, g): g (softmax - what the target spreads)
template <class T>
void cross_entropy_gradient(const Call& call) {
  const ClassRows rows(call);
  const T smoothing = static_cast<T>(call.reals[0]), spread = smoothing / static_cast<T>(rows.classes);
  const auto of_row = [&](Index r) {
    const int target = call.operands[1].as<const int>()[r];
    const bool ignored = target == rows.ignored;
    const T largest = call.operands[2].as<const T>()[r], sum = call.operands[3].as<const T>()[r],
            g = ignored ? T{0} : call.operands[4].as<const T>()[r];
    T* out = call.results[0].as<T>() + r * rows.length;
    if (ignored)
      std::fill_n(out, rows.own, T{0});
    else
      by_lanes(
          rows.own,
          [=, share = g / sum, less = g * spread](T* to, const T* x) {
            lanes(to) = exponential(lanes(x) - largest) * share - less;
          },
          out, call.operands[0].as<const T>() + r * rows.length);
    std::fill(out + rows.own, out + rows.length, T{0});
    if (rows.column(target) >= 0) out[rows.column(target)] -= g * (T{1} - smoothing);
  };
  each_row(call, rows, [&](Index r) { row_of_classes(of_row, r); });
}
/// (target): how many are not the attribute, times the first number.
template <class T>
void count_targets(const Call& call) {
  const int* x = call.operands[0].as<const int>();
  const Index n = call.operands[0].elements();
  *call.results[0].as<T>() =
      static_cast<T>(call.reals[0] * static_cast<double>(n - std::count(x, x + n, call.ints[0])));
}

}  // namespace parallel::internals::cpu
