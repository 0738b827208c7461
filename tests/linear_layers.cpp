// The linear layers of docs/megatron.md, alone and in pairs, gathered, sliced or not: on two and four ranks loss and
// gradients are those of one rank.
#include <doctest/doctest.h>

#include "docs/megatron.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::axes;
using lockstep::Array;

namespace {
template <class Layer, Dim... x>
std::vector<Array> trained(int ranks) {
  const OwnedPlan plan =
      derive<Training<megatron::Alone<Layer>, KeepGradients, Wanted<float, Shape<x...>>>>(Mesh{tensor = ranks});
  return program::outputs(plan, [&](auto& executor, under_test::Parameters& parameters) {
    program::randomize<float>(plan, executor.rank(), parameters);
    executor.input(0, program::numbers<float>((x.size * ...), 1));
  });
}
template <class Layer, Dim... x>
void check() {
  const std::vector<Array> one = trained<Layer, x...>(1);
  REQUIRE(one.size() >= 2 + 2);  // loss, norm, the gradients of a weight and a bias
  for (const Array& output : one) CHECK(std::abs(output.data[0]) > 1e-3);
  for (const int ranks : {2, 4}) {
    const std::vector<Array> many = trained<Layer, x...>(ranks);
    for (std::size_t i = 0; i < one.size(); ++i) {
      INFO("output " << i << " on " << ranks << " ranks");
      double scale = 1;
#if defined(PARALLEL_TEST_CUDA) && !defined(PARALLEL_STAND_IN)  // cuBLASLt adds in another order by shape
      for (const double element : one[i].data) scale = std::max(scale, std::abs(element));
#endif
      CHECK(lockstep::difference(many[i], one[i]) < 1e-6 * scale);
    }
  }
}
}  // namespace

TEST_CASE("column parallel, its output split or gathered, its bias split or whole") {
  check<megatron::Column, 4, 6>();
  check<megatron::GatheredColumn, 4, 6>();
  check<megatron::WholeBias, 4, 6>();
}
TEST_CASE("row parallel, its input split before or where it enters") {
  check<megatron::Row, 4, 8 / tensor>();
  check<megatron::Row, 4, 8>();
}
TEST_CASE("pairs, gathered between or not, between whole rows or slices") {
  check<megatron::Pair, 4, 6>();
  check<megatron::GatheredPair, 4, 6>();
  check<megatron::SlicedPair, 4 / tensor, 6>();
}
