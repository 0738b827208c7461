// What the numbers of an input may be, where they are indices, classes or probabilities: a plan's graph says of what.
#pragma once
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <parallel/operation/cast.hpp>
#include <parallel/operation/cross_entropy.hpp>
#include <parallel/operation/embedding.hpp>
#include <parallel/operation/gather.hpp>
#include <parallel/operation/loss.hpp>
#include <parallel/operation/reduce.hpp>
#include <parallel/operation/remember.hpp>
#include <parallel/operation/reshape.hpp>
#include <parallel/operation/scale.hpp>
#include <parallel/operation/transpose.hpp>
#include <parallel/plan/view.hpp>
#include <parallel/run/misuse.hpp>

namespace parallel::internals {

/// From 0 to count - 1, or `ignored`.
struct IndexRange {
  std::int64_t count = 0, ignored = no_target;
  bool classes = false;  ///< targets of a cross entropy, not indices of a table's rows
  bool drawn = false;    ///< the program has a memory, so that they may be what was drawn before
};

/// What the numbers of an input may be.
struct Allowed {
  std::vector<IndexRange> ranges{};  ///< whole numbers lie in each
  bool probabilities = false;        ///< others lie from 0 to 1, or are NaN: targets of a binary cross entropy

  bool anything() const { return ranges.empty() && !probabilities; }
};

/// Whether what a binary cross entropy gives is summed as it is: what a product or `where` meets first may leave out
/// targets that are not known.
inline bool summed_whole(const GraphView& g, int loss) {
  std::vector<int> losses{loss};
  for (std::size_t i = 0; i < losses.size(); ++i)
    for (const Node& n : g.nodes) {
      const Operation* const o = n.operation;
      bool meets = false;
      for (const int operand : n.operands) meets = meets || operand == losses[i];
      if (!meets || n.phase != Phase::forward) continue;
      if (o != &operation::sum && o != &operation::scale && o != &operation::reshape && o != &operation::cast &&
          o->structural != Structural::move && o->structural != Structural::copy)
        return g.value(losses[i]).type.layout.rank() == 0;
      losses.push_back(n.result);
    }
  return true;
}

/// Those of a member. Followed is what hands on all elements as they are: moves between ranks, micro-batches, reshape,
/// transpose. What is computed from an input, or only a part of it, may be anything.
inline Allowed allowed_in(const GraphView& g, int member) {
  Allowed allowed;
  std::vector<IndexRange>& ranges = allowed.ranges;
  std::vector<bool> follows(g.values.size());
  follows[static_cast<std::size_t>(g.member(member).value)] = true;
  const auto is_followed = [&](int value) { return follows[static_cast<std::size_t>(value)]; };
  const auto hands_on = [](const Node& n) {
    const Operation* const o = n.operation;
    if (o->structural == Structural::move) return n.transition.from != Partial && n.transition.to != Partial;
    return o->structural == Structural::layer || o->structural == Structural::copy || o == &operation::reshape ||
           o == &operation::transpose || o == &operation::reorder;
  };
  for (bool found = true; found;) {  // nodes need not stand in their order
    found = false;
    for (const Node& n : g.nodes)
      if (hands_on(n) && is_followed(n.operands[0]) && !is_followed(n.result))
        follows[static_cast<std::size_t>(n.result)] = found = true;
  }
  bool remembers = false;
  for (const Node& n : g.nodes) remembers |= n.operation == &operation::write;
  for (const Node& n : g.nodes) {
    if (n.operation == &operation::embedding && is_followed(n.operands[0]))
      ranges.push_back({.count = g.value(n.operands[1]).type.layout.dims[0].size, .drawn = remembers});
    const bool gathers = n.operation == &operation::gather;
    if ((gathers || n.operation == &operation::scattered) && is_followed(n.operands[0])) {
      const Layout& picked_from = g.value(gathers ? int{n.operands[1]} : int{n.result}).type.layout;
      ranges.push_back({picked_from.dims[static_cast<int>(n.ints[0])].size});
    }
    if (n.operation == &operation::negative_log_likelihood && is_followed(n.operands[1])) {
      const operation::Classes classes(n.ints);
      ranges.push_back({classes.count, classes.ignored, true});
    }
    allowed.probabilities |=
        n.operation == &operation::binary_cross_entropy && is_followed(n.operands[1]) && summed_whole(g, n.result);
  }
  return allowed;
}

/// Throws Misuse(bad_data) for the first number that is out of a range. `index(i)`: the place of number i in the whole
/// input `position`.
template <class Index>
void check_indices(std::span<const int> numbers, const std::vector<IndexRange>& ranges, int position, Index index) {
  for (const IndexRange& range : ranges) {
    bool all = true;
    for (const int n : numbers) all &= (n >= 0 && n < range.count) || n == range.ignored;
    if (all) continue;
    std::size_t at = 0;
    while ((numbers[at] >= 0 && numbers[at] < range.count) || numbers[at] == range.ignored) ++at;
    const std::string count = std::to_string(range.count), met = std::to_string(numbers[at]);
    // a target below 0 is meant to be left out, as Hugging Face and PyTorch have -100
    const std::string left_out =
        numbers[at] >= 0 ? ""
        : !range.classes
            ? range.drawn && numbers[at] == -1
                  ? "; sample draws -1 where logits are no numbers, as at a position that remember has no room for"
                  : ""
        : range.ignored == no_target
            ? ", or leave it out by the loss's second number, as in mean_cross_entropy<0, " + met + ">"
            : "; left out is " + std::to_string(range.ignored) + ", <classes, " + std::to_string(range.ignored) +
                  ">, not " + met;
    throw Misuse("input " + std::to_string(position) + ", element " + std::to_string(index(at)) + ": " +
                     (range.classes ? "target " : "index ") + met +
                     (range.classes ? " of " + count + " classes" : " of a table of " + count + " rows") +
                     "; mend the data, which counts from 0 to " + std::to_string(range.count - 1) + left_out,
                 exit_code::bad_data);
  }
}

/// The same for the first target that is not from 0 to 1.
template <class T, class Index>
void check_probabilities(std::span<const T> numbers, int position, Index index) {
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto outside = [](T n) { return static_cast<Wide>(n) < 0 || static_cast<Wide>(n) > 1; };
  bool all = true;
  for (const T& n : numbers) all &= !outside(n);
  if (all) return;
  std::size_t at = 0;
  while (!outside(numbers[at])) ++at;
  throw Misuse("input " + std::to_string(position) + ", element " + std::to_string(index(at)) + ": target " +
                   shortest(static_cast<Wide>(numbers[at])) +
                   " of a binary cross entropy, which takes 0, 1 or what is between; mend the data, as (y + 1) / 2 of "
                   "classes -1 and 1, or multiply the losses of targets that are not known by 0",
               exit_code::bad_data);
}

/// Throws Misuse(bad_data) for the first of so many numbers that is not allowed. `index(i)`: the place of number i in
/// the whole input `position`.
template <class Index>
void check_allowed(const void* numbers, DType dtype, std::size_t count, const Allowed& allowed, int position,
                   Index index) {
  const auto of = [&]<class T>(const T* first) { return std::span(first, count); };
  if (dtype == DType::i32) return check_indices(of(static_cast<const int*>(numbers)), allowed.ranges, position, index);
  if (!allowed.probabilities) return;
  switch (dtype) {
    case DType::f64: return check_probabilities(of(static_cast<const double*>(numbers)), position, index);
    case DType::bf16: return check_probabilities(of(static_cast<const bfloat16*>(numbers)), position, index);
    case DType::f16: return check_probabilities(of(static_cast<const float16*>(numbers)), position, index);
    default: return check_probabilities(of(static_cast<const float*>(numbers)), position, index);
  }
}

}  // namespace parallel::internals
