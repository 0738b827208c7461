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
[[gnu::flatten]] void sum_of_exponentials(const Call& call) {
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
      [=](Index i, Index s, Index n) {
        in_registers(n, [=](Index j, auto k) { array(sum + s + j, k) += exponential(array(x + i + j, k) - array(largest + s + j, k)); });
      });
}
/// (x, max, sum): exp(x - max) / sum
template <class T>
[[gnu::flatten]] void normalized_exponential(const Call& call) {
  const T *x = call.operands[0].as<const T>(), *largest = call.operands[1].as<const T>(), *sum = call.operands[2].as<const T>();
  T* y = call.results[0].as<T>();
  with_statistic(
      call.operands[0], call.ints,
      [=](Index i, Index s, Index n) {
        in_registers(n, [=, m = largest[s], share = 1 / sum[s]](Index j, auto k) { array(y + i + j, k) = exponential(array(x + i + j, k) - m) * share; });
      },
      [=](Index i, Index s, Index n) {
        in_registers(n, [=](Index j, auto k) {
          array(y + i + j, k) = exponential(array(x + i + j, k) - array(largest + s + j, k)) / array(sum + s + j, k);
        });
      });
}
/// (y, g): the sum of y g
template <class T>
[[gnu::flatten]] void row_product(const Call& call) {
  const T *y = call.operands[0].as<const T>(), *g = call.operands[1].as<const T>();
  T* product = call.results[0].as<T>();
  array(product, call.results[0].elements()).setZero();
  with_statistic(
      call.operands[0], call.ints, [=](Index i, Index s, Index n) { product[s] += inner_product(y + i, g + i, n); },
      [=](Index i, Index s, Index n) {
        in_registers(n, [=](Index j, auto k) { array(product + s + j, k) += array(y + i + j, k) * array(g + i + j, k); });
      });
}
/// (y, g, product): y (g - product)
template <class T>
[[gnu::flatten]] void softmax_gradient(const Call& call) {
  const T *y = call.operands[0].as<const T>(), *g = call.operands[1].as<const T>(), *product = call.operands[2].as<const T>();
  T* out = call.results[0].as<T>();
  with_statistic(
      call.operands[0], call.ints,
      [=](Index i, Index s, Index n) {
        in_registers(n, [=, inner = product[s]](Index j, auto k) { array(out + i + j, k) = array(y + i + j, k) * (array(g + i + j, k) - inner); });
      },
      [=](Index i, Index s, Index n) {
        in_registers(n, [=](Index j, auto k) { array(out + i + j, k) = array(y + i + j, k) * (array(g + i + j, k) - array(product + s + j, k)); });
      });
}

}  // namespace parallel::cpu
