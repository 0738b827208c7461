// Operations of optimizers that look at a matrix or at a layer as a whole: sums of squares, what Adafactor makes of
// them. No user of a model calls them; an optimizer of your own may.
#pragma once
#include <parallel/operation/elementwise.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {

// x, a parameter or its gradient, is split along d       rows        columns     of a layer
// d neither of the last two, nor the layers              Sd          Sd          P
// the layers                                             S0          S0          S0
// the last but one                                       Sd          P           P
// the last                                               P           S(d-1)      P
// flat                                                   P           P           P

/// A parameter as matrices: its last two dimensions, one for every index before them. Of what looks at layers the last
/// of the whole numbers, behind all others, says whether the first dimension counts layers: an operation of yours ends
/// its `ints` with `u.stacked()`.
struct Matrices {
  int rank = 0;
  bool stacked = false;
  constexpr explicit Matrices(const Arguments& a)
      : rank(a.rank(0)), stacked(!a.ints.empty() && a.ints[a.ints.size() - 1] != 0) {}

  /// Index d + 1 is dimension d; an extent of 1 has none.
  static constexpr IndexLabels all(const Arguments& a) {
    IndexLabels labels;
    for (int d = 0; d < a.rank(0); ++d) labels.push_back(a.size(0, d) > 1 ? d + 1 : 0);
    return labels;
  }
  /// Without one of the last two dimensions, or both.
  static constexpr IndexLabels without(const Arguments& a, bool rows, bool columns) {
    const IndexLabels every = all(a);
    IndexLabels labels;
    for (int d = 0; d < every.size(); ++d)
      if (!(rows && d == every.size() - 2) && !(columns && d == every.size() - 1)) labels.push_back(every[d]);
    return labels;
  }
  constexpr IndexLabels layers(const Arguments& a) const {
    IndexLabels labels;
    if (stacked) labels.push_back(all(a)[0]);
    return labels;
  }
};
/// The type of what has these dimensions of a tensor.
constexpr Type with_dims_of(const Type& of, DType dtype, bool rows, bool columns) {
  Type type{dtype, {}};
  const int rank = of.layout.rank();
  for (int d = 0; d < rank; ++d)
    if (!(rows && d == rank - 2) && !(columns && d == rank - 1))
      type.layout.dims.push_back(Dim(of.layout.dims[d].size));
  return type;
}
constexpr Type by_layer(const Arguments& a) {
  Type type{DType::f64, {}};
  if (Matrices(a).stacked) type.layout.dims.push_back(Dim(a.size(0, 0)));
  return type;
}
constexpr Signatures table_of(const Arguments& a, const List<IndexLabels, max_operands>& operands,
                              const List<IndexLabels, max_results>& results) {
  Signatures rows{uniform_row(operands.size(), results.size(), Broadcast)};
  for (const int label : Matrices::all(a))
    if (label > 0) rows.push_back(split_row(operands, results, label));
  return rows;
}
PARALLEL_AHEAD constexpr std::int64_t four_of_each(const Arguments& a) { return 4 * a.types[0].layout.elements(); }

PARALLEL_AHEAD constexpr Shaped layer_squares_shape(const Arguments& a) { return {{by_layer(a)}, {}}; }
PARALLEL_AHEAD constexpr Signatures layer_squares_table(const Arguments& a) {
  return table_of(a, {Matrices::all(a)}, {Matrices(a).layers(a)});
}
PARALLEL_AHEAD constexpr std::int64_t two_of_each(const Arguments& a) { return 2 * a.types[0].layout.elements(); }
/// The sum of the squares of a tensor, of a stack of layers one for each, in f64: what the norm of a parameter, or of
/// its gradient, is made from. ints: whether the first dimension counts layers.
inline constexpr Operation layer_squares{.name = "layer_squares",
                                         .shape = layer_squares_shape,
                                         .signatures = layer_squares_table,
                                         .flops = two_of_each,
                                         .of_flat = true};

PARALLEL_AHEAD constexpr Shaped factored_squares_shape(const Arguments& a) {
  if (a.rank(0) < 2) return {{a.types[0]}, {Reason::wrong_rank, {a.rank(0), 2}}};
  const DType dtype = precise(a.types[0].dtype);
  return {{with_dims_of(a.types[0], dtype, false, true), with_dims_of(a.types[0], dtype, true, false)}, {}};
}
PARALLEL_AHEAD constexpr Signatures factored_squares_table(const Arguments& a) {
  return table_of(a, {Matrices::all(a), {}}, {Matrices::without(a, false, true), Matrices::without(a, true, false)});
}
/// (x, factor): the sums of the squares of factor times x over each row, and over each column, of its matrices.
inline constexpr Operation factored_squares{.name = "factored_squares",
                                            .shape = factored_squares_shape,
                                            .signatures = factored_squares_table,
                                            .flops = four_of_each,
                                            .of_flat = true};

// Adafactor (Shazeer and Stern, 2018). What stands between the last two whole numbers and the positions of scalars is
// said at each.

/// (mean of squares, sums of squares, scalars) -> mean, in place: it takes the share t^-beta2_decay of the
/// sums times the first number. ints: positions of step, beta2_decay, then whether it decays, which is not asked.
inline constexpr Operation adafactor_mean{.name = "adafactor_mean", .updates = true};
/// (mean of squares, gradient, factor, scalars) -> mean, in place: the same by the gradient's own squares.
inline constexpr Operation adafactor_squares{.name = "adafactor_squares", .updates = true};

/// (gradient, factor, rows, columns, mean of rows, scalars): the sum of the squares of an update, by layer, where the
/// update is factor times gradient over the root of rows columns / mean. ints: position of epsilon1, whether stacked.
PARALLEL_AHEAD constexpr Signatures factored_update_table(const Arguments& a) {
  return table_of(a,
                  {Matrices::all(a),
                   {},
                   Matrices::without(a, false, true),
                   Matrices::without(a, true, false),
                   Matrices::without(a, true, true)},
                  {Matrices(a).layers(a)});
}
PARALLEL_AHEAD constexpr std::int64_t eight_of_each(const Arguments& a) { return 8 * a.types[0].layout.elements(); }
inline constexpr Operation factored_update_squares{.name = "factored_update_squares",
                                                   .shape = layer_squares_shape,
                                                   .signatures = factored_update_table,
                                                   .flops = eight_of_each,
                                                   .of_flat = true};
/// (gradient, factor, mean of squares, scalars): the same, where it is over the root of the mean of its own squares.
PARALLEL_AHEAD constexpr Signatures full_update_table(const Arguments& a) {
  return table_of(a, {Matrices::all(a), {}, Matrices::all(a)}, {Matrices(a).layers(a)});
}
inline constexpr Operation full_update_squares{.name = "full_update_squares",
                                               .shape = layer_squares_shape,
                                               .signatures = full_update_table,
                                               .flops = eight_of_each,
                                               .of_flat = true};

PARALLEL_AHEAD constexpr Shaped first_shape(const Arguments& a) {
  return {{{a.types[0].dtype, a.types[0].layout.unplaced()}}, {}};
}
/// (squares of the update, squares of the parameter, scalars): by how much of the update the parameter is changed, by
/// layer; the first number is how many elements a layer has. ints: positions of learning_rate, step, epsilon2,
/// clip_threshold.
inline constexpr Operation adafactor_size{.name = "adafactor_size"};

/// (parameter, gradient, factor, rows, columns, mean of rows, size, scalars) -> parameter, in place. ints: positions of
/// epsilon1, learning_rate, weight_decay, then whether the parameter decays, and whether it is stacked.
PARALLEL_AHEAD constexpr Signatures adafactor_table(const Arguments& a) {
  return table_of(a,
                  {Matrices::all(a),
                   Matrices::all(a),
                   {},
                   Matrices::without(a, false, true),
                   Matrices::without(a, true, false),
                   Matrices::without(a, true, true),
                   Matrices(a).layers(a)},
                  {Matrices::all(a)});
}
inline constexpr Operation adafactor{.name = "adafactor",
                                     .shape = first_shape,
                                     .signatures = adafactor_table,
                                     .flops = eight_of_each,
                                     .updates = true,
                                     .of_flat = true};
/// (parameter, gradient, factor, mean of squares, size, scalars) -> parameter, in place. ints as of `adafactor`.
PARALLEL_AHEAD constexpr Signatures adafactor_full_table(const Arguments& a) {
  return table_of(a, {Matrices::all(a), Matrices::all(a), {}, Matrices::all(a), Matrices(a).layers(a)},
                  {Matrices::all(a)});
}
inline constexpr Operation adafactor_full{.name = "adafactor_full",
                                          .shape = first_shape,
                                          .signatures = adafactor_full_table,
                                          .flops = eight_of_each,
                                          .updates = true,
                                          .of_flat = true};

// Muon (Jordan et al., 2024).

/// (momentum, gradient, factor, scalars) -> momentum, in place, which takes 1 - momentum of the gradient. ints:
/// position of momentum.
inline constexpr Operation muon_momentum{.name = "muon_momentum", .updates = true};
/// (gradient, momentum, factor, scalars): where Nesterov's momentum goes. ints: position of momentum.
inline constexpr Operation muon_direction{.name = "muon_direction"};
/// (matrices, sums of their squares) -> matrices, in place: each over its Frobenius norm, which is at least the first
/// number.
PARALLEL_AHEAD constexpr Signatures normalized_table(const Arguments& a) {
  IndexLabels layers;
  layers.push_back(Matrices::all(a)[0]);
  return table_of(a, {Matrices::all(a), layers}, {Matrices::all(a)});
}
inline constexpr Operation normalized{
    .name = "normalized", .shape = first_shape, .signatures = normalized_table, .updates = true};
/// (x, y) -> x, in place: the first number times x, and the second times y.
inline constexpr Operation weighted_sum{.name = "weighted_sum", .updates = true};
/// (parameter, orthogonal, scalars) -> parameter, in place; the first number times the learning rate is the step. ints:
/// positions of learning_rate, weight_decay, then whether the parameter decays.
inline constexpr Operation muon{.name = "muon", .updates = true};
inline constexpr Operation muon_matching_adamw{.name = "muon_matching_adamw", .updates = true};  ///< as muon

}  // namespace operation
}  // namespace parallel
