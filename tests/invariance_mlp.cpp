#include "invariance.hpp"

using namespace parallel;
using namespace parallel::axes;

namespace {
template <class T, int factor>
void check_mlp() {
  constexpr int rows = 2 * factor, width = factor;
  using Model = models::Regression<T, rows, width>;
  using Batch = Wanted<T, Shape<rows / data, width>>;
  using Step = Training<Model, KeepGradients, Batch, Tensor<T, Shape<rows / data, width>>>;
  const auto x = program::numbers<T>(rows * width, 1), y = program::numbers<T>(rows * width, 2);
  const auto feed = [&](auto& executor) {
    executor.input(0, x);
    executor.input(1, y);
  };
  const auto one = program::outputs<Step>(Mesh{data = 1}, feed);
  REQUIRE(one.size() == 2 + 8 + 1);
  for (const Mesh& mesh : invariance::meshes(factor)) {
    if (mesh.extent(&sequence) > 1) continue;
    INFO(text(mesh));
    const auto many = program::outputs<Step>(mesh, feed);
    for (std::size_t i = 0; i < one.size(); ++i)
      CHECK(lockstep::difference(many[i], one[i]) < (sizeof(T) == 8 ? 1e-10 : 1e-5));
  }
}
}  // namespace

TEST_CASE("a perceptron computes the same on every mesh of up to eight ranks") {
  check_mlp<double, 8>();
  check_mlp<double, 6>();
  check_mlp<double, 5>();
  check_mlp<double, 7>();
  check_mlp<float, 8>();
}
