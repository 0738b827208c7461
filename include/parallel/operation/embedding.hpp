// Rows of a table, by index.
#pragma once
#include <parallel/operation/elementwise.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// index   table[V, h]   result[..., h] S       B             S              the gradient of the table is Partial B
// S1            S, last B       S0            P              each rank looks up the rows that it holds, zeros for the
// others (vocabulary parallel) B       P             P
PARALLEL_AHEAD constexpr Shaped embedding_shape(const Arguments& a) {
  Type result{a.types[1].dtype, a.types[0].layout.unplaced()};
  if (const Refusal refusal = whole_numbers(a, 0)) return {{result}, refusal};
  if (a.rank(1) != 2) return {{result}, {Reason::wrong_rank, {a.rank(1), 2}}};
  if (const Refusal refusal = counted(a, 1, 0)) return {{result}, refusal};
  if (a.rank(0) + 1 > max_rank) return {{result}, {Reason::wrong_rank, {a.rank(0), max_rank - 1}}};
  result.layout.dims.push_back(Dim(a.size(1, 1)));
  return {{result}};
}
PARALLEL_AHEAD constexpr Signatures embedding_table(const Arguments& a) {
  Signatures rows{uniform_row(2, 1, Broadcast)};
  for (int d = 0; d < a.rank(0); ++d)
    if (a.size(0, d) > 1) rows.push_back({{split(d), Broadcast}, {split(d)}});
  if (a.size(1, 1) > 1) rows.push_back({{Broadcast, split(1)}, {split(a.rank(0))}});
  if (a.size(1, 0) > 1) rows.push_back({{Broadcast, split(0)}, {Partial}});
  rows.push_back({{Broadcast, Partial}, {Partial}});
  return rows;
}
/// (index, g): the rows of g added up by index
inline constexpr Operation embedding_derivative{.name = "embedding_gradient"};
/// (sum, index, g): sum and the rows of g added up by index, in the storage of sum. Rows that no index names are not
/// touched.
inline constexpr Operation accumulate_rows{.name = "accumulate_rows", .updates = true, .reads_part_of = 0};
PARALLEL_AHEAD constexpr void embedding_gradient(Gradient& g) {
  g.give(1, embedding_derivative, {g.operand(0), g.cotangent()});
}
inline constexpr Operation embedding{.name = "embedding",
                                     .shape = embedding_shape,
                                     .signatures = embedding_table,
                                     .gradient = embedding_gradient,
                                     .flops = no_flops,
                                     .reads_part_of = 1};
}  // namespace operation

/// table[V, h] at index[...], whole numbers from 0 to V - 1: [..., h]. An index outside the table gives a row that is
/// no number.
template <Distributed I, Distributed T>
constexpr auto embedding(const I& index, const T& table, Here here = {}) {
  return Apply<operation::embedding>{}(here, index, table);
}

}  // namespace parallel
