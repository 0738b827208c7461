// What operations that act element by element share: broadcasting of shapes, their indices, sums and products as
// tables.
#pragma once
#include <parallel/graph/gradient.hpp>
#include <parallel/operation/apply.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {

/// Whether operand i holds whole numbers, as an index, a target or a mask must.
constexpr Refusal whole_numbers(const Arguments& a, int i) {
  return a.types[i].dtype == DType::i32 ? Refusal{} : Refusal{Reason::whole_numbers, {bytes_of(a.types[i].dtype)}};
}
/// Of an operation that counts the elements of a dimension which it may split: whether they stand as they are counted.
constexpr Refusal counted(const Arguments& a, int i, std::int64_t d) {
  if (d < 0 || d >= a.rank(i) || !a.dims(i)[static_cast<int>(d)].ordered()) return {};
  return {Reason::order_unknown, {d, a.rank(i)}, a.dims(i)[static_cast<int>(d)].ordered_for};
}
/// Whether the operands from `first` on have one element type.
constexpr Refusal one_element_type(const Arguments& a, int first = 0) {
  const DType dtype = a.types[first].dtype;
  for (int i = first; i < a.types.size(); ++i)
    if (a.types[i].dtype != dtype) return {Reason::element_types, {bytes_of(dtype), bytes_of(a.types[i].dtype)}};
  return {};
}

/// Whether two operands are one shape but for dimensions of 1 that one alone has, [16, 1] and [16], and would repeat
/// each other: NumPy gives all pairs, which is seldom what is meant. Where both have all dimensions it is.
constexpr Refusal all_pairs(const Arguments& a, const Layout& result) {
  const auto grows = [&](int i) {
    std::int64_t all = 1, own = 1;
    for (const Dim& d : result.dims) all *= d.size;
    for (int d = 0; d < a.rank(i); ++d) own *= a.size(i, d);
    return own < all;
  };
  const auto meet = [&](int i, int j) {
    int d = 0, e = 0, same = 0;
    while (true) {
      while (d < a.rank(i) && a.size(i, d) == 1) ++d;
      while (e < a.rank(j) && a.size(j, e) == 1) ++e;
      if (d == a.rank(i) || e == a.rank(j)) return same > 0 && d == a.rank(i) && e == a.rank(j);
      if (a.size(i, d++) != a.size(j, e++)) return false;
      ++same;
    }
  };
  for (int i = 0; i < a.types.size(); ++i)
    if (!grows(i)) return {};
  for (int i = 0; i < a.types.size(); ++i)
    for (int j = 0; j < a.types.size(); ++j)
      if (a.rank(i) < a.rank(j) && meet(i, j)) return {Reason::all_pairs, {a.size(i, 0)}};
  return {};
}
/// The broadcast shape of all operands from `first` on, aligned at the last dimension; an extent of 1 or a missing
/// dimension repeats.
constexpr Shaped broadcast_shape(const Arguments& a, int first = 0) {
  int rank = 0;
  for (const Type& t : a.types) rank = t.layout.rank() > rank ? t.layout.rank() : rank;
  Type result{a.types[first].dtype, {}};
  for (int d = 0; d < rank; ++d) {
    std::int64_t size = 1;
    for (int i = 0; i < a.types.size(); ++i) {
      const int own = d - rank + a.rank(i);
      if (own < 0) continue;
      const std::int64_t n = a.size(i, own);
      if (size != 1 && n != 1 && n != size) return {{result}, {Reason::shapes_differ, {size, n}}};
      if (n != 1) size = n;
    }
    result.layout.dims.push_back(Dim(size));
  }
  const Refusal pairs = all_pairs(a, result.layout);
  return {{result}, pairs ? pairs : one_element_type(a, first)};
}
PARALLEL_AHEAD constexpr Shaped all_broadcast(const Arguments& a) { return broadcast_shape(a); }

struct Indices {
  List<IndexLabels, max_operands> operands{};
  List<IndexLabels, max_results> results{};
  int labels = 0;
};
/// Index d + 1 is dimension d of the result; an extent of 1 that repeats has no index.
constexpr Indices broadcast_indices(const Arguments& a) {
  const Layout result = broadcast_shape(a).results[0].layout;
  Indices indices;
  indices.labels = result.rank();
  IndexLabels all;
  for (int d = 0; d < result.rank(); ++d) all.push_back(result.dims[d].size > 1 ? d + 1 : 0);
  indices.results.push_back(all);
  for (int i = 0; i < a.types.size(); ++i) {
    IndexLabels own;
    for (int d = 0; d < a.rank(i); ++d) {
      const int of_result = d + result.rank() - a.rank(i);
      own.push_back(a.size(i, d) == result.dims[of_result].size ? all[of_result] : 0);
    }
    indices.operands.push_back(own);
  }
  return indices;
}
constexpr bool has_label(const IndexLabels& labels, int label) {
  for (const int l : labels)
    if (l == label) return true;
  return false;
}
/// Whole rows, and a row for every index that the result has.
constexpr Signatures split_and_whole(const Indices& indices, int results = 1) {
  Signatures rows{uniform_row(indices.operands.size(), results, Broadcast)};
  for (int label = 1; label <= indices.labels; ++label) {
    bool used = false;
    for (const IndexLabels& r : indices.results) used = used || has_label(r, label);
    if (used) rows.push_back(split_row(indices.operands, indices.results, label));
  }
  return rows;
}

/// A sum: every operand may be pending, all together.
PARALLEL_AHEAD constexpr Signatures sum_table(const Arguments& a) {
  Signatures rows = split_and_whole(broadcast_indices(a));
  rows.push_back(uniform_row(a.types.size(), 1, Partial));
  return rows;
}
/// A product: one factor may be pending.
PARALLEL_AHEAD constexpr Signatures product_table(const Arguments& a) {
  Signatures rows = split_and_whole(broadcast_indices(a));
  for (int i = 0; i < a.types.size(); ++i) rows.push_back(linear_row(a.types.size(), i));
  return rows;
}
PARALLEL_AHEAD constexpr Shaped same_shape(const Arguments& a) {
  return {{{a.types[0].dtype, a.types[0].layout.unplaced()}}, {}};
}
/// A function of one number that is not linear.
PARALLEL_AHEAD constexpr Signatures nonlinear_table(const Arguments& a) {
  return split_and_whole(broadcast_indices(a));
}
/// A linear function of one number.
PARALLEL_AHEAD constexpr Signatures linear_table(const Arguments& a) { return sum_table(a); }

/// The gradient of what is constant almost everywhere: its operands have none from it.
PARALLEL_AHEAD constexpr void no_gradient(Gradient&) {}
/// A function of one number that is not linear.
constexpr Operation function_of_one(std::string_view name, void (*gradient)(Gradient&), Rate rate = Rate::functions) {
  return {.name = name,
          .shape = same_shape,
          .signatures = nonlinear_table,
          .element_by_element = 1,
          .gradient = gradient,
          .rate = rate};
}
/// A function of two numbers; its table says in which of them it is linear.
constexpr Operation function_of_two(std::string_view name, Signatures (*table)(const Arguments&),
                                    void (*gradient)(Gradient&)) {
  return {.name = name, .shape = all_broadcast, .signatures = table, .element_by_element = 3, .gradient = gradient};
}
/// The price of what only moves elements, or not even that.
PARALLEL_AHEAD constexpr std::int64_t no_flops(const Arguments&) { return 0; }

PARALLEL_AHEAD constexpr std::int64_t elements_of_operand(const Arguments& a) { return a.types[0].layout.elements(); }
/// Sums over the dimensions along which an operand was repeated, down to the result's shape.
inline constexpr Operation sum_to{.name = "sum_to", .flops = elements_of_operand};

/// Gives operand i of a broadcasting operation the gradient `value`, which has the result's shape.
constexpr void give_repeated(Gradient& g, int i, int value) {
  if (!g.wants(i)) return;
  if (same_extents(g.type(i).layout, g.result_type().layout))
    g.give(i, value);
  else
    g.give(i, sum_to, {value});
}
/// The type of a gradient that has the result's shape, for operand i: the operand's placement says how the ranks' terms
/// are to be read.
constexpr Type repeated_type(const Gradient& g, int i) {
  Type type = conjugate(g.result_type());
  const Layout own = g.type(i).layout;
  AxisList axes;
  own.collect(axes);
  type.layout.collect(axes);
  for (const Axis* a : axes)
    if (!type.layout.on(a).split()) type.layout = type.layout.with(a, conjugate(own.on(a)));
  return type;
}

}  // namespace operation
}  // namespace parallel
