// The parts of a softmax over dimensions `ints`, given the maximum: sums of exponentials, the quotient, and its
// gradient.
#pragma once
#include <parallel/device/cpu/reduce.hpp>

namespace parallel::internals::cpu {

template <class Along, class Across>
[[gnu::noinline, gnu::flatten]] void each_row_with_statistic(const Walk<2>& walk, Along along, Across across) {
  for (auto at = walk.rows(); at; ++at) {
    if (walk.step(1) == 0)
      along(at[0], at[1], walk.extent());
    else
      across(at[0], at[1], walk.extent());
  }
}
/// Calls along(position, position of the statistic, count) for rows over which is reduced, and across for rows with a
/// statistic for each element, of the first operand and what is reduced over the dimensions `ints`. Threads share what
/// has statistics of its own.
template <class Along, class Across>
void with_statistic(const Call& call, Along along, Across across) {
  const View& x = call.operands[0];
  const Walk<2> walk = together(x, reduced(x, call.ints));
  Team* const team = walk.outermost_step(1) != 0 ? team_for_elements(call, x.elements()) : nullptr;
  each_part(team, walk, [&](const Walk<2>& some) { each_row_with_statistic(some, along, across); });
}

/// (x, max): the sum of exp(x - max)
template <class T>
void sum_of_exponentials(const Call& call) {
  const T *x = call.operands[0].as<const T>(), *largest = call.operands[1].as<const T>();
  T* sum = call.results[0].as<T>();
  set(sum, call.results[0].elements(), T{0});
  with_statistic(
      call,
      [=](Index i, Index s, Index n) {
        sum[s] += sum_by_lanes<T, 1>(
            n, [m = largest[s]](const T* a) { return exponential(lanes(a) - m); }, x + i);
      },
      [=](Index i, Index s, Index n) {
        by_lanes(
            n, [](T* to, const T* a, const T* m) { lanes(to) += exponential(lanes(a) - lanes(m)); }, sum + s, x + i,
            largest + s);
      });
}
/// (x, max, sum): exp(x - max) / sum
template <class T>
void normalized_exponential(const Call& call) {
  const T *x = call.operands[0].as<const T>(), *largest = call.operands[1].as<const T>(),
          *sum = call.operands[2].as<const T>();
  T* y = call.results[0].as<T>();
  with_statistic(
      call,
      [=](Index i, Index s, Index n) {
        by_lanes(
            n,
            [m = largest[s], share = 1 / sum[s]](T* to, const T* a) { lanes(to) = exponential(lanes(a) - m) * share; },
            y + i, x + i);
      },
      [=](Index i, Index s, Index n) {
        by_lanes(
            n,
            [](T* to, const T* a, const T* m, const T* b) { lanes(to) = exponential(lanes(a) - lanes(m)) / lanes(b); },
            y + i, x + i, largest + s, sum + s);
      });
}
/// (y, g): the sum of y g
template <class T>
void row_product(const Call& call) {
  const T *y = call.operands[0].as<const T>(), *g = call.operands[1].as<const T>();
  T* product = call.results[0].as<T>();
  set(product, call.results[0].elements(), T{0});
  with_statistic(
      call, [=](Index i, Index s, Index n) { product[s] += inner_product(y + i, g + i, n); },
      [=](Index i, Index s, Index n) {
        by_lanes(
            n, [](T* to, const T* a, const T* b) { lanes(to) += lanes(a) * lanes(b); }, product + s, y + i, g + i);
      });
}
/// (y, g, product): y (g - product)
template <class T>
void softmax_gradient(const Call& call) {
  const T *y = call.operands[0].as<const T>(), *g = call.operands[1].as<const T>(),
          *product = call.operands[2].as<const T>();
  T* out = call.results[0].as<T>();
  with_statistic(
      call, [=](Index i, Index s, Index n) { probability_gradient(out + i, y + i, g + i, product[s], n); },
      [=](Index i, Index s, Index n) {
        by_lanes(
            n, [](T* to, const T* a, const T* b, const T* c) { lanes(to) = lanes(a) * (lanes(b) - lanes(c)); }, out + i,
            y + i, g + i, product + s);
      });
}

/// (x, max, sum): x - max - log sum
template <class T>
void normalized_logarithm(const Call& call) {
  const T *x = call.operands[0].as<const T>(), *largest = call.operands[1].as<const T>(),
          *sum = call.operands[2].as<const T>();
  T* y = call.results[0].as<T>();
  with_statistic(
      call,
      [=](Index i, Index s, Index n) {
        const Lanes<T> all = Lanes<T>::Constant(sum[s]).log();
        by_lanes(
            n, [m = largest[s], logarithm = all[0]](T* to, const T* a) { lanes(to) = (lanes(a) - m) - logarithm; },
            y + i, x + i);
      },
      [=](Index i, Index s, Index n) {
        by_lanes(
            n, [](T* to, const T* a, const T* m, const T* b) { lanes(to) = (lanes(a) - lanes(m)) - lanes(b).log(); },
            y + i, x + i, largest + s, sum + s);
      });
}
/// (y, g, sum of g): g - exp(y) sum
template <class T>
void log_softmax_gradient(const Call& call) {
  const T *y = call.operands[0].as<const T>(), *g = call.operands[1].as<const T>(),
          *sum = call.operands[2].as<const T>();
  T* out = call.results[0].as<T>();
  with_statistic(
      call,
      [=](Index i, Index s, Index n) {
        by_lanes(
            n,
            [total = sum[s]](T* to, const T* a, const T* b) { lanes(to) = lanes(b) - exponential(lanes(a)) * total; },
            out + i, y + i, g + i);
      },
      [=](Index i, Index s, Index n) {
        by_lanes(
            n,
            [](T* to, const T* a, const T* b, const T* c) { lanes(to) = lanes(b) - exponential(lanes(a)) * lanes(c); },
            out + i, y + i, g + i, sum + s);
      });
}

}  // namespace parallel::internals::cpu
