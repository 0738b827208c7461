// A network of convolutions, norms over the batch and pools: loss and every gradient on every mesh are those of one
// rank. Examples are split over data, channels over tensor, rows over sequence.
#include <parallel/parallel.hpp>

#include "invariance.hpp"

namespace {

using namespace parallel;
using namespace parallel::axes;

template <int factor, class T = double>
struct Network {
  static constexpr int batch = 2 * factor, inner = 2 * factor, classes = 5, rows = 4 * factor;
  using Images = Tensor<T, Shape<batch / data, 3, rows / sequence, 6>>;
  using Targets = Tensor<int, Shape<batch / data>>;

  Parameter<T, Shape<inner, 3, 2, 2>> patches{normal(0.3)};
  Parameter<T, Shape<inner / tensor, inner, 3, 3>> first{normal(0.3)};
  Parameter<T, Shape<inner / tensor>> gain{ones}, shift{zeros};
  Parameter<T, Shape<inner, inner / tensor, 3, 2>> second{normal(0.3)};
  Parameter<T, Shape<inner>> bias{zeros};  // behind the norm: one before it has no gradient
  Parameter<T, Shape<inner, classes>> head{normal(0.3)};

  constexpr auto operator()(Distributed auto images, Distributed auto targets) const {
    // patches lie apart, so rows stay where they are; what overlaps is gathered
    const auto cut = relu(convolution<2>(images, patches));
    const auto whole = to<On<sequence, Invariant>>(cut);
    const auto hidden = batch_norm(convolution<1, 1>(whole, first), gain, shift);
    const auto smaller = max_pool<2, 1>(relu(hidden));
    const auto mixed = average_pool<HeightWidth{2, 1}, 1>(convolution<1, HeightWidth{1, 0}>(smaller, second) +
                                                          reshape<inner, 1, 1>(bias));
    const auto logits = einsum<"bchw,cj->bj">(mixed, head);
    return mean(cross_entropy(logits, targets));
  }
};

template <int factor>
void check_network() {
  using Model = Network<factor>;
  using Step = Training<Model, KeepGradients, typename Model::Images, typename Model::Targets>;
  const auto images = program::numbers<double>(Model::batch * 3 * Model::rows * 6, 1);
  const auto targets = program::numbers<int>(Model::batch, 2, Model::classes);
  const auto feed = [&](auto& executor) {
    executor.input(0, images);
    executor.input(1, targets);
  };
  const std::vector<lockstep::Array> one = program::outputs<Step>(Mesh{data = 1}, feed);
  REQUIRE(one.size() == 2 + 7);
  CHECK(one[0].data[0] > 0.5);
  for (const Mesh& mesh : invariance::meshes(factor)) {
    INFO(text(mesh));
    const std::vector<lockstep::Array> many = program::outputs<Step>(mesh, feed);
    for (std::size_t i = 0; i < one.size(); ++i) {
      INFO("output " << i);
      CHECK(lockstep::difference(many[i], one[i]) < 1e-10);
    }
  }
}

}  // namespace

TEST_CASE("a network of convolutions computes the same on every mesh") {
  check_network<4>();
  check_network<3>();
}
TEST_CASE("in bf16 it computes nearly the same: statistics are taken in float") {
  using Half = Network<4, bfloat16>;
  using Exact = Network<4>;
  const auto images = program::numbers<double>(Exact::batch * 3 * Exact::rows * 6, 1);
  const auto targets = program::numbers<int>(Exact::batch, 2, Exact::classes);
  const Mesh mesh{data = 2, tensor = 2};
  const auto exact =
      program::outputs<Training<Exact, KeepGradients, Exact::Images, Exact::Targets>>(mesh, [&](auto& e) {
        e.input(0, images);
        e.input(1, targets);
      });
  std::vector<bfloat16> rounded;
  for (const double x : images) rounded.push_back(bfloat16(static_cast<float>(x)));
  const auto half = program::outputs<Training<Half, KeepGradients, Half::Images, Half::Targets>>(mesh, [&](auto& e) {
    e.input(0, rounded);
    e.input(1, targets);
  });
  CHECK(half[0].data[0] == doctest::Approx(exact[0].data[0]).epsilon(0.03));
  CHECK(half[1].data[0] == doctest::Approx(exact[1].data[0]).epsilon(0.1));  // the norm of all gradients
}
