// Matrix products: x[..., k] times w[k, n...], products in batches, transposed operands.
#pragma once
#include <parallel/operation/transpose.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x[m, k]   w[k, n]   result[m, n] B         B         B       redundant S0        B         S0      data and sequence
// parallel; the gradient of w is Partial B         S1        S1      column parallel; the gradient of x is Partial S1
// S0        P       row parallel P         B         P       a sum stays pending through a linear layer B         P
// P With more dimensions: every kept dimension of x and of w as S0 and S1, every contracted one as (S1, S0), every
// batch dimension (S, S) -> S.

/// The attributes: how many dimensions are contracted, whether the contracted ones come first in x and last in w,
/// leading dimensions in common.
struct Product {
  int contracted, left_transposed, right_transposed, batch;
  constexpr Product(const Ints& i)
      : contracted(static_cast<int>(i[0])),
        left_transposed(static_cast<int>(i[1])),
        right_transposed(static_cast<int>(i[2])),
        batch(static_cast<int>(i[3])) {}
  constexpr Product(int c, int l, int r, int b) : contracted(c), left_transposed(l), right_transposed(r), batch(b) {}
  constexpr operator Ints() const { return {contracted, left_transposed, right_transposed, batch}; }

  constexpr int left_contracted(int rank, int i) const { return left_transposed ? batch + i : rank - contracted + i; }
  constexpr int right_contracted(int rank, int i) const { return right_transposed ? rank - contracted + i : batch + i; }
  constexpr int left_free(int, int i) const { return left_transposed ? batch + contracted + i : batch + i; }
  constexpr int right_free(int, int i) const { return right_transposed ? batch + i : batch + contracted + i; }
};

PARALLEL_AHEAD constexpr Shaped matmul_shape(const Arguments& a) {
  const Product p(a.ints);
  Type result{a.types[0].dtype, {}};
  const int free_left = a.rank(0) - p.batch - p.contracted, free_right = a.rank(1) - p.batch - p.contracted;
  if (free_left < 0) return {{result}, {Reason::wrong_rank, {a.rank(0), p.batch + p.contracted}}};
  if (free_right < 0) return {{result}, {Reason::wrong_rank, {a.rank(1), p.batch + p.contracted}}};
  if (p.batch + free_left + free_right > max_rank)
    return {{result}, {Reason::wrong_rank, {p.batch + free_left + free_right, max_rank}}};
  for (int d = 0; d < p.batch; ++d) {
    if (a.size(0, d) != a.size(1, d)) return {{result}, {Reason::shapes_differ, {a.size(0, d), a.size(1, d)}}};
    result.layout.dims.push_back(Dim(a.size(0, d)));
  }
  for (int i = 0; i < p.contracted; ++i) {
    const std::int64_t left = a.size(0, p.left_contracted(a.rank(0), i)),
                       right = a.size(1, p.right_contracted(a.rank(1), i));
    if (left != right) return {{result}, {Reason::inner_dimensions, {left, right}}};
  }
  for (int i = 0; i < free_left; ++i) result.layout.dims.push_back(Dim(a.size(0, p.left_free(a.rank(0), i))));
  for (int i = 0; i < free_right; ++i) result.layout.dims.push_back(Dim(a.size(1, p.right_free(a.rank(1), i))));
  if (a.types[0].dtype != a.types[1].dtype)
    return {{result}, {Reason::element_types, {bytes_of(a.types[0].dtype), bytes_of(a.types[1].dtype)}}};
  return {{result}, {}};
}

PARALLEL_AHEAD constexpr Signatures matmul_table(const Arguments& a) {
  const Product p(a.ints);
  const int free_left = a.rank(0) - p.batch - p.contracted, free_right = a.rank(1) - p.batch - p.contracted;
  List<IndexLabels, max_operands> operands{IndexLabels{}, IndexLabels{}};
  operands[0].count = a.rank(0);
  operands[1].count = a.rank(1);
  IndexLabels result;
  int labels = 0;
  const auto index_of = [&](std::int64_t size) { return size > 1 ? ++labels : 0; };  // an index of extent 1 is no index
  for (int d = 0; d < p.batch; ++d) {
    operands[0][d] = operands[1][d] = index_of(a.size(0, d));
    result.push_back(operands[0][d]);
  }
  for (int i = 0; i < free_left; ++i) {
    const int d = p.left_free(a.rank(0), i);
    result.push_back(operands[0][d] = index_of(a.size(0, d)));
  }
  for (int i = 0; i < free_right; ++i) {
    const int d = p.right_free(a.rank(1), i);
    result.push_back(operands[1][d] = index_of(a.size(1, d)));
  }
  for (int i = 0; i < p.contracted; ++i) {
    const int left = p.left_contracted(a.rank(0), i);
    operands[0][left] = operands[1][p.right_contracted(a.rank(1), i)] = index_of(a.size(0, left));
  }
  Signatures rows{uniform_row(2, 1, Broadcast)};
  add_split_rows(rows, operands, {result}, labels);
  rows.push_back(linear_row(2, 0));
  rows.push_back(linear_row(2, 1));
  return rows;
}

PARALLEL_AHEAD constexpr std::int64_t matmul_flops(const Arguments& a) {
  const Product p(a.ints);
  std::int64_t n = 2 * a.types[0].layout.elements();
  for (int i = 0; i < a.rank(1) - p.batch - p.contracted; ++i) n *= a.size(1, p.right_free(a.rank(1), i));
  return n;
}

PARALLEL_AHEAD constexpr void matmul_lower(Lowering&);
PARALLEL_AHEAD constexpr void matmul_gradient(Gradient&);
inline constexpr Operation matmul{.name = "matmul",
                                  .shape = matmul_shape,
                                  .signatures = matmul_table,
                                  .lower = matmul_lower,
                                  .gradient = matmul_gradient,
                                  .flops = matmul_flops,
                                  .rate = Rate::products};

/// A transposed matrix is not copied: the product reads it the other way.
PARALLEL_AHEAD constexpr void matmul_lower(Lowering& l) {
  Product p(l.ints);
  for (int i = 0; i < 2 && p.batch == 0 && p.contracted == 1; ++i) {
    const Node maker = l.trace.graph.maker(l.operands[i]);
    if (maker.operation != &transpose || !(maker.ints == Ints{1, 0})) continue;
    l.operands[i] = maker.operands[0];
    int& transposed = i == 0 ? p.left_transposed : p.right_transposed;
    transposed = 1 - transposed;
  }
  l.result = l.emit(matmul, {l.operands[0], l.operands[1]}, l.results, p);
}

/// The gradient of the input comes first, so that its reduction runs while the gradient of the weight is multiplied.
PARALLEL_AHEAD constexpr void matmul_gradient(Gradient& g) {
  const Product p(g.node.ints);
  const int kept = g.result_type().layout.rank() - p.batch;
  const int free_left = g.type(0).layout.rank() - p.batch - p.contracted, free_right = kept - free_left;
  const int x = g.operand(0), w = g.operand(1), dy = g.cotangent();
  if (p.left_transposed == 0)
    g.give(0, matmul, {dy, w}, Product(free_right, 0, 1 - p.right_transposed, p.batch));
  else
    g.give(0, matmul, {w, dy}, Product(free_right, p.right_transposed, 1, p.batch));
  if (p.right_transposed == 0)
    g.give(1, matmul, {x, dy}, Product(free_left, 1 - p.left_transposed, 0, p.batch));
  else
    g.give(1, matmul, {dy, x}, Product(free_left, 1, p.left_transposed, p.batch));
}
}  // namespace operation

/// x[..., k] times w[k, n...]: `matmul(x, w)` contracts the last dimension of x with the first of w, `matmul<2>(x, w)`
/// the last two with the first two.
template <int contracted = 1, Distributed X, Distributed W>
constexpr auto matmul(const X& x, const W& w, Here here = {}) {
  return Apply<operation::matmul, contracted, 0, 0, 0>{}(here, x, w);
}
/// x[b..., m, k] times w[b..., k, n]: one product for every index of the leading dimensions.
template <Distributed X, Distributed W>
constexpr auto batched_matmul(const X& x, const W& w, Here here = {}) {
  return Apply<operation::matmul, 1, 0, 0, X::type.layout.rank() - 2>{}(here, x, w);
}

}  // namespace parallel
