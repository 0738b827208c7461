// The table of an operation on one axis: every way in which its operands may lie so that the ranks' own results are the
// operation's result.
#pragma once
#include <parallel/algebra/placement.hpp>
#include <parallel/algebra/shape.hpp>
#include <parallel/meta/list.hpp>

namespace parallel {
namespace internals {
inline constexpr int max_operands = 8;  ///< of an operation that a user calls
inline constexpr int max_results = 4;
}  // namespace internals

/// One row: operand placements -> result placements. The row of Invariants exists for every operation and is not
/// written.
struct Signature {
  internals::List<Placement, internals::max_operands> operands{};
  internals::List<Placement, internals::max_results> results{};
  /// the ranks exchange something small inside the operation; its collectives stand in the plan
  bool communicates = false;
  bool by_name = false;  ///< sound, but never derived
  /// bit i: an Invariant parameter may join the pending sum as operand i (it is added there, it does not multiply)
  unsigned joins = 255;
};
using Signatures = internals::List<Signature, 32>;

/// The dimensions of an operand or a result by label: equal labels are one index of the operation. 0 is no index (an
/// extent of 1 that broadcasts, or a dimension that must not be split).
using IndexLabels = internals::List<int, internals::max_rank>;

constexpr Placement placed(const IndexLabels& labels, int label, Placement otherwise) {
  for (int d = 0; d < labels.size(); ++d)
    if (labels[d] == label) return internals::split(d);
  return otherwise;
}

/// The row in which an index is split: operands and results that have the index are split along it, other operands are
/// Broadcast, and a result without it is a pending sum.
constexpr Signature split_row(const internals::List<IndexLabels, internals::max_operands>& operands,
                              const internals::List<IndexLabels, internals::max_results>& results, int label) {
  Signature row;
  for (const IndexLabels& o : operands) row.operands.push_back(placed(o, label, Broadcast));
  for (const IndexLabels& r : results) row.results.push_back(placed(r, label, Partial));
  return row;
}

constexpr Signature uniform_row(int operands, int results, Placement everywhere) {
  Signature row;
  for (int i = 0; i < operands; ++i) row.operands.push_back(everywhere);
  for (int i = 0; i < results; ++i) row.results.push_back(everywhere);
  return row;
}

/// The row in which only operand `pending` is a pending sum: the operation is linear in it.
constexpr Signature linear_row(int operands, int pending) {
  Signature row = uniform_row(operands, 1, Broadcast);
  row.operands[pending] = Partial;
  row.results[0] = Partial;
  return row;
}

/// Rows for every index that the results have; `labels` is the largest label.
constexpr void add_split_rows(Signatures& rows, const internals::List<IndexLabels, internals::max_operands>& operands,
                              const internals::List<IndexLabels, internals::max_results>& results, int labels) {
  for (int label = 1; label <= labels; ++label) rows.push_back(split_row(operands, results, label));
}

}  // namespace parallel
