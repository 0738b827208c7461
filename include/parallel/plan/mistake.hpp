// What types allow and nobody means: the operands of one operation, or of two, in an order that other libraries have,
// or taken twice.
#pragma once
#include <parallel/operation/batch_norm.hpp>
#include <parallel/operation/convolution.hpp>
#include <parallel/operation/cross_entropy.hpp>
#include <parallel/operation/dropout.hpp>
#include <parallel/operation/loss.hpp>
#include <parallel/operation/matmul.hpp>
#include <parallel/operation/norm.hpp>
#include <parallel/operation/reshape.hpp>
#include <parallel/operation/unary.hpp>
#include <parallel/plan/view.hpp>

namespace parallel::internals {

namespace mistakes {
constexpr bool one_of(const Node& n, auto... operations) { return ((n.operation == operations) || ...); }
/// What a value is, moved, cast or in another shape.
constexpr int source_of(const GraphView& g, int value) {
  while (g.maker(value).is(Structural::move) ||
         one_of(g.maker(value), &operation::cast, &operation::reshape, &operation::reorder))
    value = g.maker(value).operands[0];
  return value;
}
constexpr const Node& source(const GraphView& g, int value) { return g.maker(source_of(g, value)); }
/// The parameter that a value is, a layer's slice of one among them; nullptr where it is none.
constexpr const Member* parameter_of(const GraphView& g, int value) {
  value = source_of(g, value);
  for (const Stack& s : g.stacks)
    if (s.inside == value) {
      value = source_of(g, s.outside);
      break;
    }
  return g.maker(value).is(Structural::parameter) ? &g.member(g.maker(value).member) : nullptr;
}
/// Whether a value is a parameter that begins with this number everywhere.
constexpr bool begins(const GraphView& g, int value, double with) {
  const Member* const m = parameter_of(g, value);
  return m != nullptr && m->initializer.kind == Initializer::Kind::constant && m->initializer.scale == with;
}

/// A loss of logits, or log_softmax, that is given what softmax, along the classes, or sigmoid made of them. Followed
/// is what hands probabilities on: moves, casts, reshape, of classes where it leaves these, and what keeps them from 0
/// or drops some.
/// Of log_softmax the softmax is the same once more, so that is none; a sigmoid times a number bounds logits.
constexpr bool normalized_twice(const GraphView& g, const Node& loss) {
  const bool logarithm = loss.operation == &operation::normalized_logarithm;
  const bool classes = logarithm || loss.operation == &operation::negative_log_likelihood;
  if (!classes && loss.operation != &operation::binary_cross_entropy) return false;
  int logits = loss.operands[0];
  if (logarithm && loss.ints[0] != g.value(logits).type.layout.rank() - 1) return false;
  const auto last = [&](int value) {
    const Layout& layout = g.value(value).type.layout;
    return layout.rank() > 0 ? layout.dims[layout.rank() - 1].size : 1;
  };
  const auto handed_on = [&](const Node& n) {
    if (n.operation == &operation::reshape) return !classes || last(n.operands[0]) == last(n.result);
    if (one_of(n, &operation::add, &operation::subtract))
      return g.maker(n.operands[1]).operation == &operation::constant;
    return n.is(Structural::move) ||
           one_of(n, &operation::cast, &operation::clamp, &operation::dropout, &operation::reorder) ||
           (classes && n.operation == &operation::scale);
  };
  while (handed_on(g.maker(logits))) logits = g.maker(logits).operands[0];
  const Node& maker = g.maker(logits);
  const bool softmax =
      maker.operation == &operation::normalized_exponential && maker.ints[0] == g.value(logits).type.layout.rank() - 1;
  return classes ? softmax : maker.operation == &operation::sigmoid;
}
/// A loss of logits that are given, and of targets that are what a product, and maybe a bias, makes: as it comes,
/// without a sigmoid.
constexpr bool swapped_target(const GraphView& g, const Node& n) {
  const auto swapped = [&](int logits, int targets) {
    const Node& made = source(g, targets);
    const bool scores = made.operation == &operation::matmul ||
                        (made.operation == &operation::add && one_of(source(g, made.operands[0]), &operation::matmul) &&
                         parameter_of(g, made.operands[1]));
    return scores && source(g, logits).is(Structural::input);
  };
  if (n.operation == &operation::binary_cross_entropy) return swapped(n.operands[0], n.operands[1]);
  // -sum of p log softmax(logits) over the classes, as soft_cross_entropy has it
  if (n.operation != &operation::scale || n.reals[0] != -1) return false;
  const Node& sum = source(g, n.operands[0]);
  if (sum.operation != &operation::sum) return false;
  const Node& terms = source(g, sum.operands[0]);
  if (terms.operation != &operation::multiply) return false;
  const Layout &p = g.value(terms.operands[0]).type.layout, &q = g.value(terms.operands[1]).type.layout;
  const Node& logarithm = source(g, terms.operands[1]);
  const int last = q.rank() - 1;
  return logarithm.operation == &operation::normalized_logarithm && same_extents(p, q) && sum.ints[0] == last &&
         logarithm.ints[0] == last && swapped(logarithm.operands[0], terms.operands[0]);
}
/// A norm whose gain begins with zeros and whose shift begins with ones, or by statistics of which the mean begins with
/// ones and the variance with zeros.
constexpr bool swapped_norm(const GraphView& g, const Node& n) {
  const bool rows = n.operation == &operation::norm_rows && n.operands.size() == 3;
  const bool parts = n.operation == &operation::normalize && n.operands.size() == 5;
  if (rows || parts || n.operation == &operation::channel_normalize) {
    const int gain = parts ? 3 : 1;
    return begins(g, n.operands[gain], 0) && begins(g, n.operands[gain + 1], 1);
  }
  // (x - mean) * (gain / sqrt(variance + epsilon)), as batch_norm has it
  if (n.operation != &operation::multiply) return false;
  const Node &centered = source(g, n.operands[0]), &factor = source(g, n.operands[1]);
  if (centered.operation != &operation::subtract || factor.operation != &operation::divide) return false;
  const Node& deviation = source(g, factor.operands[1]);
  if (deviation.operation != &operation::sqrt || !begins(g, centered.operands[1], 1)) return false;
  const Node& variance = source(g, deviation.operands[0]);
  return variance.operation == &operation::add && begins(g, variance.operands[0], 0);
}
/// A norm whose epsilon is no small number.
constexpr bool large_epsilon(const Node& n) {
  return one_of(n, &operation::norm_rows, &operation::normalize, &operation::channel_normalize) &&
         !(n.reals[1] >= 0 && n.reals[1] < 0.1);
}
/// A bound or a deviation that is none.
constexpr bool out_of_range(const GraphView& g, const Node& n) {
  if (n.operation == &operation::huber) return !(n.reals[0] > 0);
  const auto deviation = [](double x) { return x >= 0 && x - x == 0; };  // 0 or more, and finite
  if (n.operation == &operation::random) return !deviation(n.reals[0]);
  if (!n.is(Structural::parameter)) return false;
  const Initializer& begins = g.member(n.member).initializer;
  return begins.kind != Initializer::Kind::constant && !deviation(begins.scale);
}
/// A parameter that is a vector of a convolution's channels and meets its last dimension, which happens to be as long.
constexpr bool along_width(const GraphView& g, const Node& n) {
  if (!one_of(n, &operation::add, &operation::multiply)) return false;
  for (int i = 0; i < 2; ++i) {
    const int value = n.operands[i], vector = n.operands[1 - i];
    const Layout& layout = g.value(value).type.layout;
    const auto convolved = [&](int v) {
      while (g.maker(v).is(Structural::move) || one_of(g.maker(v), &operation::cast, &operation::reorder))
        v = g.maker(v).operands[0];
      return one_of(g.maker(v), &operation::convolution, &operation::transposed_convolution);
    };
    if (layout.rank() > 2 && g.value(vector).type.layout.rank() == 1 && parameter_of(g, vector) != nullptr &&
        g.value(vector).type.layout.dims[0].size == layout.dims[1].size && convolved(value))
      return true;
  }
  return false;
}
}  // namespace mistakes

/// What is mistaken, and at which node; -1: nothing.
struct Mistake {
  Reason reason = Reason::none;
  int node = -1;
};
/// The first of a program that is sound.
constexpr Mistake mistake(const GraphView& g) {
  for (int i = 0; i < static_cast<int>(g.nodes.size()); ++i) {
    const Node& n = g.node(i);
    if (n.phase != Phase::forward) continue;
    if (mistakes::normalized_twice(g, n)) return {Reason::normalized_twice, i};
    if (mistakes::swapped_target(g, n)) return {Reason::swapped_target, i};
    if (mistakes::swapped_norm(g, n)) return {Reason::swapped_norm, i};
    if (mistakes::large_epsilon(n)) return {Reason::epsilon, i};
    if (mistakes::out_of_range(g, n)) return {Reason::out_of_range, i};
    if (mistakes::along_width(g, n)) return {Reason::along_width, i};
  }
  return {};
}

}  // namespace parallel::internals
