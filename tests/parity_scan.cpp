// A GRU over sixteen steps against PyTorch's: all states, and the gradients of parameters, of the sequence and of the
// first state.
#include "parity.hpp"

namespace {

using namespace parity;

constexpr int steps = 16, features = 6, width = 8;

struct Gru {
  Parameter<float, Shape<features, width / tensor>> reset_x, update_x, new_x;
  Parameter<float, Shape<width, width / tensor>> reset_h, update_h, new_h;
  Parameter<float, Shape<width / tensor>> reset_b, update_b, new_b, inner_b;
  constexpr auto operator()(Distributed auto h, Distributed auto x) const {
    const auto whole = to<On<tensor, Broadcast>>(h);
    const auto reset = sigmoid(matmul(x, reset_x) + matmul(whole, reset_h) + reset_b);
    const auto update = sigmoid(matmul(x, update_x) + matmul(whole, update_h) + update_b);
    const auto fresh = tanh(matmul(x, new_x) + new_b + reset * (matmul(whole, new_h) + inner_b));
    return fresh + update * (h - fresh);
  }
};
struct States {
  Scan<steps, Gru> scan;
  constexpr auto operator()(Distributed auto initial, Distributed auto x) const { return scan(initial, x).each; }
};
using Step =
    Training<Weighed<States>, KeepGradients, Wanted<float, Shape<steps, batch / data, width / tensor>>,
             Wanted<float, Shape<batch / data, width / tensor>>, Wanted<float, Shape<steps, batch / data, features>>>;

}  // namespace

TEST_CASE("a GRU's states and gradients are PyTorch's") { check_layer<Step>("gru", {"initial", "x"}); }
