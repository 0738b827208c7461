// Attention over a sequence that several ranks share: loss and all gradients are those of one rank.
#include "context.hpp"

namespace {

using namespace context_parallel;

const Mesh meshes[] = {Mesh{sequence = 1},           Mesh{sequence = 2},
                       Mesh{sequence = 3},           Mesh{sequence = 4},
                       Mesh{data = 2, sequence = 2}, Mesh{sequence = 2, tensor = 2},
                       Mesh{tensor = 3, sequence = 2}};

template <Context how>
void check() {
  const std::vector<Array> one = outputs<All<Context::none, Whole>::Step>(Mesh{data = 1});
  REQUIRE(one.size() == 2 + 21 + 5);
  for (const Array& a : one) {
    double most = 0;
    for (const double x : a.data) most = std::max(most, std::abs(x));
    CHECK(most > 1e-7);
  }
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    const std::vector<Array> many = outputs<typename All<how, OnSequence>::Step>(mesh);
    REQUIRE(many.size() == one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      INFO("output " << i);
      CHECK(lockstep::difference(many[i], one[i]) < 1e-10);
    }
  }
}

}  // namespace

TEST_CASE("keys and values that come around a ring") { check<Context::ring>(); }
TEST_CASE("keys and values that are gathered") { check<Context::gathered>(); }
TEST_CASE("queries, keys and values that are brought to the heads") { check<Context::ulysses>(); }
