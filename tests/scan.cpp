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

/// Keeps a decaying sum of what it is given, the same to all of the batch, and gives how far it has moved.
template <class T>
struct Decay {
  Parameter<T, Shape<width / tensor>> rate{normal(0.5)};
  constexpr auto operator()(Distributed auto h, Distributed auto x) const {
    const auto next = h * rate + x;
    return std::pair(next, square(next - h));
  }
};

/// The steps of a cell written one behind the other, and what each of them gave put together.
template <int steps, class Cell>
struct Written {
  Cell cell;
  template <int from = 0>
  constexpr auto operator()(Distributed auto h, Distributed auto x) const {
    const auto returned = cell(h, take<0, from>(x));
    if constexpr (Distributed<decltype(returned)>)
      return next<from>(returned, returned, x);
    else
      return next<from>(returned.first, returned.second, x);
  }
  template <int from>
  constexpr auto next(Distributed auto h, Distributed auto given, Distributed auto x) const {
    const auto one = reshape<1, batch, width>(given);
    if constexpr (from + 1 == steps) {
      return Scanned<decltype(h), decltype(one)>{h, one};
    } else {
      const auto rest = operator()<from + 1>(h, x);
      const auto all = concatenate<0>(one, rest.each);
      return Scanned<decltype(rest.last), decltype(all)>{rest.last, all};
    }
  }
};

template <class T>
using Given = Tensor<T, Shape<batch / data, width / tensor>>;

/// A sequence that is an input or comes out of a matrix, one that another scan gave, one that is a parameter; the last
/// state is read, and what all steps gave.
template <class T, int steps, template <int, class> class Recurrent, bool from_matrix = true>
struct Model {
  Parameter<T, Shape<features, features>> before{normal(0.5)};
  Recurrent<steps, Gru<T>> gru;
  Recurrent<steps, Decay<T>> decay;
  Parameter<T, Shape<steps, width / tensor>> bias{normal(0.5)};
  constexpr auto operator()(Distributed auto initial, Distributed auto x, Distributed auto y) const {
    const auto h = gru(initial, entering(x));
    const auto first = decay(h.last, h.each), second = decay(first.last, bias);
    return mean(square(second.last - y)) + mean(first.each) + mean(second.each);
  }
  constexpr auto entering(Distributed auto x) const {
    if constexpr (from_matrix)
      return tanh(matmul(x, before));
    else
      return x;
  }
};
template <class T, int steps, class M, class Optimizer = KeepGradients>
using Trained = Training<M, Optimizer, Wanted<T, Shape<batch / data, width / tensor>>,
                         Wanted<T, Shape<steps, batch / data, features>>, Given<T>>;
template <int steps, class Cell>
using Plain = Scan<steps, Cell>;
template <int steps, class Cell>
using Again = Scan<steps, Cell, Recompute<>>;
template <int steps, class Cell>
using InPairs = Scan<steps, Cell, Recompute<2, Repeat::collectives>>;
template <int steps, class Cell>
using OnTheHost = Scan<steps, Cell, KeepOnHost>;

template <class Program, int steps>
std::vector<Array> trained(const Mesh& mesh, int micro_batches = 1) {
  using T = double;
  const OwnedPlan plan = derive<Program>(mesh);
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
void check_same(const std::vector<Array>& some, const std::vector<Array>& others, double bound = 1e-12) {
  REQUIRE(some.size() == others.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    INFO("output " << i);
    REQUIRE(some[i].size == others[i].size);
    CHECK(lockstep::difference(some[i], others[i]) < bound);
  }
}
const Mesh meshes[] = {Mesh{data = 2}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}, Mesh{data = 4}};

}  // namespace

using Looped = Trained<double, 4, Model<double, 4, Plain>>;
using OneByOne = Trained<double, 4, Model<double, 4, Written>>;

TEST_CASE("a scan's loss and gradients are those of its steps one behind the other") {
  const auto scanned = trained<Looped, 4>(Mesh{data = 1});
  CHECK(scanned.size() == 2 + 13 + 2);
  for (const Array& a : scanned) CHECK(lockstep::difference(a, lockstep::zeros(a.size)) > 1e-3);
  check_same(scanned, trained<OneByOne, 4>(Mesh{data = 1}));
}
TEST_CASE("every mesh scans alike, whatever is kept, and where") {
  const auto one = trained<Looped, 4>(Mesh{data = 1});
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    check_same(trained<Looped, 4>(mesh), one);
  }
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2, tensor = 2}}) {
    INFO(text(mesh));
    check_same(trained<Trained<double, 4, Model<double, 4, Again>>, 4>(mesh), one);
    check_same(trained<Trained<double, 4, Model<double, 4, InPairs>>, 4>(mesh), one);
    check_same(trained<Trained<double, 4, Model<double, 4, OnTheHost>>, 4>(mesh), one);
  }
}
TEST_CASE("micro-batches scan their slices of an input") {
  using Input = Trained<double, 4, Model<double, 4, Plain, false>>;
  using InputWritten = Trained<double, 4, Model<double, 4, Written, false>>;
  const auto written = trained<Accumulate<3, InputWritten>, 4>(Mesh{data = 1}, 3);
  check_same(trained<Accumulate<3, Input>, 4>(Mesh{data = 1}, 3), written);
  check_same(trained<Accumulate<3, Input>, 4>(Mesh{data = 2, tensor = 2}, 3), written);
  check_same(trained<Accumulate<3, Looped>, 4>(Mesh{data = 2, tensor = 2}, 3),
             trained<Accumulate<3, OneByOne>, 4>(Mesh{data = 1}, 3));
}
TEST_CASE("stored split, by every stage of ZeRO, a scan trains alike") {
  const auto one = trained<Looped, 4>(Mesh{data = 1});
  check_same(trained<AllStored<Looped, Stored<data>>, 4>(Mesh{data = 2}), one);
  check_same(trained<AllStored<Looped, Stored<data>>, 4>(Mesh{data = 2, tensor = 2}), one);
  check_same(trained<AllStored<Looped, Stored<data, Zero::states>>, 4>(Mesh{data = 2}), one);
  check_same(trained<AllStored<Looped, Stored<data, Gathered::per_step>>, 4>(Mesh{data = 2, tensor = 2}), one);
  check_same(trained<AllStored<Looped, Stored<host>>, 4>(Mesh{data = 2}), one);
  const auto three = trained<Accumulate<3, Looped>, 4>(Mesh{data = 1}, 3);
  check_same(trained<AllStored<Accumulate<3, Looped>, Stored<data>>, 4>(Mesh{data = 2, tensor = 2}, 3), three);
}
