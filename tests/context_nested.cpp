// A sequence that two axes split: to the heads and back on the inner one by all-to-all, around a ring on the outer one;
// gathered, or brought to the heads, on both. Loss and all gradients are those of one rank.
#include <doctest/doctest.h>

#include <parallel/parallel.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using lockstep::Array;

namespace {

constexpr int batch = 2, positions = 24, heads = 48, few = 24, size = 2;

// q, k and v: [batch, positions/sequence/tensor, heads, size]
struct Nested {
  template <bool causal>
  static constexpr auto attend(Distributed auto q, Distributed auto k, Distributed auto v) {
    using Heads = On<tensor, Split<2>>;
    const auto y = attention<causal, Context::ring>(to<Heads>(q), to<Heads>(k), to<Heads>(v));
    return to<On<tensor, Split<1>>>(y);
  }
  static constexpr auto attend_masked(Distributed auto q, Distributed auto k, Distributed auto v,
                                      Distributed auto seen) {
    using Heads = On<tensor, Split<2>>;
    return to<On<tensor, Split<1>>>(masked_attention<false, Context::ring>(to<Heads>(q), to<Heads>(k), to<Heads>(v),
                                                                           to<On<tensor, Broadcast>>(seen)));
  }
};
template <Context how>
struct Said {
  template <bool causal>
  static constexpr auto attend(Distributed auto q, Distributed auto k, Distributed auto v) {
    return attention<causal, how>(q, k, v);
  }
  static constexpr auto attend_masked(Distributed auto q, Distributed auto k, Distributed auto v,
                                      Distributed auto seen) {
    return masked_attention<false, how>(q, k, v, seen);
  }
};

template <class How>
struct Model {
  Parameter<double, Shape<size, size>> query{normal(1)}, key{normal(1)}, value{normal(1)};
  constexpr auto operator()(Distributed auto weight, Distributed auto q, Distributed auto k, Distributed auto few_keys,
                            Distributed auto seen) const {
    const auto a = matmul(q, query), b = matmul(k, key), c = matmul(k, value);
    const auto f = matmul(few_keys, key), g = matmul(few_keys, value);
    return mean(weight * How::template attend<true>(a, b, c)) + mean(weight * How::template attend<true>(a, f, g)) +
           mean(weight * How::template attend<false>(a, b, c)) + mean(weight * How::attend_masked(a, b, c, seen));
  }
};
template <class How, Dim split>
struct Program {
  template <int count>
  using Heads = Wanted<double, Shape<batch / data, split, count, size>>;
  using Step = Training<Model<How>, KeepGradients, Heads<heads>, Heads<heads>, Heads<heads>, Heads<few>,
                        Tensor<int, Shape<batch / data, split>>>;
};

template <class Step>
std::vector<Array> outputs(const Mesh& mesh) {
  const auto in = [](int count, std::uint64_t stream) {
    return program::numbers<double>(batch * positions * count * size, stream);
  };
  const auto weight = in(heads, 1), q = in(heads, 2), k = in(heads, 3), few_keys = in(few, 4);
  std::vector<int> seen = program::numbers<int>(batch * positions, 9, 2);
  for (std::size_t i = 0; i < 14; ++i) seen[i] = 0;  // the first ranks have none
  return program::outputs<Step>(mesh, [&](auto& executor) {
    executor.input(0, weight);
    executor.input(1, q);
    executor.input(2, k);
    executor.input(3, few_keys);
    executor.input(4, seen);
  });
}

template <class How, Dim split = positions / sequence / tensor>
void check() {
  const std::vector<Array> one = outputs<typename Program<Said<Context::none>, positions>::Step>(Mesh{data = 1});
  REQUIRE(one.size() == 2 + 3 + 4);
  for (const Mesh& mesh :
       {Mesh{sequence = 2, tensor = 2}, Mesh{tensor = 2, sequence = 2}, Mesh{sequence = 2, tensor = 3},
        Mesh{sequence = 3, tensor = 2}, Mesh{sequence = 4, tensor = 2}, Mesh{sequence = 2, tensor = 1},
        Mesh{sequence = 1, tensor = 2}, Mesh{data = 2, sequence = 2, tensor = 2}}) {
    INFO(text(mesh));
    const std::vector<Array> many = outputs<typename Program<How, split>::Step>(mesh);
    REQUIRE(many.size() == one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      INFO("output " << i);
      CHECK(lockstep::difference(many[i], one[i]) < 1e-10);
    }
  }
}

}  // namespace

TEST_CASE("a ring on the outer axis, heads on the inner one") {
  check<Nested>();
  const OwnedPlan plan = derive<Program<Nested, positions / sequence / tensor>::Step>(Mesh{sequence = 4, tensor = 2});
  // three attentions of as many key heads as query heads, one of half of them, and one mask; what several attend to is
  // brought to the heads once
  const double part = 8.0 * batch * positions * heads * size / 8;
  CHECK(plan->forward.sent(all_to_all(tensor)) == doctest::Approx(part / 2 * (3 + 2 * 0.5 + 4)));
  CHECK(plan->forward.sent(rotate(sequence)) ==
        doctest::Approx(3 * (part * (3 * 2 + 1) + 4.0 * batch * positions / 4)));
  CHECK(plan->forward.calls(all_gather) == 1);
  CHECK(plan->never(all_gather(sequence), all_to_all(sequence), rotate(tensor)));
}
TEST_CASE("in zigzag on the outer axis") {
  check<Nested, positions / zigzag(sequence) / tensor>();
  check<Said<Context::gathered>, positions / zigzag(sequence) / tensor>();
  check<Said<Context::ulysses>, positions / cyclic(sequence) / tensor>();
}
TEST_CASE("gathered on both") { check<Said<Context::gathered>>(); }
TEST_CASE("to the heads on both") { check<Said<Context::ulysses>>(); }
