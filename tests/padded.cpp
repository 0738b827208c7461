// Extents that ranks do not divide: filled up and masked, a program computes what it computes of them on one rank. And
// how much of packed documents each rank computes.
#include <doctest/doctest.h>

#include <parallel/data/documents.hpp>
#include <parallel/data/padded.hpp>
#include <parallel/parallel.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using lockstep::Array;

namespace {

constexpr int examples = 2, tokens = 10, classes = 7;

/// Attention to what came before, and to all that is seen.
struct Model {
  Parameter<double, Shape<classes, 8>> token{normal(1)};
  Parameter<double, Shape<8, 3, 2, 4>> qkv{normal(0.5)};
  Parameter<double, Shape<2, 4, 8>> projection{normal(0.5)};
  Parameter<double, Shape<8, classes>> out{normal(1)};
  constexpr auto operator()(Distributed auto text, Distributed auto seen, Distributed auto targets) const {
    const auto x = embedding(text, token);
    const auto all = matmul(x, qkv);
    const auto q = take<2, 0>(all), k = take<2, 1>(all), v = take<2, 2>(all);
    const auto y = attention<true, Context::ring>(q, k, v) + masked_attention<false, Context::ring>(q, k, v, seen);
    return mean_cross_entropy<0, -100>(matmul(x + matmul<2>(y, projection), out), targets);
  }
};
template <Dim positions>
using Step = Training<Model, KeepGradients, Tensor<int, Shape<examples, positions>>,
                      Tensor<int, Shape<examples, positions>>, Tensor<int, Shape<examples, positions>>>;

template <Padded extent, Dim positions>
std::vector<Array> outputs(const Mesh& mesh) {
  return program::outputs<Step<positions>>(mesh, [](auto& executor) {
    executor.input(0, padded(program::numbers<int>(examples * tokens, 1, classes), extent, 0));
    executor.input(1, padded(std::vector<int>(examples * tokens, 1), extent, 0));
    executor.input(2, padded(program::numbers<int>(examples * tokens, 2, classes), extent, -100));
  });
}

}  // namespace

static_assert(padded(10, 4).size == 12 && padded(10, 4).added() == 2 && padded(12, 4).added() == 0);
static_assert(padded(50257, 8).size == 50264 && padded(1, 64).size == 64 && padded(3, 4).share() == 0.25);

TEST_CASE("a sequence that ranks do not divide is filled up, and gives what it gives on one rank") {
  constexpr Padded whole = padded(tokens, 1), for_two = padded(tokens, 2 * 2), for_three = padded(tokens, 3),
                   for_four = padded(tokens, 4);
  const std::vector<Array> one = outputs<whole, whole>(Mesh{});
  REQUIRE(one.size() == 2 + 4);
  for (const Array& output : one) CHECK(std::abs(output.data[0]) > 1e-4);
  const auto check = [&](const std::vector<Array>& many) {
    REQUIRE(many.size() == one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      INFO("output " << i);
      CHECK(lockstep::difference(many[i], one[i]) < 1e-10);
    }
  };
  check(outputs<for_two, for_two / zigzag(sequence)>(Mesh{sequence = 2}));
  check(outputs<for_three, for_three / sequence>(Mesh{sequence = 3}));
  check(outputs<for_four, for_four / sequence>(Mesh{sequence = 4}));
  check(outputs<for_four, for_four / cyclic(sequence)>(Mesh{sequence = 4}));
}

TEST_CASE("rows are filled up one by one") {
  CHECK(padded(std::vector<int>{1, 2, 3, 4, 5, 6}, padded(3, 2), 9) == std::vector<int>{1, 2, 3, 9, 4, 5, 6, 9});
  CHECK(padded(std::vector<float>{}, padded(3, 2), 0.F).empty());
  CHECK(padded(std::vector<float>{1, 2, 3}, padded(3, 2), 0) == std::vector<float>{1, 2, 3, 0});
  const std::vector<int> rows{1, 2, 3, 4, 5, 6};  // three, of which four are to be
  CHECK(padded(rows, {.size = 4 * 2, .of = 3 * 2}, 0) == std::vector<int>{1, 2, 3, 4, 5, 6, 0, 0});
  CHECK_THROWS_WITH_AS(padded(std::vector<int>{1, 2}, padded(3, 2), 0),
                       "2 numbers are padded, which are no whole rows of 3; give those of whole rows, or an extent "
                       "whose `of` is a row's numbers",
                       Failure);
  CHECK_THROWS_WITH_AS(padded(0, 4), "an extent of 0 is padded for 4 ranks; both are at least 1", Failure);
}

TEST_CASE("what ranks compute of packed documents, by counting") {
  const std::vector<std::vector<std::int64_t>> packed{{24}, {1, 23}, {20, 4}, {3, 5, 9, 7}, {6, 6, 6, 6}};
  for (const auto& lengths : packed)
    for (const Order order : {Order::contiguous, Order::zigzag, Order::cyclic})
      for (const int ranks : {1, 2, 3, 4, 6})
        for (const bool causal : {true, false}) {
          std::vector<int> document;
          for (std::size_t d = 0; d < lengths.size(); ++d)
            document.insert(document.end(), static_cast<std::size_t>(lengths[d]), static_cast<int>(d));
          std::vector<std::int64_t> counted(static_cast<std::size_t>(ranks), 0);
          const Standing stands{order, 24, ranks};
          for (int place = 0; place < 24; ++place) {
            const auto query = static_cast<std::size_t>(stands.element(place));
            for (std::size_t key = 0; key < 24; ++key)
              counted[static_cast<std::size_t>(place / (24 / ranks))] +=
                  document[key] == document[query] && (!causal || key <= query);
          }
          CHECK(pairs_of_documents(lengths, ranks, order, causal) == counted);
        }
  CHECK_THROWS_WITH_AS(pairs_of_documents({3, 0}, 1), "a document has 0 tokens; each has at least 1", Failure);
  CHECK_THROWS_AS(pairs_of_documents({12}, 4, Order::zigzag), Failure);
  CHECK_THROWS_AS(pairs_of_documents({12}, 0), Failure);
  // cyclic is even, whatever the lengths; contiguous is not
  const auto even = pairs_of_documents({700, 300, 20, 4}, 4, Order::cyclic),
             uneven = pairs_of_documents({700, 300, 20, 4}, 4);
  CHECK(static_cast<double>(even.back()) / static_cast<double>(even.front()) < 1.02);
  CHECK(uneven[2] > 3 * uneven[0]);
}
