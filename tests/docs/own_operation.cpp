// A user's own operation in a user's own file: the program of docs/adding-an-operation.md, and the checks that it is
// right.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu/device.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

#include "../lockstep.hpp"

using namespace parallel;
using namespace parallel::axes;

namespace own {

namespace operation {
// x   result
// S   S
// P   completed first: the function of a sum is not the sum of the functions

/// (x, g): g (1 - tanh(x / cap)^2); the first number is the cap.
inline constexpr Operation softcap_derivative{.name = "softcap_gradient", .rate = Rate::functions};
constexpr void softcap_gradient(Gradient& g) {
  g.give(0, softcap_derivative, {g.operand(0), g.cotangent()}, {}, g.node.reals[0]);
}
constexpr std::int64_t softcap_flops(const Arguments& a) { return 10 * a.types[0].layout.elements(); }

/// The first number is the cap.
inline constexpr Operation softcap{.name = "softcap",
                                   .shape = parallel::operation::same_shape,
                                   .signatures = parallel::operation::nonlinear_table,
                                   .element_by_element = 1,
                                   .gradient = softcap_gradient,
                                   .flops = softcap_flops,
                                   .rate = Rate::functions};
}  // namespace operation

/// cap * tanh(x / cap): x where it is small, never beyond the cap.
template <Distributed X>
constexpr auto softcap(const X& x, double cap, Here here = {}) {
  return Apply<operation::softcap>{cap}(here, x);
}

template <class T>
void softcap_kernel(const Call& call) {
  const T* x = call.operands[0].as<const T>();
  T* y = call.results[0].as<T>();
  const T cap = static_cast<T>(call.reals[0]);
  for (std::int64_t i = 0; i < call.results[0].elements(); ++i) y[i] = cap * std::tanh(x[i] / cap);
}
template <class T>
void softcap_gradient_kernel(const Call& call) {
  const T *x = call.operands[0].as<const T>(), *g = call.operands[1].as<const T>();
  T* to = call.results[0].as<T>();
  const T cap = static_cast<T>(call.reals[0]);
  for (std::int64_t i = 0; i < call.results[0].elements(); ++i) {
    const T t = std::tanh(x[i] / cap);
    to[i] = g[i] * (1 - t * t);
  }
}

inline constexpr CpuKernels kernels[]{
    // operation                     float                           double
    {&operation::softcap, softcap_kernel<float>, softcap_kernel<double>},
    {&operation::softcap_derivative, softcap_gradient_kernel<float>, softcap_gradient_kernel<double>},
};

}  // namespace own

namespace model {

struct Model {
  Parameter<float, Shape<16, 64 / tensor>> up{normal(0.3)};
  Parameter<float, Shape<64 / tensor, 16>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(own::softcap(matmul(relu(matmul(x, up)), down), 2.0) - y));
  }
};
using Batch = Tensor<float, Shape<8 / data, 16>>;
using Step = Training<Model, AdamW, Batch, Batch>;

constexpr auto& step_plan = plan<Step, Mesh{data = 2, tensor = 2}>;
static_assert(step_plan.forward.elements(tensor) == 4 * 16);  // the pending sum of `down` is completed before softcap
static_assert(step_plan.backward.collectives(tensor) == 0);

}  // namespace model

namespace {

using model::Step;

std::vector<double> losses(const Mesh& mesh) {
  const OwnedPlan planned = derive<Step>(mesh);
  std::vector<float> x(8 * 16), y(8 * 16);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(2 * random_uniform(1, 0, i) - 1);
    y[i] = x[i] * x[i];
  }
  std::vector<double> result;
  run_threads(mesh.ranks(), [&](Threads& world) {
    Parameters parameters(planned, world.rank(), 1);
    Trainer<Threads, Cpu> trainer(planned, world, parameters, {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 1,
                                  Cpu{own::kernels});
    trainer.executor().input(0, x);
    trainer.executor().input(1, y);
    for (int step = 0; step < 20; ++step) {
      const double loss = trainer.step(1e-2).loss;
      if (world.rank() == 0) result.push_back(loss);
    }
  });
  return result;
}

using lockstep::Array;

/// Runs the kernel of an operation of one number on a rank's parts of its operands; the result is a part as large as
/// the first.
Array run(const Operation& operation, const std::vector<Array>& parts, double number) {
  const auto view = [](const Array& a, std::vector<double>& data) {
    View v{data.data(), DType::f64, static_cast<int>(a.size.size())};
    for (int d = 0; d < v.rank; ++d) v.size[d] = a.size[static_cast<std::size_t>(d)];
    return v;
  };
  std::vector<std::vector<double>> data;
  for (const Array& a : parts) data.push_back(a.data);
  Array result = parts[0];
  Call call;
  for (std::size_t i = 0; i < parts.size(); ++i) call.operands.push_back(view(parts[i], data[i]));
  call.results.push_back(view(result, result.data));
  call.reals[0] = number;
  Cpu{own::kernels}.kernel(operation, call)(call);
  return result;
}

}  // namespace

TEST_CASE("the table of an own operation holds exactly the sound rows, and its gradient follows them") {
  constexpr double cap = 0.7;
  const Placement placements[] = {Broadcast, Partial, Split<0>, Split<1>};
  std::uint64_t drawn = 0;
  const auto noise = [&] { return 2 * random_uniform(3, 0, drawn++) - 1; };
  for (const int n : {2, 3, 4}) {
    Array x = lockstep::zeros({2 * n, 3 * n}), g = x;
    for (std::size_t i = 0; i < x.data.size(); ++i) {
      x.data[i] = noise();
      g.data[i] = noise();
    }
    const Array y = run(own::operation::softcap, {x}, cap), dx = run(own::operation::softcap_derivative, {x, g}, cap);

    Type type{DType::f64, {}};
    for (const std::int64_t size : x.size) type.layout.dims.push_back(Dim(size));
    const Signatures table = own::operation::softcap.signatures({{type}, {Kind::activation}});
    for (const Placement p : placements)
      for (const Placement q : placements) {
        bool listed = false;
        for (const Signature& row : table) listed = listed || (row.operands[0] == p && row.results[0] == q);
        if (p.split() && q.split() && !(p == q)) {  // the parts of the result do not have this shape
          CHECK_FALSE(listed);
          continue;
        }
        const std::vector<Array> parts = lockstep::embed(x, p, n, noise),
                                 cotangents = lockstep::embed(g, conjugate(q), n, noise);
        std::vector<Array> results, gradients;
        for (std::size_t r = 0; r < parts.size(); ++r) results.push_back(run(own::operation::softcap, {parts[r]}, cap));
        const bool sound = lockstep::difference(lockstep::denote(results, q), y) < 1e-12;
        INFO("from placement " << static_cast<int>(p.kind) << " to " << static_cast<int>(q.kind) << " on " << n
                               << " ranks");
        CHECK(sound == listed);
        if (!sound) continue;
        for (std::size_t r = 0; r < parts.size(); ++r)
          gradients.push_back(run(own::operation::softcap_derivative, {parts[r], cotangents[r]}, cap));
        CHECK(lockstep::difference(lockstep::denote(gradients, conjugate(p)), dx) < 1e-12);
      }
  }
}

TEST_CASE("the gradient of an own operation is its derivative") {
  const double cap = 0.7, h = 1e-6;
  for (const double x : {-2.0, -0.1, 0.0, 0.3, 1.5}) {
    const auto at = [&](double value) { return run(own::operation::softcap, {{{1}, {value}}}, cap).data[0]; };
    const double slope = run(own::operation::softcap_derivative, {{{1}, {x}}, {{1}, {1.0}}}, cap).data[0];
    CHECK(slope == doctest::Approx((at(x + h) - at(x - h)) / (2 * h)).epsilon(1e-6));
  }
}

TEST_CASE("a model with an own operation learns the same on one rank and on four") {
  const std::vector<double> one = losses(Mesh{data = 1, tensor = 1}), four = losses(Mesh{data = 2, tensor = 2});
  REQUIRE(one.size() == 20);
  CHECK(one.back() < one.front() / 2);
  for (std::size_t step = 0; step < one.size(); ++step) CHECK(four[step] == doctest::Approx(one[step]).epsilon(1e-4));
}

TEST_CASE("a device without the kernel says so") {
  const OwnedPlan planned = derive<Step>(Mesh{data = 1, tensor = 1});
  const auto start = [&] {
    run_threads(1, [&](Threads& world) {
      Parameters parameters(planned, world.rank(), 1);
      Executor<Threads, Cpu> executor(planned, world, parameters);
    });
  };
  CHECK_THROWS_AS(start(), CannotRun);
}
