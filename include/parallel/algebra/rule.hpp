// The rule of derivation: from how the operands lie on one axis to the row that the operation takes, the moves before
// it and its result. It looks at placements and kinds only: no mesh, no cost, no look ahead.
#pragma once
#include <parallel/algebra/refusal.hpp>
#include <parallel/algebra/signature.hpp>
#include <parallel/algebra/type.hpp>

namespace parallel::internals {

/// One operand on one axis, as the rule sees it.
struct Entering {
  Placement placement{};
  Kind kind = Kind::activation;
  bool element_by_element = false;
  bool gathered = false;  ///< by rule 5: it moves no further, or the two moves would be an all-to-all

  constexpr bool data() const { return kind == Kind::data || kind == Kind::constant; }
  constexpr bool parameter() const { return kind == Kind::parameter || kind == Kind::constant; }
};
using EnteringList = List<Entering, max_operands>;

struct Derived {
  List<Placement, max_operands> to{};  ///< the placement with which each operand enters
  List<Placement, max_results> results{};
  int rule = 0;               ///< which of the rules 1 to 5 decided
  bool communicates = false;  ///< the row has collectives of its own
  Refusal refusal{};
};

namespace derivation {

/// How freely operands may move so that a row fits; each level allows what those before it allow.
enum class Freedom {
  none,     ///< every operand as it is; whole data is Broadcast as well as Invariant
  data,     ///< whole data may be sliced
  retype,   ///< and an Invariant becomes Broadcast
  slice,    ///< and a whole operand is sliced, where the rule allows it
  pending,  ///< beside a pending sum: element by element, an Invariant parameter joins a sum or becomes Broadcast
};

/// Whether one operand fits what a row asks. `joins`: the row lets it join a pending sum; `split_parameter`: a
/// parameter among the operands is split.
constexpr bool fits(const Entering& operand, Placement asked, Freedom freedom, bool joins, bool split_parameter) {
  const Placement has = operand.placement;
  if (has == asked) return true;
  if (!has.whole() || operand.gathered) return false;
  if (operand.data()) {
    if (asked == Broadcast) return true;
    if (asked.split() && freedom != Freedom::none) return true;
  }
  switch (freedom) {
    case Freedom::retype: return has == Invariant && asked == Broadcast;
    case Freedom::slice:
      if (asked == Broadcast) return has == Invariant;
      return asked.split() && (operand.parameter() ? operand.element_by_element : split_parameter);
    case Freedom::pending:
      return has == Invariant && operand.parameter() && operand.element_by_element &&
             (asked == Broadcast || (asked == Partial && joins));
    default: return false;
  }
}

constexpr bool splits_parameter(const EnteringList& operands) {
  for (const Entering& o : operands)
    if (o.parameter() && o.placement.split()) return true;
  return false;
}

constexpr const Signature* find(const Signatures& rows, const EnteringList& operands, Freedom freedom) {
  const bool split_parameter = splits_parameter(operands);
  for (const Signature& row : rows) {
    if (row.by_name) continue;
    bool all = true, beside_split = freedom != Freedom::slice;
    for (int i = 0; i < operands.size() && all; ++i) {
      all = fits(operands[i], row.operands[i], freedom, (row.joins >> i & 1) != 0, split_parameter);
      beside_split = beside_split || (operands[i].placement.split() && operands[i].placement == row.operands[i]);
    }
    if (all && beside_split) return &row;
  }
  return nullptr;
}

constexpr Derived by_row(const Signature& row, int rule) {
  Derived d;
  d.to = row.operands;
  d.results = row.results;
  d.rule = rule;
  d.communicates = row.communicates;
  return d;
}

constexpr bool any_pending(const EnteringList& operands) {
  for (const Entering& o : operands)
    if (o.placement.pending()) return true;
  return false;
}

/// Rules 1 to 3: what needs no communication forward.
constexpr bool free_of_charge(const Signatures& rows, const EnteringList& operands, int results, Derived& derived) {
  bool all_whole = true;
  for (const Entering& o : operands)
    all_whole = all_whole && (o.placement == Invariant || (o.data() && o.placement.whole() && !o.gathered));
  if (all_whole) {
    derived = by_row(uniform_row(operands.size(), results, Invariant), 1);
    return true;
  }
  const Signature* row = find(rows, operands, Freedom::none);
  if (row == nullptr) row = find(rows, operands, Freedom::data);
  if (row != nullptr) {
    derived = by_row(*row, 2);
    return true;
  }
  if (any_pending(operands)) {
    row = find(rows, operands, Freedom::pending);
  } else {
    row = find(rows, operands, Freedom::retype);
    if (row == nullptr) row = find(rows, operands, Freedom::slice);
  }
  if (row != nullptr) derived = by_row(*row, 3);
  return row != nullptr;
}

/// What the operands are when each pending one goes to the split that a row asks of it, or else to Invariant.
constexpr EnteringList completed_for(const Signature* row, const EnteringList& operands) {
  EnteringList completed = operands;
  for (int i = 0; i < operands.size(); ++i)
    if (operands[i].placement.pending())
      completed[i].placement = row != nullptr && row->operands[i].split() ? row->operands[i] : Placement(Invariant);
  return completed;
}

/// Rule 4: each pending operand goes to the split that a row asks of it beside the operands that are already split,
/// else to Invariant. Of the rows that all can then take, the one that asks a split of most pending operands.
constexpr EnteringList complete(const Signatures& rows, const EnteringList& operands) {
  bool some_split = false;
  for (const Entering& o : operands) some_split = some_split || o.placement.split();
  const Signature* asking = nullptr;
  int most = 0;
  for (const Signature& row : rows) {
    if (!some_split || row.by_name) continue;
    const EnteringList completed = completed_for(&row, operands);
    const bool split_parameter = splits_parameter(completed);
    bool can = true;
    int asked = 0;
    for (int i = 0; i < operands.size(); ++i) {
      can = can && fits(completed[i], row.operands[i], Freedom::slice, false, split_parameter);
      asked += operands[i].placement.pending() && row.operands[i].split() ? 1 : 0;
    }
    if (can && asked > most) {
      asking = &row;
      most = asked;
    }
  }
  return completed_for(asking, operands);
}

constexpr Refusal why(const EnteringList& operands) {
  for (int i = 0; i < operands.size(); ++i)
    if (operands[i].placement.kind == PlacementKind::at) return {Reason::held_elsewhere, {i}};
  for (int i = 0; i < operands.size(); ++i)
    for (int j = i + 1; j < operands.size(); ++j)
      if (!operands[i].parameter() && !operands[j].parameter() &&
          operands[i].placement.kind != PlacementKind::partial && !(operands[i].placement == operands[j].placement) &&
          !(operands[i].data() && operands[j].data()))
        return {Reason::disagree, {j, as_figure(operands[i].placement), as_figure(operands[j].placement)}};
  for (int i = 0; i < operands.size(); ++i)
    if (operands[i].placement.split()) return {Reason::split_otherwise, {i, as_figure(operands[i].placement)}};
  return {Reason::split_otherwise, {0, as_figure(operands[0].placement)}};
}

}  // namespace derivation

/// Derives one operation on one axis (placement algebra, "What is derived, and what is refused", rules 1 to 6).
/// `results`: how many it has.
constexpr Derived derive(const Signatures& rows, const EnteringList& operands, int results = 1) {
  using namespace derivation;
  Derived derived;
  if (free_of_charge(rows, operands, results, derived)) return derived;
  if (any_pending(operands)) {
    derived = derive(rows, complete(rows, operands), results);
    if (!derived.refusal) derived.rule = 4;
    return derived;
  }
  bool parameters = false, whole = true;
  for (const Entering& o : operands)
    if (o.parameter()) {
      parameters = true;
      whole = whole && o.placement == Invariant;
    }
  if (parameters) {
    EnteringList gathered = operands;
    for (Entering& o : gathered)
      if (!o.parameter() && o.placement.split()) {
        o.placement = whole ? Invariant : Broadcast;
        o.gathered = true;
      }
    if (free_of_charge(rows, gathered, results, derived)) {
      derived.rule = 5;
      return derived;
    }
  }
  derived.refusal = why(operands);
  derived.to.count = operands.size();
  for (int i = 0; i < operands.size(); ++i) derived.to[i] = operands[i].placement;
  for (int i = 0; i < results; ++i) derived.results.push_back(Invariant);
  return derived;
}

}  // namespace parallel::internals
