// Matrix products of tensors: dimensions that stand beside each other are one, so that each is a product of matrices,
// or one a batch index.
#pragma once
#include <parallel/device/cpu/product.hpp>
#include <parallel/operation/matmul.hpp>

namespace parallel::internals::cpu {

/// (x, w) -> y. ints: operation::Product. `finish` is given where there is one product and not a batch of them.
template <class T>
void product(const Call& call, const Finish& finish) {
  const View &x = call.operands[0], &w = call.operands[1], &y = call.results[0];
  const operation::Product p(call.ints);
  const Index batch = x.extent(0, p.batch);
  const int free_left = x.rank - p.batch - p.contracted;
  const Index m = y.extent(p.batch, p.batch + free_left), n = y.extent(p.batch + free_left, y.rank);
  const Index k =
      p.left_transposed ? x.extent(p.batch, p.batch + p.contracted) : x.extent(x.rank - p.contracted, x.rank);
  const bool left = p.left_transposed != 0, right = p.right_transposed != 0;
  for (Index b = 0; b < batch; ++b)
    multiply<T>(m, n, k, 1, {x.as<const T>() + b * m * k, left ? m : k, left},
                {w.as<const T>() + b * k * n, right ? k : n, right}, {y.as<T>() + b * m * n, n}, false, finish);
}
template <class T>
void matmul(const Call& call) {
  product<T>(call, {});
}

}  // namespace parallel::internals::cpu
