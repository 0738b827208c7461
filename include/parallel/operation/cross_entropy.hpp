// Cross entropy of logits and target indices, per position; the vocabulary may be split, and padded so that it can be;
// targets may be ignored.
#pragma once
#include <limits>

#include <parallel/operation/softmax.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// logits[..., V]   target[...]   loss[...] S, not last      S             S S, last          B             I
// exchanges maximum, sum of exponentials and the target's logit; nothing backward
//                                            (and where labels are smoothed the sum of logits)

/// The attributes: how many of the logits are classes, the others are padding and read by nothing; and the target that
/// is ignored.
struct Classes {
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();
  std::int64_t count, ignored;
  constexpr Classes(const Ints& i) : count(i[0]), ignored(i[1]) {}
};

PARALLEL_AHEAD constexpr Shaped cross_entropy_shape(const Arguments& a) {
  Type result{precise(a.types[0].dtype), a.types[1].layout.unplaced()};
  if (a.rank(0) != a.rank(1) + 1) return {{result}, {Reason::class_targets, {a.rank(1), a.rank(0) - 1}}};
  for (int d = 0; d < a.rank(1); ++d)
    if (a.size(0, d) != a.size(1, d)) return {{result}, {Reason::shapes_differ, {a.size(0, d), a.size(1, d)}}};
  const Classes classes(a.ints);
  if (classes.count < 1 || classes.count > a.size(0, a.rank(1)))
    return {{result}, {Reason::classes, {classes.count, a.size(0, a.rank(1))}}};
  if (const Refusal refusal = counted(a, 0, a.rank(1))) return {{result}, refusal};
  return {{result}, whole_numbers(a, 1)};
}
PARALLEL_AHEAD constexpr Signatures cross_entropy_table(const Arguments& a) {
  Signatures rows{uniform_row(2, 1, Broadcast)};
  for (int d = 0; d < a.rank(1); ++d)
    if (a.size(1, d) > 1) rows.push_back({{split(d), split(d)}, {split(d)}});
  if (a.size(0, a.rank(1)) > 1) rows.push_back({{split(a.rank(1)), Broadcast}, {Invariant}, true});
  return rows;
}
PARALLEL_AHEAD constexpr void cross_entropy_lower(Lowering&);
PARALLEL_AHEAD constexpr void cross_entropy_gradient(Gradient&);
/// ints: Classes; the first number is how much of a target is spread evenly over all classes.
inline constexpr Operation cross_entropy{.name = "cross_entropy",
                                         .shape = cross_entropy_shape,
                                         .signatures = cross_entropy_table,
                                         .lower = cross_entropy_lower};
// What it becomes, each with its attributes.
/// (logits): a row's largest, and its sum of exp(logit - largest), of one reading (Milakov and Gimelshein, 2018).
inline constexpr Operation class_exponentials{
    .name = "class_exponentials", .flops = elements_of_operand, .rate = Rate::functions};
/// (sum, own, max): sum exp(own - max), the sum relative to the largest of all ranks
inline constexpr Operation rescaled_exponentials{.name = "rescaled_exponentials"};
/// (logits): a row's largest alone
inline constexpr Operation class_maximum{.name = "class_maximum", .flops = elements_of_operand};
/// (logits): a row's sum over the number of classes
inline constexpr Operation class_mean{.name = "class_mean", .flops = elements_of_operand};
/// (logits, target): the target's logit where the rank holds it, else 0
inline constexpr Operation pick{.name = "pick", .reads_part_of = 0};
/// (logits, target, max, sum, picked[, mean]): log(sum) + max - picked
inline constexpr Operation negative_log_likelihood{
    .name = "negative_log_likelihood", .gradient = cross_entropy_gradient, .reads_part_of = 0};
/// (logits, target, max, sum, g)
inline constexpr Operation cross_entropy_derivative{.name = "cross_entropy_gradient", .rate = Rate::functions};

PARALLEL_AHEAD constexpr void cross_entropy_lower(Lowering& l) {
  const int logits = l.operands[0], target = l.operands[1];
  const double smoothing = l.reals[0];
  if (!(smoothing >= 0 && smoothing <= 1)) l.trace.refuse(Reason::probability);
  const Type own = pending_on(statistic(l.type(0), {l.type(0).layout.rank() - 1}), l.exchanging);
  const auto exchanged = [&](const Operation& operation, const List<int, max_node_operands>& operands) {
    return l.exchange(l.emit(operation, operands, {own}, l.ints), l.exchanging);
  };
  const int largest = l.emit(class_exponentials, {logits}, {own, own}, l.ints), exponentials = largest + 1;
  List<int, max_node_operands> operands{logits, target, largest, exponentials};
  if (!l.exchanging.empty()) {
    operands[2] = l.exchange(largest, l.exchanging, true);
    operands[3] = exchanged(rescaled_exponentials, {exponentials, largest, operands[2]});
  }
  operands.push_back(exchanged(pick, {logits, target}));
  if (smoothing != 0) operands.push_back(exchanged(class_mean, {logits}));
  l.result = l.emit(negative_log_likelihood, operands, l.results, l.ints, smoothing);
}
PARALLEL_AHEAD constexpr void cross_entropy_gradient(Gradient& g) {
  g.give(0, cross_entropy_derivative, {g.operand(0), g.operand(1), g.operand(2), g.operand(3), g.cotangent()},
         g.node.ints, g.node.reals[0]);
}
// target[...]   result[]
// S             P
PARALLEL_AHEAD constexpr Shaped count_shape(const Arguments& a) {
  return {{{static_cast<DType>(a.ints[1]), {}}}, whole_numbers(a, 0)};
}
PARALLEL_AHEAD constexpr Signatures count_table(const Arguments& a) {
  Signatures rows{uniform_row(1, 1, Broadcast)};
  for (int d = 0; d < a.rank(0); ++d)
    if (a.size(0, d) > 1) rows.push_back({{split(d)}, {Partial}});
  return rows;
}
PARALLEL_AHEAD constexpr void count_lower(Lowering&);
/// How many targets are not ints[0], times the first number; ints[1]: the element type of the result.
inline constexpr Operation count_targets{.name = "count_targets",
                                         .shape = count_shape,
                                         .signatures = count_table,
                                         .lower = count_lower,
                                         .flops = elements_of_operand};
/// Of targets that are given micro-batch by micro-batch the mean over all of these, so that their losses' mean is the
/// loss of all.
PARALLEL_AHEAD constexpr void count_lower(Lowering& l) {
  const Node maker = l.trace.graph.maker(l.operands[0]);
  const Region region = l.trace.graph.regions[maker.region];
  if (maker.operation == &layer && region.kind == RegionKind::micro_batches)
    l.result = l.trace.emit(count_targets, {maker.operands[0]}, l.results, Kind::activation, l.ints, 1.0 / region.count,
                            0, region.parent);
  else
    l.result = l.emit(count_targets, {l.operands[0]}, l.results, l.ints, 1);
}
template <class L, std::int64_t classes>
constexpr std::int64_t classes_of() {
  return classes != 0 || L::type.layout.rank() == 0 ? classes : L::type.layout.dims[L::type.layout.rank() - 1].size;
}
}  // namespace operation

namespace internals {
/// A target that is never met: nothing is ignored.
inline constexpr std::int64_t no_target = operation::Classes::none;
}  // namespace internals

/// -log softmax(logits)[target] for every position: logits[..., V], target[...] whole numbers from 0 to V - 1. The loss
/// of any other target is no number, but of the target `ignored`, where it and its gradient are 0. `classes`: how many
/// of the logits there really are; those behind them are padding, which nothing reads and to which no gradient goes.
/// `smoothing`: how much of a target is spread evenly over all classes (Szegedy et al., 2016).
template <std::int64_t classes = 0, std::int64_t ignored = internals::no_target, Distributed L, Distributed T>
constexpr auto cross_entropy(const L& logits, const T& target, double smoothing = 0, Here here = {}) {
  return Apply<operation::cross_entropy, operation::classes_of<L, classes>(), ignored>{smoothing}(here, logits, target);
}
/// The mean over all targets but the ignored ones, which are counted on all ranks and, where the targets are an input
/// of the program, over all micro-batches together: a rank or a micro-batch with few of them weighs less. NaN where all
/// are ignored.
template <std::int64_t classes = 0, std::int64_t ignored = internals::no_target, Distributed L, Distributed T>
constexpr auto mean_cross_entropy(const L& logits, const T& target, double smoothing = 0, Here here = {}) {
  const auto loss = cross_entropy<classes, ignored>(logits, target, smoothing, here);
  if constexpr (ignored == internals::no_target) {
    return mean(loss, here);
  } else {
    return divide(
        sum(loss, here),
        Apply<operation::count_targets, ignored, static_cast<int>(internals::precise(L::type.dtype))>{}(here, target),
        here);
  }
}
/// A whole number where the smoothing stands: refused.
template <auto... words, Distributed L, Distributed T, class Number>
requires(std::is_integral_v<Number>) constexpr auto cross_entropy(const L& logits, const T&, Number) {
  static_assert(
      std::is_void_v<L>,
      "parallel: the target that is left out stands in <>, and behind the target how much is smoothed; write "
      "cross_entropy<0, -100>(logits, target), where 0 are all classes, or cross_entropy(logits, target, 0.1)");
  return logits;
}
template <auto... words, Distributed L, Distributed T, class Number>
requires(std::is_integral_v<Number>) constexpr auto mean_cross_entropy(const L& logits, const T&, Number) {
  static_assert(
      std::is_void_v<L>,
      "parallel: the target that is left out stands in <>, and behind the target how much is smoothed; write "
      "mean_cross_entropy<0, -100>(logits, target), where 0 are all classes, or mean_cross_entropy(logits, target, "
      "0.1)");
  return logits;
}

}  // namespace parallel
