// What is stored over several axes lies on the ranks' hosts (stored_axes.hpp).
#include "stored_axes.hpp"

using namespace stored_axes;

TEST_CASE("over two axes: a parameter used on both, differently on one or the other, in one product or several") {
  check_words<Lies::on_host, Training<Gain, AdamW, OverBoth>>();
  check_words<Lies::on_host, Training<Product<>, AdamW, OverBoth>>();
  check_words<Lies::on_host, Training<Product<On<tensor, Broadcast>>, AdamW, OverBoth>>();
  check_words<Lies::on_host, Training<Product<On<data, Broadcast>>, AdamW, OverBoth>>();
  check_words<Lies::on_host, Training<Product<On<data, Broadcast>, On<tensor, Broadcast>>, AdamW, OverBoth>>();
  check_words<Lies::on_host, Accumulate<2, Training<Product<On<tensor, Broadcast>>, AdamW, OverBoth>>>();
}
TEST_CASE("the same where each use leaves it pending on another axis") {
  check_words<Lies::on_host, Training<Twice, AdamW, OverData, OverTensor>>();
  check_words<Lies::on_host, Training<Twice, AdamW, OverTensor, OverBoth>>();
  check_words<Lies::on_host, Training<LayersTwice, AdamW, OverTensor, OverData>>();
  check_words<Lies::on_host, Training<LayersTwice, AdamW, OverBoth, OverData>>();
  check_words<Lies::on_host, Accumulate<2, Training<LayersTwice, AdamW, OverTensor, OverData>>>();
}
TEST_CASE("by a dimension over one axis, and flat over another what that leaves") {
  check_dimensions<Lies::on_host, Zero::states>();
  check_dimensions<Lies::on_host, Zero::gradients>();
  check_dimensions<Lies::on_host>();
  check_dimensions<Lies::on_host, Gathered::per_pass>();
  check_dimensions<Lies::on_host, Gathered::per_step>();
}

TEST_CASE("with weights that each micro-batch updates") {
  check_asynchronous<Lies::on_host, Zero::states>();
  check_asynchronous<Lies::on_host, Zero::gradients>();
  check_asynchronous<Lies::on_host>();
  check_asynchronous<Lies::on_host, Gathered::per_pass>();
  check_asynchronous<Lies::on_host, Gathered::per_step>();
}
