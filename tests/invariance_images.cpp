// A network of convolutions, norms over the batch and pools: loss and every gradient on every mesh are those of one
// rank. Examples are split over data, channels over tensor, rows over sequence.
#include <parallel/parallel.hpp>

#include "invariance.hpp"

namespace {

using namespace parallel;
using namespace parallel::axes;

template <int factor>
struct Network {
  static constexpr int batch = 2 * factor, inner = 2 * factor, classes = 5, rows = 4 * factor;
  using Images = Tensor<double, Shape<batch / data, 3, rows / sequence, 6>>;
  using Targets = Tensor<int, Shape<batch / data>>;

  Parameter<double, Shape<inner, 3, 2, 2>> patches{normal(0.3)};
  Parameter<double, Shape<inner / tensor, inner, 3, 3>> first{normal(0.3)};
  Parameter<double, Shape<inner / tensor>> gain{ones}, shift{zeros};
  Parameter<double, Shape<inner, inner / tensor, 3, 2>> second{normal(0.3)};
  Parameter<double, Shape<inner>> bias{zeros};  // behind the norm: one before it has no gradient
  Parameter<double, Shape<inner, classes>> head{normal(0.3)};

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
