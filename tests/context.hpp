// Attention over a sequence that is split: each `Context`, causal and not, with few key heads, with a mask, to another
// sequence.
#pragma once
#include <doctest/doctest.h>

#include <parallel/parallel.hpp>

#include "program.hpp"

namespace context_parallel {

using namespace parallel;
using namespace parallel::axes;
using lockstep::Array;

inline constexpr int batch = 4, length = 24, others = 48, heads = 24, few = 12, size = 2;

enum class Sees { all, where_one, own_document };
template <Context how, bool causal, Sees sees>
struct Attending {
  Parameter<double, Shape<size, size>> query{normal(1)}, key{normal(1)}, value{normal(1)};
  constexpr auto operator()(Distributed auto weight, Distributed auto q, Distributed auto k,
                            Distributed auto seen) const {
    const auto a = matmul(q, query);
    const auto b = matmul(k, key), c = matmul(k, value);
    if constexpr (sees == Sees::where_one)
      return mean(weight * masked_attention<causal, how>(a, b, c, seen));
    else if constexpr (sees == Sees::own_document)
      return mean(weight * document_attention<causal, how>(a, b, c, seen));
    else
      return mean(weight * attention<causal, how>(a, b, c));
  }
};

/// One program with all of them, which is compiled once. `Sequence`: how a dimension of so many positions is split.
template <Context how, template <int> class Sequence, class T = double>
struct All {
  template <int positions, int count>
  using Heads = Wanted<T, Shape<batch / data, Sequence<positions>::dim, count / tensor, size>>;
  using Q = Heads<length, heads>;
  using K = Heads<length, heads>;
  using Few = Heads<length, few>;
  using Other = Heads<others, few>;
  using Seen = Tensor<int, Shape<batch / data, Sequence<length>::dim>>;
  struct Model {
    Attending<how, false, Sees::all> whole, few, other;
    Attending<how, true, Sees::all> causal, causal_few;
    Attending<how, false, Sees::where_one> masked;
    Attending<how, true, Sees::where_one> causal_masked;
    Attending<how, false, Sees::own_document> packed;
    Attending<how, true, Sees::own_document> causal_packed;
    constexpr auto operator()(Distributed auto w, Distributed auto q, Distributed auto k, Distributed auto few_keys,
                              Distributed auto other_keys, Distributed auto seen) const {
      return whole(w, q, k, seen) + few(w, q, few_keys, seen) + other(w, q, other_keys, seen) + causal(w, q, k, seen) +
             causal_few(w, q, few_keys, seen) + masked(w, q, few_keys, seen) + causal_masked(w, q, k, seen) +
             packed(w, q, few_keys, seen) + causal_packed(w, q, k, seen);
    }
  };
  using Step = Training<Model, KeepGradients, Q, Q, K, Few, Other, Seen>;
};
template <int positions>
struct Whole {
  static constexpr Dim dim = positions;
};
template <int positions>
struct OnSequence {
  static constexpr Dim dim = positions / sequence;
};

template <int positions>
struct InZigzag {
  static constexpr Dim dim = positions / zigzag(sequence);
};
template <int positions>
struct Cyclic {
  static constexpr Dim dim = positions / cyclic(sequence);
};

/// Some see no key of the first part, some none at all.
inline std::vector<int> seen() {
  std::vector<int> all = program::numbers<int>(batch * length, 9, 2);
  for (int i = 0; i < length; ++i) all[static_cast<std::size_t>(i)] = i < 14 ? 0 : 1;
  for (int i = 0; i < length; ++i) all[static_cast<std::size_t>(length + i)] = 0;
  return all;
}
template <class T>
std::vector<T> numbers(int positions, int count, std::uint64_t stream) {
  return program::numbers<T>(std::int64_t{batch} * positions * count * size, stream);
}
/// Inputs last as long as their callers read them.
template <class T>
void feed(auto& executor) {
  static const std::vector<T> weight = numbers<T>(length, heads, 1), q = numbers<T>(length, heads, 2),
                              k = numbers<T>(length, heads, 3), few_keys = numbers<T>(length, few, 4),
                              other = numbers<T>(others, few, 5);
  static const std::vector<int> mask = seen();
  executor.input(0, weight);
  executor.input(1, q);
  executor.input(2, k);
  executor.input(3, few_keys);
  executor.input(4, other);
  executor.input(5, mask);
}
template <class Step, class T = double>
std::vector<Array> outputs(const Mesh& mesh) {
  return program::outputs<Step>(mesh, [](auto& executor) { feed<T>(executor); });
}

}  // namespace context_parallel
