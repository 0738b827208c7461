// Matrix products of tensors: dimensions that stand beside each other are one, so that each is a product of matrices,
// or one a batch index.
#pragma once
#include <parallel/device/cpu/parts.hpp>
#include <parallel/device/cpu/product.hpp>
#include <parallel/device/cpu/team.hpp>
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
/// out[m, n] = left[m, k] * right[k, n], by the threads of a team: each has some rows, or columns, so that what all of
/// them pack is the smaller operand. Parts begin where a thread alone has other registers, too, hence the same bits.
template <class T>
void multiply(Team* team, Index m, Index n, Index k, const Matrix<const T>& left, const Matrix<const T>& right,
              const Matrix<T>& out, const Finish& finish, const Panels<T>& kept = {}) {
  const Tiles<T> tiles(m, n, k);
  const auto part = [&](Index row, Index rows, Index column, Index columns) {
    const Finish own{finish.tile, finish.call, row, column};
    multiply<T>(tiles, rows, columns, k, 1, left.from_row(row), right.from_column(column),
                out.from_row(row).from_column(column), false, own, kept.from(column * k));
  };
  if (m < n)
    each_part(team, n, account::cpu::column_unit(sizeof(T)), [&](Index j, Index end) { part(0, m, j, end - j); });
  else
    each_part(team, m, account::cpu::row_unit, [&](Index i, Index end) { part(i, end - i, 0, n); });
}
/// `finish` is given where there is one product and not a batch of them.
template <class T>
void product(const Call& call, const Finish& finish) {
  const Products p(call);
  const Panels<T> kept = call.packed == nullptr ? Panels<T>() : call.packed->of<T>(call.operands[1].data);
  const auto one = [&](Team* team, Index b) {
    multiply<T>(team, p.m, p.n, p.k, p.left<T>(call, b), p.right<T>(call, b),
                {call.results[0].as<T>() + b * p.m * p.n, p.n}, finish, kept.from(b * p.k * p.n));
  };
  const auto all = static_cast<double>(p.batch * p.m * p.n) * static_cast<double>(p.k);
  Team* const team = team_for(call, all);
  if (team != nullptr && p.batch >= team->size())
    each_unit(team, p.batch, [&](Index b) { one(nullptr, b); });
  else
    for (Index b = 0; b < p.batch; ++b) one(team_for(call, all / static_cast<double>(p.batch)), b);
  if (kept) call.packed->note_packed(call.operands[1].data);
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
