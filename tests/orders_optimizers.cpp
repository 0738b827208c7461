// Parameters that stand in an order: every optimizer makes of them what it makes of such that stand as they are counted,
// whole and stored in parts.
#include "ten_steps.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

template <Dim hidden>
struct Model {
  struct Block {
    Parameter<double, Shape<6, hidden>> up{normal(0.4)};
    Parameter<double, Shape<hidden>> bias{normal(0.4)};
    Parameter<double, Shape<hidden, 6>> down{normal(0.4)};
    constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(x, up) + bias), down); }
  };
  Parameter<double, Shape<6, hidden>> in{normal(0.4)};
  Parameter<double, Shape<hidden, 6>> out{normal(0.4)};
  Layers<2, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(matmul(matmul(x, in), out)) - 1.0)); }
};
using X = Tensor<double, Shape<4 / data, 6>>;

template <Dim hidden, class Optimizer>
void check(const std::vector<double>& one, const typename Optimizer::Hyperparameters& numbers) {
  using Step = Training<Model<hidden>, Optimizer, X>;
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 4}}) {
    INFO(text(mesh));
    ten_steps::check_near(ten_steps::losses<Optimizer>(build<Step>(), mesh, numbers), one);
    using Zero1 = AllStored<Step, Stored<data, Zero::states>>;
    ten_steps::check_near(ten_steps::losses<Optimizer>(build<Zero1>(), mesh, numbers), one);
    ten_steps::check_near(ten_steps::losses<Optimizer>(build<AllStored<Step, Stored<data>>>(), mesh, numbers), one);
  }
}
template <class Optimizer>
void check() {
  typename Optimizer::Hyperparameters numbers;
  numbers.learning_rate = 0.02;
  const std::vector<double> one =
      ten_steps::losses<Optimizer>(build<Training<Model<16>, Optimizer, X>>(), Mesh{data = 1}, numbers);
  check<16 / zigzag(tensor), Optimizer>(one, numbers);
  check<16 / cyclic(tensor), Optimizer>(one, numbers);
}

/// A parameter that is whole, and brought to the order of what it meets.
template <Dim columns>
struct Whole {
  Parameter<double, Shape<8, 6>> w{normal(0.4)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w) - 1.0)); }
};
template <Dim columns>
using WholeStep = Training<Whole<columns>, Muon, Tensor<double, Shape<4, columns>>>;

}  // namespace

TEST_CASE("a whole matrix stays one where it is brought to an order") {
  Muon::Hyperparameters numbers;
  numbers.learning_rate = 0.02;
  const auto one = ten_steps::losses<Muon>(build<WholeStep<8>>(), Mesh{}, numbers);
  ten_steps::check_near(ten_steps::losses<Muon>(build<WholeStep<8 / zigzag(tensor)>>(), Mesh{tensor = 2}, numbers),
                        one);
}
TEST_CASE("Momentum") { check<Momentum>(); }
TEST_CASE("AdamW") { check<AdamW>(); }
TEST_CASE("Adafactor") { check<Adafactor>(); }
TEST_CASE("Muon") { check<Muon>(); }
