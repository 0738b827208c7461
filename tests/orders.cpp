// A sequence that stands in an order: loss and all gradients are those of one rank, whose elements stand as they are
// counted.
#include "context.hpp"

namespace {

using namespace context_parallel;

template <int positions>
struct InZigzag {
  static constexpr Dim dim = positions / zigzag(sequence);
};
template <int positions>
struct Cyclic {
  static constexpr Dim dim = positions / cyclic(sequence);
};

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
