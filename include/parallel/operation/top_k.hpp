// The k largest elements along a dimension, and where they stand.
#pragma once
#include <parallel/operation/cumulative.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x                 positions
// S, other          S
// S, along          no row: it is gathered before
PARALLEL_AHEAD constexpr Shaped top_k_shape(const Arguments& a) {
  Shaped shaped = softmax_shape(a);
  shaped.results[0].dtype = DType::i32;
  if (shaped.refusal) return shaped;
  const int dim = static_cast<int>(a.ints[0]);
  if (a.ints[1] < 1 || a.ints[1] > a.size(0, dim)) shaped.refusal = {Reason::top_k, {a.ints[1], a.size(0, dim)}};
  shaped.results[0].layout.dims[dim] = Dim(a.ints[1]);
  return shaped;
}
/// ints: dimension, k. The positions of the k largest along it, the largest first.
inline constexpr Operation top_k_positions{
    .name = "top_k", .shape = top_k_shape, .signatures = along_table, .flops = elements_of_operand};

// x                 positions   result
// S, other          S           S
// P                 B           P
PARALLEL_AHEAD constexpr Shaped chosen_shape(const Arguments& a) {
  const Type result{a.types[0].dtype, a.types[1].layout.unplaced()};
  for (int d = 0; d < a.rank(0); ++d)
    if (d != a.ints[0] && a.size(0, d) != a.size(1, d))
      return {{result}, {Reason::shapes_differ, {a.size(0, d), a.size(1, d)}}};
  return {{result}, {}};
}
PARALLEL_AHEAD constexpr Signatures chosen_table(const Arguments& a) {
  Signatures rows{uniform_row(2, 1, Broadcast), linear_row(2, 0)};
  for (int d = 0; d < a.rank(0); ++d)
    if (a.size(0, d) > 1 && d != a.ints[0]) rows.push_back({{split(d), split(d)}, {split(d)}});
  return rows;
}
PARALLEL_AHEAD constexpr void chosen_positions_gradient(Gradient&);
/// (x, positions): the elements at these positions of dimension ints[0]
inline constexpr Operation chosen{.name = "chosen",
                                  .shape = chosen_shape,
                                  .signatures = chosen_table,
                                  .gradient = chosen_positions_gradient,
                                  .flops = no_flops,
                                  .reads_part_of = 0};
/// (positions, g): g at these positions, and 0 elsewhere
inline constexpr Operation chosen_derivative{.name = "chosen_gradient", .flops = no_flops};
PARALLEL_AHEAD constexpr void chosen_positions_gradient(Gradient& g) {
  g.give(0, chosen_derivative, {g.operand(1), g.cotangent()}, {g.node.ints[0]});
}
}  // namespace operation

/// What `top_k` gives: `const auto [values, positions] = top_k<1, 5>(x);`
template <class Values, class Positions>
struct TopK {
  Values values;
  Positions positions;  ///< whole numbers
};
/// top_k<1, 5>(x): the five largest along dimension 1, the largest first, and their positions; of equal ones the first.
/// What is no number is the largest. The gradient goes to the elements that were taken.
template <int dim, int k, Distributed X>
constexpr auto top_k(const X& x, Here here = {}) {
  const auto positions = Apply<operation::top_k_positions, dim, k>{}(here, x);
  const auto values = Apply<operation::chosen, dim>{}(here, x, positions);
  return TopK<std::remove_const_t<decltype(values)>, std::remove_const_t<decltype(positions)>>{values, positions};
}

}  // namespace parallel
