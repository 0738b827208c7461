// One operation on all axes: the rule of derivation axis by axis, put together into the layouts with which the operands
// enter and the results leave.
#pragma once
#include <parallel/graph/graph.hpp>

namespace parallel::internals {

struct Inference {
  List<Layout, max_operands> to{};  ///< how each operand enters
  List<Type, max_results> results{};
  Kind kind = Kind::data;       ///< of the results
  AxisList exchanging{};        ///< axes on which the operation has collectives of its own
  List<int, max_axes> rules{};  ///< per axis of `axes`: the rule that decided
  AxisList axes{};
  Refusal refusal{};
};

constexpr Kind kind_of(const Arguments& a) {
  bool data = true, parameter = true, constant = true;
  for (const Kind k : a.kinds) {
    if (k == Kind::refused) return Kind::refused;
    constant = constant && k == Kind::constant;
    data = data && (k == Kind::data || k == Kind::constant);
    parameter = parameter && (k == Kind::parameter || k == Kind::constant);
  }
  return constant ? Kind::constant : data ? Kind::data : parameter ? Kind::parameter : Kind::activation;
}

/// The axes of all operands, in the order in which they are first named.
constexpr AxisList named_axes(const Arguments& a) {
  AxisList axes;
  for (const Type& t : a.types) {  // dimensions first: the order of other annotations has no meaning
    Layout split = t.layout;
    split.others.count = 0;
    split.collect(axes);
  }
  for (const Type& t : a.types) t.layout.collect(axes);
  return axes;
}

/// Whether an operand splits a dimension by this axis within one of some others.
constexpr bool lies_within(const Axis* axis, const AxisList& others, const Arguments& a) {
  for (const Type& t : a.types)
    for (const Dim& d : t.layout.dims)
      for (const Axis* outer : d) {
        if (outer == axis || !d.split_by(axis)) break;
        if (others.contains(outer)) return true;
      }
  return false;
}
/// The same in an order that contradicts the nesting of no operand: an outer axis of a dimension before the inner ones.
/// Where there is none, as operands nest differently, what is left comes last.
constexpr AxisList axes_of(const Arguments& a) {
  AxisList left = named_axes(a), axes;
  while (!left.empty()) {
    int next = 0;
    while (next < left.size() && lies_within(left[next], left, a)) ++next;
    if (next == left.size()) next = 0;
    axes.push_back(left[next]);
    left.erase(next);
  }
  return axes;
}

/// Whether some dimension nests axes in another order than `axes`.
constexpr bool nests_otherwise(const Layout& layout, const AxisList& axes) {
  for (const Dim& d : layout.dims) {
    int last = -1;
    for (const Axis* a : d) {
      int place = 0;
      while (axes[place] != a) ++place;
      if (place < last) return true;
      last = place;
    }
  }
  return false;
}

/// The row in which operands lie flat, each rank having some of their elements, if the operation's rows say that it can
/// be cut along every dimension of these together: an operand that all of them split is flat, any other is whole, and a
/// result that is not split along with it is a sum of what the ranks make of their elements.
/// `sums`: also such results.
constexpr Signatures flat_rows(const Signatures& rows, const Arguments& a, const EnteringList& entering, int results,
                               bool sums) {
  Signature flat;
  bool first = true;
  int leading = 0;
  while (!entering[leading].placement.flat) ++leading;
  const Placement placed = entering[leading].placement;
  for (int d = placed.dim; d < (placed.alone ? placed.dim + 1 : a.rank(leading)); ++d) {
    const Signature* found = nullptr;
    for (const Signature& row : rows) {
      bool fits = !row.communicates && !row.by_name;
      for (int i = 0; i < entering.size(); ++i)
        fits = fits && (!entering[i].placement.flat || row.operands[i] == split(d));
      if (fits && found == nullptr) found = &row;
    }
    if (found == nullptr) return {};
    if (first) {
      for (const Placement& p : found->operands) flat.operands.push_back(p == split(d) ? placed : Broadcast);
      for (const Placement& p : found->results) flat.results.push_back(p == split(d) ? placed : Partial);
    }
    for (int i = 0; i < entering.size(); ++i)
      if (!(found->operands[i] == split(d))) flat.operands[i] = Broadcast;
    for (int r = 0; r < results; ++r) {
      const Placement p = found->results[r];
      if (!p.split() && !p.pending()) return {};
      if (!(p == split(d))) flat.results[r] = Partial;
    }
    first = false;
  }
  for (int i = 0; i < entering.size(); ++i)  // what has other dimensions in front is not cut along with them
    if (!placed.alone && flat.operands[i].split() && !same_extents(a.types[i].layout, a.types[leading].layout))
      return {};
  for (int r = 0; r < results; ++r)  // padding may be no zero
    if (!sums && flat.results[r].pending()) return {};
  return {flat};
}

/// In what orders dimensions stand: a row that splits a dimension treats its slices alike, so the operation treats its
/// elements alike, and what the row splits along with it stands in the same order; of a row that communicates, as a
/// ring, what has as many elements. What is whole is brought to that. An operation that counts elements of a dimension
/// which it splits refuses orders by its shape (`operation::counted`).
constexpr Refusal stand(Inference& result, const Arguments& a, const Signatures& rows) {
  for (int i = 0; i < a.types.size(); ++i)
    for (int d = 0; d < a.rank(i); ++d) {
      const Dim as = a.dims(i)[d];
      if (!as.ordered() || as.size == 1) continue;  // tables have no row for an extent of 1
      bool stands = false, slices = false;
      for (const Signature& row : rows) {
        if (stands || !(row.operands[i] == split(d))) continue;
        List<Dim*, max_operands + max_results> along;
        for (int j = 0; j < a.types.size(); ++j)
          if (const Placement p = row.operands[j]; p.split()) along.push_back(&result.to[j].dims[p.dim]);
        const int entering = along.size();
        for (int r = 0; r < result.results.size(); ++r)
          if (const Placement p = row.results[r]; p.split()) along.push_back(&result.results[r].layout.dims[p.dim]);
        bool alike = true, agree = true;
        for (int j = 0; j < along.size(); ++j) {
          const Dim& dim = *along[j];
          alike = alike && (row.communicates || dim.size == as.size);
          agree = agree &&
                  (j >= entering || dim.size != as.size || dim.ordered_as(as) || (!dim.ordered() && dim.count == 0));
        }
        slices = slices || alike;
        stands = alike && agree;
        for (Dim* dim : along)
          if (stands && dim->size == as.size) *dim = dim->standing_as(as);
      }
      if (!stands) return {slices ? Reason::orders_differ : Reason::order_unknown, {d, a.rank(i)}, as.ordered_for};
    }
  return {};
}

/// How the rule lets an operation be applied, or why not: without a program, for whoever asks what it would do.
constexpr Inference infer(const Operation& operation, const Arguments& a) {
  Inference result;
  if (operation.shape == nullptr || operation.signatures == nullptr) {
    result.results.push_back(a.types.empty() ? Type{} : a.types[0]);
    result.kind = Kind::refused;
    if (kind_of(a) != Kind::refused) result.refusal = {Reason::operation_table, {a.types.size(), 0}};
    return result;
  }
  const Shaped shaped = operation.shape(a);
  result.kind = kind_of(a);
  for (const Type& t : a.types) result.to.push_back(t.layout);
  for (const Type& t : shaped.results) result.results.push_back({t.dtype, t.layout.unplaced()});
  if (result.kind == Kind::refused) return result;
  const auto refuse = [&](const Refusal& why) {
    result.refusal = why;
    result.kind = Kind::refused;
  };
  if (shaped.refusal) {
    refuse(shaped.refusal);
    return result;
  }

  const Signatures rows = operation.signatures(a);
  for (const Signature& row : rows)
    if (row.operands.size() != a.types.size() || row.results.size() != shaped.results.size()) {
      refuse({Reason::operation_table, {row.operands.size(), row.results.size()}});
      return result;
    }
  if (const Refusal refusal = stand(result, a, rows)) {
    refuse(refusal);
    return result;
  }
  result.axes = internals::axes_of(a);
  if (const Axis* axis = namesake(result.axes)) {
    refuse({Reason::same_name, {2}, axis});
    return result;
  }
  for (const Axis* axis : result.axes) {
    EnteringList entering;
    for (int i = 0; i < a.types.size(); ++i)
      entering.push_back({a.types[i].layout.on(axis), a.kinds[i], (operation.element_by_element >> i & 1) != 0});
    bool flat = false, alone = true;
    for (const Entering& e : entering) {
      flat = flat || e.placement.flat;
      alone = alone && (!e.placement.flat || e.placement.alone);
    }
    const int results = shaped.results.size();
    Signatures of_flat;
    if (flat && (alone || operation.of_flat)) {
      Arguments several = a;  // tables have no row for an extent of 1, which one rank has
      for (int i = 0; i < a.types.size(); ++i)
        for (int d = 0; d < (alone ? 1 : a.rank(i)); ++d)
          if ((!alone || entering[i].placement.flat) && a.size(i, d) == 1) several.types[i].layout.dims[d].size = 2;
      of_flat = flat_rows(operation.signatures(several), several, entering, results, operation.of_flat);
    }
    const Derived derived = derive(flat ? of_flat : rows, entering, results);
    result.rules.push_back(derived.rule);
    if (derived.refusal) {
      refuse(derived.refusal);
      result.refusal.axis = axis;
      return result;
    }
    for (int i = 0; i < a.types.size(); ++i) {
      Placement to = derived.to[i];
      if (entering[i].data() && to.whole()) {  // it counts as what the row asks and needs no retype: it has no gradient
        if (entering[i].placement.whole()) to = entering[i].placement;
        if (entering[i].placement.pending()) to = Invariant;
      }
      if (!(to == entering[i].placement)) result.to[i] = result.to[i].with(axis, to);
    }
    for (int r = 0; r < shaped.results.size(); ++r)
      result.results[r].layout = result.results[r].layout.with(axis, derived.results[r]);
    if (derived.communicates) {
      if (operation.lower == nullptr) {
        refuse({Reason::no_lowering, {a.rank(0)}, axis});
        return result;
      }
      result.exchanging.push_back(axis);
    }
  }
  for (int i = 0; i < a.types.size(); ++i)
    if (nests_otherwise(a.types[i].layout, result.axes) || nests_otherwise(result.to[i], result.axes) ||
        !route(standing_as(a.types[i].layout, result.to[i]), result.to[i]).arrives)
      refuse({Reason::nested_otherwise, {i, a.types[i].layout.rank()}});
  if (!result.refusal && operation.over_axes != nullptr) {
    Arguments entering = a;
    for (int i = 0; i < a.types.size(); ++i) entering.types[i].layout = result.to[i];
    if (const Refusal refusal = operation.over_axes(entering)) refuse(refusal);
  }
  return result;
}

}  // namespace parallel::internals

namespace parallel {
using internals::infer;
using internals::Inference;
}  // namespace parallel
