// Scan: a cell over time computes what its steps written one behind the other compute, forward and back, on every mesh.
#include "docs/scan.hpp"

#include <doctest/doctest.h>

#include <parallel/question/assertion.hpp>

#include "program.hpp"
#include "scan_models.hpp"

using namespace scans;
using lockstep::Array;

namespace {

/// What is added to one element of the sequence, or of the GRU's matrix from state to state.
struct Bump {
  double sequence = 0, parameter = 0;
};
constexpr std::size_t bumped = 5;

template <class Program, int steps>
std::vector<Array> trained(const Mesh& mesh, int micro_batches = 1, Bump bump = {}) {
  using T = double;
  const OwnedPlan plan = derive<Program>(mesh);
  const auto h = program::numbers<T>(micro_batches * batch * width, 1),
             y = program::numbers<T>(micro_batches * batch * width, 3);
  auto x = program::numbers<T>(micro_batches * steps * batch * features, 2);
  x[bumped] += bump.sequence;
  return program::outputs(*plan, [&](auto& executor, auto& parameters) {
    program::randomize<T>(*plan, executor.rank(), parameters);
    if (bump.parameter != 0) {
      auto w = program::numbers<T>(width * width, 106);  // as randomize gives it to member 6
      w[bumped] += bump.parameter;
      parameters.set(*plan, executor.rank(), "gru.cell.new_h", w);
    }
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
  CHECK(scanned.size() == 2 + 15 + 2);
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
TEST_CASE("a scan's gradients are finite differences") {
  const auto at = [](Bump bump) { return trained<Looped, 4>(Mesh{data = 1}, 1, bump)[0].data[0]; };
  const auto gradients = trained<Looped, 4>(Mesh{data = 1});
  constexpr double e = 1e-5;
  CHECK((at({.sequence = e}) - at({.sequence = -e})) / (2 * e) ==
        doctest::Approx(gradients.back().data[bumped]).epsilon(1e-7));
  CHECK((at({.parameter = e}) - at({.parameter = -e})) / (2 * e) ==
        doctest::Approx(gradients[2 + 6].data[bumped]).epsilon(1e-7));
}

namespace {

constexpr int long_sequence = 512;

struct Elman {
  Parameter<double, Shape<width, width / tensor>> state{normal(0.5)};
  constexpr auto operator()(Distributed auto h, Distributed auto x) const {
    return tanh(matmul(to<On<tensor, Broadcast>>(h), state) + x);
  }
};
struct LongModel {
  Scan<long_sequence, Elman> scan;
  constexpr auto operator()(Distributed auto initial, Distributed auto x, Distributed auto y) const {
    const auto h = scan(initial, x);
    return mean(square(h.last - y)) + mean(square(h.each));
  }
};
using Long = Training<LongModel, KeepGradients, Wanted<double, Shape<batch / data, width / tensor>>,
                      Wanted<double, Shape<long_sequence, batch / data, width / tensor>>, Known<double>>;

/// The loss, the norm of the matrix's gradient, and the gradients of the matrix, the first state and the sequence.
std::vector<Array> plain_loop(const std::vector<double>& state, const std::vector<double>& initial,
                              const std::vector<double>& x, const std::vector<double>& y) {
  constexpr std::size_t one = batch * width, count = long_sequence * one, w = width;
  std::vector<double> h = initial;  // behind 0, 1, .. steps
  for (std::size_t i = 0; i < count; ++i) {
    double sum = x[i];
    for (std::size_t k = 0; k < w; ++k) sum += h[i / w * w + k] * state[k * w + i % w];
    h.push_back(std::tanh(sum));
  }
  double loss = 0;
  std::vector<double> of_h(one + count);
  for (std::size_t i = 0; i < count; ++i) {
    loss += h[one + i] * h[one + i] / static_cast<double>(count);
    of_h[one + i] = 2 * h[one + i] / static_cast<double>(count);
  }
  for (std::size_t i = 0; i < one; ++i) {
    const double error = h[count + i] - y[i];
    loss += error * error / one;
    of_h[count + i] += 2 * error / one;
  }
  Array of_state = lockstep::zeros({width, width}), of_x = lockstep::zeros({long_sequence, batch, width}),
        of_initial = lockstep::zeros({batch, width});
  for (std::size_t i = count; i-- > 0;) {
    const double gradient = of_x.data[i] = of_h[one + i] * (1 - h[one + i] * h[one + i]);
    for (std::size_t k = 0; k < w; ++k) {
      of_h[i / w * w + k] += gradient * state[k * w + i % w];
      of_state.data[k * w + i % w] += gradient * h[i / w * w + k];
    }
  }
  of_initial.data.assign(of_h.begin(), of_h.begin() + one);
  Array of_all = lockstep::zeros({}), norm = of_all;
  of_all.data[0] = loss;
  for (const double g : of_state.data) norm.data[0] += g * g;
  norm.data[0] = std::sqrt(norm.data[0]);
  return {of_all, norm, of_state, of_initial, of_x};
}

}  // namespace

TEST_CASE("512 steps compute what a plain loop does, forward and back, on every mesh") {
  const auto initial = program::numbers<double>(batch * width, 1),
             x = program::numbers<double>(long_sequence * batch * width, 2),
             y = program::numbers<double>(batch * width, 3), state = program::numbers<double>(width * width, 4);
  const auto expected = plain_loop(state, initial, x, y);
  for (const Array& a : expected) CHECK(lockstep::difference(a, lockstep::zeros(a.size)) > 1e-4);
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2, tensor = 2}, Mesh{data = 4}}) {
    INFO(text(mesh));
    const OwnedPlan plan = derive<Long>(mesh);
    check_same(program::outputs(*plan,
                                [&](auto& executor, auto& parameters) {
                                  parameters.set(*plan, executor.rank(), "scan.cell.state", state);
                                  executor.input(0, initial);
                                  executor.input(1, x);
                                  executor.input(2, y);
                                }),
               expected);
  }
}

namespace {

/// A loss of the last state alone.
template <int steps, class... Word>
struct Recurrent {
  Scan<steps, Gru<float>, Word...> gru;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(gru(constant<float, Shape<batch / data, width / tensor>>(0), x).last - y));
  }
};
template <int steps, class... Word>
constexpr auto& planned =
    plan<Training<Recurrent<steps, Word...>, AdamW, Tensor<float, Shape<steps, batch / data, features>>, Known<float>>,
         Mesh{data = 2, tensor = 2}>;
template <int steps, class... Word>
constexpr std::int64_t activations = planned<steps, Word...>.memory.of(internals::Use::activations);
template <int steps>
constexpr std::int64_t temporaries = planned<steps>.memory.of(internals::Use::temporaries);

// parameters' gradients are reduced once, states within the ranks of `tensor` are gathered step by step
static_assert(planned<512>.collectives(data) == planned<4>.collectives(data));
static_assert(planned<512>.backward.collectives(tensor) == 512 && planned<512>.forward.collectives(tensor) == 512 + 1);
// what is kept grows by the step, what is not kept does not
static_assert(activations<512> - activations<4> == 508 * (activations<5> - activations<4>));
static_assert(temporaries<512> == temporaries<4>);
static_assert(activations<512, Recompute<Repeat::collectives>> - activations<4, Recompute<Repeat::collectives>> ==
              508 * 64);  // the states alone
static_assert(activations<512, KeepOnHost> < activations<512> / 4);

}  // namespace
