// Cross entropy of logits and target indices, per position; the vocabulary may be split.
#pragma once
#include <parallel/operation/softmax.hpp>

namespace parallel {
namespace operation {
// logits[..., V]   target[...]   loss[...]
// S, not last      S             S
// S, last          B             I           exchanges maximum, sum of exponentials and the target's logit; nothing backward
constexpr Shaped cross_entropy_shape(const Arguments& a) {
  Type result{a.types[0].dtype, a.types[1].layout.unplaced()};
  if (a.rank(0) != a.rank(1) + 1) return {{result}, {Reason::wrong_rank, {a.rank(1), a.rank(0) - 1}}};
  for (int d = 0; d < a.rank(1); ++d)
    if (a.size(0, d) != a.size(1, d)) return {{result}, {Reason::shapes_differ, {a.size(0, d), a.size(1, d)}}};
  return {{result}, whole_numbers(a, 1)};
}
constexpr Signatures cross_entropy_table(const Arguments& a) {
  Signatures rows;
  rows.push_back(uniform_row(2, 1, Broadcast));
  for (int d = 0; d < a.rank(1); ++d)
    if (a.size(1, d) > 1) rows.push_back({{split(d), split(d)}, {split(d)}});
  if (a.size(0, a.rank(1)) > 1) rows.push_back({{split(a.rank(1)), Broadcast}, {Invariant}, true});
  return rows;
}
constexpr void cross_entropy_lower(Trace&, Lowering&);
constexpr void cross_entropy_gradient(Gradient&);
inline constexpr Operation cross_entropy{
    .name = "cross_entropy", .shape = cross_entropy_shape, .signatures = cross_entropy_table, .lower = cross_entropy_lower};
inline constexpr Operation pick{.name = "pick"};  ///< (logits, target): the target's logit where the rank holds it, else 0
/// (logits, target, max, sum, picked): log(sum) + max - picked
inline constexpr Operation negative_log_likelihood{.name = "negative_log_likelihood", .gradient = cross_entropy_gradient};
inline constexpr Operation cross_entropy_derivative{.name = "cross_entropy_gradient"};  ///< (logits, target, max, sum, g)

constexpr void cross_entropy_lower(Trace& trace, Lowering& l) {
  const int logits = l.operands[0], target = l.operands[1];
  const Ints last{trace.graph.values[logits].type.layout.rank() - 1};
  const Type statistic = without(trace.graph.values[logits].type, last), own = pending_on(statistic, l.exchanging);
  const int largest = maximum(trace, logits, statistic, l.exchanging, last);
  const int total = trace.exchange(trace.emit(sum_of_exponentials, {logits, largest}, {own}, Kind::activation, last), l.exchanging);
  const int picked = trace.exchange(trace.emit(pick, {logits, target}, {own}, Kind::activation), l.exchanging);
  l.result = trace.emit(negative_log_likelihood, {logits, target, largest, total, picked}, l.results, Kind::activation);
}
constexpr void cross_entropy_gradient(Gradient& g) {
  g.give(0, cross_entropy_derivative, {g.operand(0), g.operand(1), g.operand(2), g.operand(3), g.cotangent()});
}
}  // namespace operation

/// -log softmax(logits)[target] for every position: logits[..., V], target[...] whole numbers from 0 to V - 1.
/// The loss of any other target is no number.
template <Distributed L, Distributed T>
constexpr auto cross_entropy(const L& logits, const T& target, Here here = {}) {
  return Apply<operation::cross_entropy>{}(here, logits, target);
}

}  // namespace parallel
