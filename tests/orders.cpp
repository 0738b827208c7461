// A sequence that stands in an order: loss and all gradients are those of one rank, whose elements stand as they are
// counted.
#include "context.hpp"

namespace {

using namespace context_parallel;

const Mesh meshes[] = {Mesh{sequence = 1},
                       Mesh{sequence = 2},
                       Mesh{sequence = 3},
                       Mesh{sequence = 4},
                       Mesh{data = 2, sequence = 2},
                       Mesh{tensor = 3, sequence = 2}};

template <Context how, template <int> class Sequence>
void check() {
  const std::vector<Array> one = outputs<All<Context::none, Whole>::Step>(Mesh{data = 1});
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    const std::vector<Array> many = outputs<typename All<how, Sequence>::Step>(mesh);
    REQUIRE(many.size() == one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      INFO("output " << i);
      CHECK(lockstep::difference(many[i], one[i]) < 1e-10);
    }
  }
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
using LanguageStep = Training<Language<Sequence, how>, KeepGradients, Tensor<int, Shape<batch / data, Sequence<length>::dim>>,
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
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    const std::vector<Array> many = program::outputs<LanguageStep<Sequence, how>>(mesh, give);
    REQUIRE(many.size() == one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      INFO("output " << i);
      CHECK(lockstep::difference(many[i], one[i]) < 1e-10);
    }
  }
}

}  // namespace

TEST_CASE("positions, masks, dropped elements and data follow zigzag") { check_language<InZigzag, Context::ring>(); }
TEST_CASE("and cyclic, with keys gathered") { check_language<Cyclic, Context::gathered>(); }
TEST_CASE("and zigzag, brought to the heads") { check_language<InZigzag, Context::ulysses>(); }
