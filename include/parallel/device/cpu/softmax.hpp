// The parts of a softmax over dimensions `ints`, given the maximum: sums of exponentials, the quotient, and its gradient.
#pragma once
#include <parallel/device/cpu/reduce.hpp>

namespace parallel::cpu {

/// Calls along(position, position of the statistic, count) for rows over which is reduced, and across for rows with a statistic for each element.
template <class Along, class Across>
void with_statistic(const View& x, const Ints& dims, Along along, Across across) {
  const Walk<2> walk = together(x, reduced(x, dims));
  for (auto at = walk.rows(); at; ++at)
    in_chunks(walk.extent(), [&](Index i, Index n) {
      if (walk.step(1) == 0)
        along(at[0] + i, at[1], n);
      else
        across(at[0] + i, at[1] + i, n);
    });
}

/// (x, max): the sum of exp(x - max)
template <class T>
void sum_of_exponentials(const Call& call) {
  const T *x = call.operands[0].as<const T>(), *largest = call.operands[1].as<const T>();
  T* sum = call.results[0].as<T>();
  array(sum, call.results[0].elements()).setZero();
  alignas(64) T values[chunk];  // an aligned begin: loops split alike, and give the same bits, in every run
  with_statistic(
      call.operands[0], call.ints,
      [&](Index i, Index s, Index n) {
        exponentials(x + i, largest[s], values, n);
        sum[s] += sum_of(values, n);
      },
      [&](Index i, Index s, Index n) {
        array(values, n) = array(x + i, n) - array(largest + s, n);
        exponentials(values, T{0}, values, n);
        array(sum + s, n) += array(values, n);
      });
}
/// (x, max, sum): exp(x - max) / sum
template <class T>
void normalized_exponential(const Call& call) {
  const T *x = call.operands[0].as<const T>(), *largest = call.operands[1].as<const T>(), *sum = call.operands[2].as<const T>();
  T* y = call.results[0].as<T>();
  with_statistic(
      call.operands[0], call.ints,
      [=](Index i, Index s, Index n) {
        exponentials(x + i, largest[s], y + i, n);
        array(y + i, n) *= 1 / sum[s];
      },
      [=](Index i, Index s, Index n) {
        array(y + i, n) = array(x + i, n) - array(largest + s, n);
        exponentials(y + i, T{0}, y + i, n);
        array(y + i, n) /= array(sum + s, n);
      });
}
/// (y, g): the sum of y g
template <class T>
void row_product(const Call& call) {
  const T *y = call.operands[0].as<const T>(), *g = call.operands[1].as<const T>();
  T* product = call.results[0].as<T>();
  array(product, call.results[0].elements()).setZero();
  with_statistic(
      call.operands[0], call.ints, [=](Index i, Index s, Index n) { product[s] += inner_product(y + i, g + i, n); },
      [=](Index i, Index s, Index n) { array(product + s, n) += array(y + i, n) * array(g + i, n); });
}
/// (y, g, product): y (g - product)
template <class T>
void softmax_gradient(const Call& call) {
  const T *y = call.operands[0].as<const T>(), *g = call.operands[1].as<const T>(), *product = call.operands[2].as<const T>();
  T* out = call.results[0].as<T>();
  with_statistic(
      call.operands[0], call.ints, [=](Index i, Index s, Index n) { array(out + i, n) = array(y + i, n) * (array(g + i, n) - product[s]); },
      [=](Index i, Index s, Index n) { array(out + i, n) = array(y + i, n) * (array(g + i, n) - array(product + s, n)); });
}

}  // namespace parallel::cpu
