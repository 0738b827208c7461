// Matrix products of tensors: dimensions that stand beside each other are one, so that each is a product of matrices,
// or one a batch index.
#pragma once
#include <parallel/device/cpu/parts.hpp>
#include <parallel/device/cpu/product.hpp>
#include <parallel/operation/matmul.hpp>

namespace parallel::internals::cpu {

/// The products of a call (x, w) -> y. ints: operation::Product.
struct Products {
  Index batch, m, n, k;
  bool left_transposed, right_transposed;

  explicit Products(const Call& call) {
    const View &x = call.operands[0], &y = call.results[0];
    const operation::Product p(call.ints);
    const int free_left = x.rank - p.batch - p.contracted;
    batch = x.extent(0, p.batch);
    m = y.extent(p.batch, p.batch + free_left);
    n = y.extent(p.batch + free_left, y.rank);
    k = p.left_transposed ? x.extent(p.batch, p.batch + p.contracted) : x.extent(x.rank - p.contracted, x.rank);
    left_transposed = p.left_transposed != 0;
    right_transposed = p.right_transposed != 0;
  }
  template <class T>
  Matrix<const T> left(const Call& call, Index b) const {
    return {call.operands[0].as<const T>() + b * m * k, left_transposed ? m : k, left_transposed};
  }
  template <class T>
  Matrix<const T> right(const Call& call, Index b) const {
    return {call.operands[1].as<const T>() + b * k * n, right_transposed ? k : n, right_transposed};
  }
};
/// `finish` is given where there is one product and not a batch of them.
template <class T>
void product(const Call& call, const Finish& finish) {
  const Products p(call);
  for (Index b = 0; b < p.batch; ++b)
    multiply<T>(p.m, p.n, p.k, 1, p.left<T>(call, b), p.right<T>(call, b),
                {call.results[0].as<T>() + b * p.m * p.n, p.n}, false, finish);
}
template <class T>
void matmul(const Call& call) {
  product<T>(call, {});
}

/// The same of bf16, where the library that multiplies has it.
inline void matmul_bf16(const Call& call) {
  const Products p(call);
  const View& y = call.results[0];
  if (p.m * p.n * p.k == 0) return zero(y);
  ProductOfBf16 multiply_one(p.m, p.n, p.k, p.left<bfloat16>(call, 0), p.right<bfloat16>(call, 0), y.dtype);
  for (Index b = 0; b < p.batch; ++b)
    multiply_one(p.left<bfloat16>(call, b).data, p.right<bfloat16>(call, b).data,
                 y.as<std::byte>() + b * p.m * p.n * bytes_of(y.dtype));
}

}  // namespace parallel::internals::cpu
