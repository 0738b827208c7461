// What is stored over several axes lies on the ranks' devices (stored_axes.hpp).
#include "stored_axes.hpp"

using namespace stored_axes;

TEST_CASE("over two axes: a parameter used on both, differently on one or the other, in one product or several") {
  check_words<Lies::on_device, Training<Gain, AdamW, OverBoth>>();
  check_words<Lies::on_device, Training<Product<>, AdamW, OverBoth>>();
  check_words<Lies::on_device, Training<Product<On<tensor, Broadcast>>, AdamW, OverBoth>>();
  check_words<Lies::on_device, Training<Product<On<data, Broadcast>>, AdamW, OverBoth>>();
  check_words<Lies::on_device, Training<Product<On<data, Broadcast>, On<tensor, Broadcast>>, AdamW, OverBoth>>();
  check_words<Lies::on_device, Accumulate<2, Training<Product<On<tensor, Broadcast>>, AdamW, OverBoth>>>();
}
TEST_CASE("the same where each use leaves it pending on another axis") {
  check_words<Lies::on_device, Training<Twice, AdamW, OverData, OverTensor>>();
  check_words<Lies::on_device, Training<Twice, AdamW, OverTensor, OverBoth>>();
  check_words<Lies::on_device, Training<LayersTwice, AdamW, OverTensor, OverData>>();
  check_words<Lies::on_device, Training<LayersTwice, AdamW, OverBoth, OverData>>();
  check_words<Lies::on_device, Accumulate<2, Training<LayersTwice, AdamW, OverTensor, OverData>>>();
}
TEST_CASE("by a dimension over one axis, and flat over another what that leaves") {
  check_dimensions<Lies::on_device, Zero::states>();
  check_dimensions<Lies::on_device, Zero::gradients>();
  check_dimensions<Lies::on_device>();
  check_dimensions<Lies::on_device, Gathered::per_pass>();
  check_dimensions<Lies::on_device, Gathered::per_step>();
}

TEST_CASE("with weights that each micro-batch updates") {
  check_asynchronous<Lies::on_device, Zero::states>();
  check_asynchronous<Lies::on_device, Zero::gradients>();
  check_asynchronous<Lies::on_device>();
  check_asynchronous<Lies::on_device, Gathered::per_pass>();
  check_asynchronous<Lies::on_device, Gathered::per_step>();
}

namespace {
struct Says {
  Parameter<double, Shape<8, 8>, Stored<data, Split<1>, Gathered::per_step>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
}  // namespace

TEST_CASE("what a parameter says itself goes before what its program says; programs' words add up") {
  const auto rest = [](const Graph& graph) { return text(graph.members[0].type); };
  using Step = Training<Says, AdamW, Tensor<double, Shape<8 / replica / data, 8>>>;
  CHECK(rest(build<AllStored<Step, Stored<replica, Zero::states>>>()) == "f64[8, 8/data]");
  CHECK(rest(build<AllStored<Step, Stored<replica, Gathered::per_step>>>()) == "f64[8, 8/data] /replica");
  using Plain = Training<Product<>, AdamW, Tensor<double, Shape<8 / replica / data, 6>>>;
  CHECK(rest(build<AllStored<AllStored<Plain, Stored<data>>, Stored<replica>>>()) == "f64[6, 5] /replica /data");
}
