// Scan: a cell over time computes what its steps written one behind the other compute, forward and back, on every mesh.
#include <doctest/doctest.h>

#include <parallel/parallel.hpp>
#include <parallel/question/assertion.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using lockstep::Array;

namespace {

constexpr int batch = 8, features = 3, width = 4;

/// Cho et al. (2014), as PyTorch has it: the reset gate is applied behind the product.
template <class T>
struct Gru {
  Parameter<T, Shape<features, width / tensor>> reset_x{normal(0.5)}, update_x{normal(0.5)}, new_x{normal(0.5)};
  Parameter<T, Shape<width, width / tensor>> reset_h{normal(0.5)}, update_h{normal(0.5)}, new_h{normal(0.5)};
  Parameter<T, Shape<width / tensor>> reset_b{zeros}, update_b{zeros}, new_b{zeros}, inner_b{zeros};
  constexpr auto operator()(Distributed auto h, Distributed auto x) const {
    const auto whole = to<On<tensor, Broadcast>>(h);
    const auto reset = sigmoid(matmul(x, reset_x) + matmul(whole, reset_h) + reset_b);
    const auto update = sigmoid(matmul(x, update_x) + matmul(whole, update_h) + update_b);
    const auto fresh = tanh(matmul(x, new_x) + new_b + reset * (matmul(whole, new_h) + inner_b));
    return fresh + update * (h - fresh);
  }
};

template <int steps, int from, class Cell>
constexpr auto unrolled(const Cell& cell, Distributed auto h, Distributed auto x) {
  if constexpr (from == steps)
    return h;
  else
    return unrolled<steps, from + 1>(cell, cell(h, take<0, from>(x)), x);
}

template <class T>
using State = Tensor<T, Shape<batch / data, width / tensor>>;

/// The sequence passes a matrix before, the states one behind: both have gradients.
template <class T, int steps, class Recurrent>
struct Around {
  Parameter<T, Shape<features, features>> before{normal(0.5)};
  Recurrent recurrent;
  constexpr auto operator()(Distributed auto initial, Distributed auto x, Distributed auto y) const {
    return mean(square(recurrent(initial, tanh(matmul(x, before))) - y));
  }
};
template <class T, int steps, class... Word>
struct Last {
  Scan<steps, Gru<T>, Word...> scan;
  constexpr auto operator()(Distributed auto initial, Distributed auto x) const { return scan(initial, x).last; }
};
template <class T, int steps>
struct Unrolled {
  Gru<T> cell;
  constexpr auto operator()(Distributed auto initial, Distributed auto x) const {
    return unrolled<steps, 0>(cell, initial, x);
  }
};
template <class T, int steps, class Recurrent, class Optimizer = KeepGradients>
using Trained = Training<Around<T, steps, Recurrent>, Optimizer, Wanted<T, Shape<batch / data, width / tensor>>,
                         Wanted<T, Shape<steps, batch / data, features>>, State<T>>;

template <class T, int steps>
std::vector<Array> trained(const OwnedPlan& plan, int micro_batches = 1) {
  const auto h = program::numbers<T>(micro_batches * batch * width, 1),
             x = program::numbers<T>(micro_batches * steps * batch * features, 2),
             y = program::numbers<T>(micro_batches * batch * width, 3);
  return program::outputs(*plan, [&](auto& executor, auto& parameters) {
    program::randomize<T>(*plan, executor.rank(), parameters);
    executor.input(0, h);
    executor.input(1, x);
    executor.input(2, y);
  });
}
void check_same(const std::vector<Array>& some, const std::vector<Array>& others, double bound) {
  REQUIRE(some.size() == others.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    INFO("output " << i);
    CHECK(lockstep::difference(some[i], others[i]) < bound);
  }
}

}  // namespace

TEST_CASE("a scan's loss and gradients are those of its steps one behind the other") {
  const auto scanned = trained<double, 4>(derive<Trained<double, 4, Last<double, 4>>>(Mesh{data = 1}));
  const auto written = trained<double, 4>(derive<Trained<double, 4, Unrolled<double, 4>>>(Mesh{data = 1}));
  CHECK(scanned[1].data[0] > 1e-3);
  check_same(scanned, written, 1e-12);
}
