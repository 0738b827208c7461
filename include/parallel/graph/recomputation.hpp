// What of a part of the program the backward pass computes again: the words of activation recomputation (Chen et al.,
// arXiv:1604.06174; Korthikanti et al., arXiv:2205.05198).
#pragma once
#include <concepts>

#include <parallel/graph/structure.hpp>

namespace parallel {

/// What is done again beside the operations that the backward pass needs.
enum class Repeat : std::uint8_t {
  collectives,  ///< their collectives, too; else what a collective gave is kept
  everything,   ///< all up to the last product, collectives too, whether the backward pass needs it or not
};

namespace internals {
/// Whether a node is an operation, or of what one that was applied became.
constexpr bool comes_of(const Graph& g, const Node& node, const Operation& operation) {
  return node.operation == &operation || node.operation->like == &operation ||
         (node.origin >= 0 && g.origins[node.origin].operation == &operation);
}

/// The words of one `Recompute`, as a value.
struct Recomputation {
  int blocks = 1;                          ///< layers whose first input alone is kept
  bool collectives = false;                ///< are repeated
  bool whole = false;                      ///< to the last product, needed or not
  List<const Operation*, 8> operations{};  ///< only these; none: all
  int words[3]{};                          ///< how many there are of each kind

  constexpr Recomputation(auto... word) { (hear(word), ...); }
  constexpr void hear(std::integral auto layers) {
    blocks = static_cast<int>(layers);
    ++words[0];
  }
  constexpr void hear(Repeat what) {
    collectives = true;
    whole = what == Repeat::everything;
    ++words[1];
  }
  constexpr void hear(const Operation* only) {
    for (const Operation* other : operations)
      if (other == only) words[2] = 8;  // twice is too many
    if (words[2]++ < 8) operations.push_back(only);
  }
  constexpr void hear(auto) { words[1] = 2; }  // none of them
  /// Whether the words go together, for so many layers.
  constexpr bool fits(std::int64_t layers) const {
    return words[0] <= 1 && words[1] <= 1 && words[2] <= 8 && !(whole && words[2] > 0) && blocks >= 1 &&
           blocks <= max_node_operands && layers % blocks == 0;
  }

  /// Whether a node's results are computed again, where its operation stands in the part.
  constexpr bool has(const Graph& g, const Node& node) const {
    if (node.phase != Phase::forward || !node.operation->computes || node.operation->updates || node.results == 0 ||
        node.operation->source || node.transition.along != 0 || g.values[node.result].kind == Kind::parameter)
      return false;
    bool named = false;
    for (const Operation* o : operations) named = named || comes_of(g, node, *o);
    if (!collectives && is_communicated(g, node) && !(named && node.operation->ring)) return false;
    return named || operations.empty();
  }

 private:
  /// Whether a node is a collective, its sum in the element type of its terms, or what comes around a ring.
  static constexpr bool is_communicated(const Graph& g, const Node& node) {
    const auto travels = [](const Node& n) { return n.is(Structural::move) && communicates(n.transition.collective); };
    return travels(node) || node.operation->ring ||
           (node.is(Structural::rounded) && travels(g.maker(node.operands[1]))) ||
           (node.operation == &operation::cast && travels(g.maker(node.operands[0])));
  }
};
}  // namespace internals

/// What the backward pass computes again, where it is said: at `Layers<12, Block, Recompute<>>` all of a block from its
/// input, at `Layers<12, Block, Recompute<4>>` four blocks from the first one's input, in `recompute(f, x)` what f
/// applies. What collectives gave is kept, unless a word is `Repeat::collectives`. Operations as words,
/// `Recompute<&operation::softmax, &operation::dropout>`: only their results.
template <auto... word>
struct Recompute {
  static constexpr internals::Recomputation value{word...};
};
/// Whole layers again, collectives too, to their last product: what published runs with full recomputation count, as
/// Megatron-LM makes all of a layer again. The last product is the one that no gradient needs.
using RecomputeAsPublished = Recompute<Repeat::everything>;
/// What the backward pass keeps of each layer lies on the host, and is fetched for its layer: `Layers<12, Block,
/// KeepOnHost>`. Beside a Recompute it is what that leaves to be kept.
struct KeepOnHost {};

namespace internals {
template <class Word>
inline constexpr bool is_recompute = false;
template <auto... word>
inline constexpr bool is_recompute<Recompute<word...>> = true;
/// Words that say what is kept of layers; any other one is a placement.
template <class Word>
inline constexpr bool is_of_keeping = is_recompute<Word> || std::is_same_v<Word, KeepOnHost>;
/// Whether none of the words is said twice; of `Recompute` its words tell.
template <class... Word>
inline constexpr bool keeps_once = (int{std::is_same_v<Word, KeepOnHost>} + ... + 0) <= 1;
/// The one `Recompute` among words, or null; where there are several, none that fits.
template <class... Word>
constexpr const Recomputation* recomputation_of() {
  const Recomputation* result = nullptr;
  [[maybe_unused]] const auto hear = [&]<class W>(const W*) {
    if constexpr (is_recompute<W>) result = result == nullptr ? &W::value : &Recompute<0>::value;
  };
  (hear(static_cast<const Word*>(nullptr)), ...);
  return result;
}
}  // namespace internals

}  // namespace parallel
