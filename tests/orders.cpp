// A sequence that stands in an order: loss and all gradients are those of one rank, whose elements stand as they are
// counted.
#include <parallel/data/rows.hpp>

#include "context.hpp"

namespace {

using namespace context_parallel;

const Mesh meshes[] = {Mesh{sequence = 1}, Mesh{sequence = 2},           Mesh{sequence = 3},
                       Mesh{sequence = 4}, Mesh{data = 2, sequence = 2}, Mesh{tensor = 3, sequence = 2}};

template <class Outputs>
void check_alike(const std::vector<Array>& one, Outputs outputs_on) {
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    const std::vector<Array> many = outputs_on(mesh);
    REQUIRE(many.size() == one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      INFO("output " << i);
      CHECK(lockstep::difference(many[i], one[i]) < 1e-10);
    }
  }
}
template <Context how, template <int> class Sequence>
void check() {
  const std::vector<Array> one = outputs<All<Context::none, Whole>::Step>(Mesh{data = 1});
  check_alike(one, [](const Mesh& mesh) { return outputs<typename All<how, Sequence>::Step>(mesh); });
}

}  // namespace

TEST_CASE("zigzag around a ring") { check<Context::ring, InZigzag>(); }
TEST_CASE("cyclic around a ring") { check<Context::ring, Cyclic>(); }
TEST_CASE("zigzag before gathered keys and values") { check<Context::gathered, InZigzag>(); }
TEST_CASE("cyclic before gathered keys and values") { check<Context::gathered, Cyclic>(); }
TEST_CASE("zigzag brought to the heads") { check<Context::ulysses, InZigzag>(); }
TEST_CASE("cyclic brought to the heads") { check<Context::ulysses, Cyclic>(); }

namespace {

/// Whatever knows where an element stands: a table of positions that is a parameter, whole or in the order itself, one
/// that counts them, rotary angles, dropped elements and probabilities, random numbers, targets that are whole.
template <template <int> class Sequence, Context how>
struct Language {
  static constexpr Dim positions = Sequence<length>::dim;
  struct Block {
    Parameter<double, Shape<8>> gain{normal(1)};
    Parameter<double, Shape<8, 3, 12 / tensor, 2>> qkv{normal(0.5)};
    Parameter<double, Shape<12 / tensor, 2, 8>> projection{normal(0.5)};
    constexpr auto operator()(Distributed auto x) const {
      const auto all = matmul(rms_norm(x, gain), qkv);
      const auto y = attention<true, how>(rotary(take<2, 0>(all)), rotary(take<2, 1>(all)), take<2, 2>(all), 0.2);
      return x + dropout(matmul<2>(y, projection), 0.3);
    }
  };
  Parameter<double, Shape<10, 8>> token{normal(1)};
  Parameter<double, Shape<length, 8>> place{normal(1)};
  Parameter<double, Shape<positions, 8>> standing{normal(1)};
  Parameter<double, Shape<length, 8>> counted{normal(1)};
  Layers<2, Block> blocks;
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    const auto x = embedding(tokens, token) + place + standing + embedding(iota<Shape<positions>>(), counted) +
                   random<double, Shape<positions, 8>>(0.1);
    return mean_cross_entropy<10>(matmul(blocks(x), transpose(token)), targets);
  }
};
template <template <int> class Sequence, Context how>
using LanguageStep =
    Training<Language<Sequence, how>, KeepGradients, Tensor<int, Shape<batch / data, Sequence<length>::dim>>,
             Tensor<int, Shape<batch / data, length>>>;

template <template <int> class Sequence, Context how>
void check_language() {
  static const std::vector<int> tokens = program::numbers<int>(batch * length, 21, 10),
                                targets = program::numbers<int>(batch * length, 22, 10);
  const auto give = [](auto& executor) {
    executor.input(0, tokens);
    executor.input(1, targets);
    executor.scalar("seed", 3);
    executor.scalar("step", 5);
  };
  const std::vector<Array> one = program::outputs<LanguageStep<Whole, Context::none>>(Mesh{data = 1}, give);
  check_alike(one, [&](const Mesh& mesh) { return program::outputs<LanguageStep<Sequence, how>>(mesh, give); });
}

}  // namespace

TEST_CASE("positions, masks, dropped elements and data follow zigzag") { check_language<InZigzag, Context::ring>(); }
TEST_CASE("and cyclic, with keys gathered") { check_language<Cyclic, Context::gathered>(); }
TEST_CASE("and zigzag, brought to the heads") { check_language<InZigzag, Context::ulysses>(); }

namespace {

/// Documents that a token ends, packed one behind the other, by tokens alone.
template <template <int> class Sequence, Context how>
struct Packed {
  Parameter<double, Shape<10, 8>> token{normal(1)};
  Parameter<double, Shape<8, 3, 12 / tensor, 2>> qkv{normal(0.5)};
  Parameter<double, Shape<12 / tensor, 2, 8>> projection{normal(0.5)};
  constexpr auto operator()(Distributed auto tokens) const {
    const auto ends = tokens == 9;
    const auto documents = cumulative_sum<1>(ends) - ends;
    const auto x = to<Shape<batch / data, Sequence<length>::dim, 8>>(embedding(tokens, token));
    const auto all = matmul(x, qkv);
    const auto y = document_attention<true, how>(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all),
                                                 to<Shape<batch / data, Sequence<length>::dim>>(documents));
    return mean_cross_entropy<10>(matmul(matmul<2>(y, projection), transpose(token)), tokens);
  }
};
template <template <int> class Sequence, Context how>
using PackedStep = Training<Packed<Sequence, how>, KeepGradients, Tensor<int, Shape<batch / data, length>>>;
struct Alone {  // a document by itself
  Parameter<double, Shape<10, 8>> token{normal(1)};
  Parameter<double, Shape<8, 3, 12, 2>> qkv{normal(0.5)};
  Parameter<double, Shape<12, 2, 8>> projection{normal(0.5)};
  constexpr auto operator()(Distributed auto tokens) const {
    const auto all = matmul(embedding(tokens, token), qkv);
    const auto y = attention(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all));
    return mean_cross_entropy<10>(matmul(matmul<2>(y, projection), transpose(token)), tokens);
  }
};

template <template <int> class Sequence, Context how>
void check_packed() {
  std::vector<int> tokens = program::numbers<int>(batch * length, 21, 9);
  for (int b = 0; b < batch; ++b)
    for (const int end : {5, 11, 17, 23}) tokens[static_cast<std::size_t>(b * length + end)] = 9;
  // four documents of six tokens each: as many examples of one program without a mask
  const auto give = [&](auto& executor) { executor.input(0, tokens); };
  const std::vector<Array> one =
      program::outputs<Training<Alone, KeepGradients, Tensor<int, Shape<4 * batch, length / 4>>>>(Mesh{}, give);
  check_alike(one, [&](const Mesh& mesh) { return program::outputs<PackedStep<Sequence, how>>(mesh, give); });
}

}  // namespace

TEST_CASE("packed documents are what each is by itself, around a ring") { check_packed<OnSequence, Context::ring>(); }
TEST_CASE("in zigzag") { check_packed<InZigzag, Context::ring>(); }
TEST_CASE("gathered") { check_packed<InZigzag, Context::gathered>(); }
TEST_CASE("brought to the heads") { check_packed<Cyclic, Context::ulysses>(); }

namespace {
struct Mean {
  constexpr auto operator()(Distributed auto x) const { return mean(x); }
};
}  // namespace

TEST_CASE("rows of a batch that stands in an order are read as they stand") {
  const auto check = [](const auto& plan, int rank, std::vector<std::int64_t> rows) {
    CHECK(rows_of(*plan, 0, rank) == rows);
  };
  const OwnedPlan zig = derive<Evaluation<Mean, Tensor<float, Shape<8 / zigzag(data), 3>>>>(Mesh{data = 2});
  check(zig, 0, {0, 1, 6, 7});
  check(zig, 1, {2, 3, 4, 5});
  check(derive<Evaluation<Mean, Tensor<float, Shape<8 / cyclic(data), 3>>>>(Mesh{data = 2}), 1, {1, 3, 5, 7});
}

namespace {
struct Handed {
  Parameter<double, Shape<4, 4>> w{normal(1)};
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(x, w);
    return std::pair(y, to<On<sequence, Invariant>>(y));
  }
};
template <template <int> class Sequence>
void check_handed() {
  using Step = Evaluation<Handed, Tensor<double, Shape<2, Sequence<24>::dim, 4>>>;
  const std::vector<double> x = program::numbers<double>(2 * 24 * 4, 31);
  const auto results = [&](const Mesh& mesh) {
    const OwnedPlan plan = derive<Step>(mesh);
    std::vector<std::vector<double>> all(2, std::vector<double>(2 * 24 * 4));
    run_threads(mesh.ranks(), [&](Threads& world) {
      Parameters parameters(plan, world.rank(), 5);
      Executor<Threads, CpuDouble> executor(plan, world, parameters);
      executor.input(0, x);
      executor.run();
      for (int o = 0; o < 2; ++o) {
        std::vector<double> whole(2 * 24 * 4, 7e7);  // a rank writes what it holds
        executor.get(plan->graph.text(plan->graph.outputs[static_cast<std::size_t>(o)].name), whole);
        for (int rank = 0; rank < world.size(); ++rank) {
          world.barrier();
          for (std::size_t i = 0; i < whole.size() && rank == world.rank(); ++i)
            if (whole[i] != 7e7) all[static_cast<std::size_t>(o)][i] = whole[i];
        }
      }
    });
    return all;
  };
  const auto one = results(Mesh{sequence = 1});
  for (const int n : {2, 3, 4}) {
    INFO(n << " ranks");
    const auto many = results(Mesh{sequence = n});
    for (std::size_t o = 0; o < 2; ++o)
      for (std::size_t i = 0; i < one[o].size(); ++i) CHECK(many[o][i] == doctest::Approx(one[o][i]).epsilon(1e-12));
  }
}
}  // namespace

TEST_CASE("outputs are read as they are counted, split or whole") {
  check_handed<InZigzag>();
  check_handed<Cyclic>();
}

namespace {
/// Seven positions, which one rank has as they are counted.
struct Odd {
  Parameter<double, Shape<7, 4>> place{normal(1)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    const auto z = dropout(x + y + embedding(iota<Shape<7 / zigzag(sequence)>>(), place) + place, 0.3);
    return mean(z * z);
  }
};
struct OddCounted {
  Parameter<double, Shape<7, 4>> place{normal(1)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    const auto z = dropout(x + y + embedding(iota<Shape<7>>(), place) + place, 0.3);
    return mean(z * z);
  }
};
/// A table that is used three times.
struct Thrice {
  Parameter<double, Shape<8, 4>> w{normal(1)};
  constexpr auto operator()(Distributed auto x) const { return mean((x + w) * (x * w) + w * x); }
};
}  // namespace

TEST_CASE("of one rank every order is how its elements are counted, of any number") {
  const std::vector<double> x = program::numbers<double>(2 * 7 * 4, 41), y = program::numbers<double>(2 * 7 * 4, 42);
  const auto give = [&](auto& executor) {
    executor.input(0, x);
    executor.input(1, y);
  };
  using Plain = Tensor<double, Shape<2, 7, 4>>;
  const std::vector<Array> one = program::outputs<Training<OddCounted, KeepGradients, Plain, Plain>>(Mesh{}, give);
  using In = Tensor<double, Shape<2, 7 / zigzag(sequence), 4>>;
  const std::vector<Array> many = program::outputs<Training<Odd, KeepGradients, In, Plain>>(Mesh{sequence = 1}, give);
  REQUIRE(many.size() == one.size());
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(lockstep::difference(many[i], one[i]) == 0);
}
TEST_CASE("what is brought to an order is brought once, and its gradient back once") {
  const OwnedPlan plan =
      derive<Training<Thrice, KeepGradients, Tensor<double, Shape<8 / zigzag(sequence), 4>>>>(Mesh{sequence = 2});
  int there = 0, back = 0;
  for (const int n : plan->graph.order)
    if (const internals::Node& node = plan->graph.node(n); node.operation == &operation::reorder)
      ++(node.phase == Phase::forward ? there : back);
  CHECK(there == 1);
  CHECK(back == 1);
  CHECK(plan->calls() == 2);  // the loss, and the gradient
}
TEST_CASE("targets that are whole are checked where logits stand in an order") {
  const OwnedPlan plan = derive<LanguageStep<InZigzag, Context::ring>>(Mesh{sequence = 2});
  run_threads(2, [&](Threads& world) {
    Parameters parameters(plan, world.rank(), 5);
    Executor<Threads, CpuDouble> executor(plan, world, parameters);
    std::vector<int> targets(batch * length, 3);
    executor.input(1, targets);
    targets[7] = 10;
    CHECK_THROWS_AS(executor.input(1, targets), Failure);
  });
}
