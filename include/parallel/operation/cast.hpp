// The same values in another element type.
#pragma once
#include <parallel/operation/elementwise.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x   result
// S   S
// P   P       by name only: a sum of rounded terms is another sum, so it is completed first
PARALLEL_AHEAD constexpr Signatures cast_table(const Arguments& a) {
  Signatures rows = nonlinear_table(a);
  Signature pending = uniform_row(1, 1, Partial);
  pending.by_name = true;
  rows.push_back(pending);
  return rows;
}
PARALLEL_AHEAD constexpr Shaped cast_shape(const Arguments& a) {
  return {{{static_cast<DType>(a.ints[0]), a.types[0].layout.unplaced()}}, {}};
}
/// A value that its maker has rounded to half of it is taken as it was before. What the user has rounded stays so.
PARALLEL_AHEAD constexpr void cast_lower(Lowering& l) {
  const Node& maker = l.trace.graph.maker(l.operands[0]);
  const bool by_user = maker.operation == &cast && maker.origin >= 0 &&
                       l.trace.graph.origins[maker.origin].operation->lower == cast_lower;
  const int before = by_user ? -1 : casting::before(l.trace.graph, l.operands[0], l.results[0].dtype);
  l.result = before >= 0 ? before : l.emit(cast, {l.operands[0]}, l.results, l.ints);
}
/// What the user casts; ints: the new element type.
inline constexpr Operation casting{
    .name = "cast", .shape = cast_shape, .signatures = cast_table, .element_by_element = 1, .lower = cast_lower};
}  // namespace operation

/// cast<double>(x).
template <class T, Distributed X>
constexpr auto cast(const X& x, Here here = {}) {
  if constexpr (!internals::is_element_type<T>)
    return internals::mistaken<Reason::no_element_type, X, static_cast<int>(sizeof(T))>();
  else
    return Apply<operation::casting, static_cast<int>(internals::dtype_of<T>)>{}(here, x);
}
/// To a value for a type: refused.
template <DType, Distributed X>
constexpr auto cast(const X&) {
  return internals::mistaken<Reason::no_element_type, X>();
}

}  // namespace parallel
