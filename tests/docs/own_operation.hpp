// A user's own operations in a user's own file: the program of docs/adding-an-operation.md. Its checks are in
// own_operation.cpp, its kernels for a GPU in ../own_gpu_kernels.cpp.
#pragma once
#include <algorithm>
#include <cmath>

#include <parallel/device/cpu/device.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/counted.hpp>

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

namespace operation {
// x[a, d], y[b, d] -> the result[a, b]; each index has a label
constexpr Signatures distances_table(const Arguments&) {
  const int a = 1, b = 2, d = 3;
  Signatures rows{uniform_row(2, 1, Broadcast)};
  for (const int label : {a, b, d}) rows.push_back(split_row({{a, d}, {b, d}}, {{a, b}}, label));
  return rows;
}
constexpr Shaped distances_shape(const Arguments& a) {
  Type result{a.types[0].dtype, {}};
  for (int i = 0; i < 2; ++i) {
    if (a.rank(i) != 2) return {{result}, {Reason::wrong_rank, {a.rank(i), 2}}};
    result.layout.dims.push_back(Dim(a.size(i, 0)));
  }
  if (a.size(0, 1) != a.size(1, 1)) return {{result}, {Reason::shapes_differ, {a.size(0, 1), a.size(1, 1)}}};
  return {{result}, parallel::operation::one_element_type(a)};
}
/// (x, y, g): of x, and of y where the first whole number is 1.
inline constexpr Operation distances_derivative{.name = "distances_gradient"};
constexpr void distances_gradient(Gradient& g) {
  for (int i = 0; i < 2; ++i) g.give(i, distances_derivative, {g.operand(0), g.operand(1), g.cotangent()}, {i});
}
inline constexpr Operation distances{
    .name = "distances", .shape = distances_shape, .signatures = distances_table, .gradient = distances_gradient};

/// The first whole number is the dimension, the first other one the rate.
constexpr Shaped decay_shape(const Arguments& a) {
  if (a.ints[0] < 0 || a.ints[0] >= a.rank(0))
    return {parallel::operation::same_shape(a).results, {Reason::no_such_dimension, {a.ints[0], a.rank(0)}}};
  return parallel::operation::same_shape(a);
}
constexpr void decay_gradient(Gradient&);
inline constexpr Operation decay{.name = "decay",
                                 .shape = decay_shape,
                                 .signatures = parallel::operation::linear_table,
                                 .element_by_element = 1,
                                 .gradient = decay_gradient};
constexpr void decay_gradient(Gradient& g) { g.give(0, decay, {g.cotangent()}, g.node.ints, g.node.reals[0]); }
}  // namespace operation

/// The squared distance of every row of x to every row of y.
template <Distributed X, Distributed Y>
constexpr auto distances(const X& x, const Y& y, Here here = {}) {
  return Apply<operation::distances>{}(here, x, y);
}
/// x times rate to the power of the position in a dimension.
template <int dim, Distributed X>
constexpr auto decay(const X& x, double rate, Here here = {}) {
  return Apply<operation::decay, dim>{rate}(here, x);
}

template <class T>
void distances_kernel(const Call& call) {
  const View &x = call.operands[0], &y = call.operands[1];
  const std::int64_t a = x.size[0], b = y.size[0], d = x.size[1];
  for (std::int64_t i = 0; i < a; ++i)
    for (std::int64_t j = 0; j < b; ++j) {
      T sum = 0;
      for (std::int64_t k = 0; k < d; ++k) {
        const T apart = x.as<const T>()[i * d + k] - y.as<const T>()[j * d + k];
        sum += apart * apart;
      }
      call.results[0].as<T>()[i * b + j] = sum;
    }
}
template <class T>
void distances_gradient_kernel(const Call& call) {
  const View &x = call.operands[0], &y = call.operands[1], &g = call.operands[2];
  const std::int64_t a = x.size[0], b = y.size[0], d = x.size[1];
  const bool of_y = call.ints[0] == 1;
  T* to = call.results[0].as<T>();
  std::fill_n(to, call.results[0].elements(), T{0});
  for (std::int64_t i = 0; i < a; ++i)
    for (std::int64_t j = 0; j < b; ++j)
      for (std::int64_t k = 0; k < d; ++k) {
        const T twice = 2 * g.as<const T>()[i * b + j] * (x.as<const T>()[i * d + k] - y.as<const T>()[j * d + k]);
        to[of_y ? j * d + k : i * d + k] += of_y ? -twice : twice;
      }
}
template <class T>
void decay_kernel(const Call& call) {
  const View &x = call.operands[0], &y = call.results[0];
  const int dim = static_cast<int>(call.ints[0]);
  const std::int64_t inner = x.extent(dim + 1, x.rank);
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const std::int64_t position = x.at(dim, i / inner % x.size[dim]);
    y.as<T>()[i] = x.as<const T>()[i] * static_cast<T>(std::pow(call.reals[0], position));
  }
}

inline constexpr CpuKernels kernels[]{
    // operation                     float                           double
    {&operation::softcap, softcap_kernel<float>, softcap_kernel<double>},
    {&operation::softcap_derivative, softcap_gradient_kernel<float>, softcap_gradient_kernel<double>},
    {&operation::distances, distances_kernel<float>, distances_kernel<double>},
    {&operation::distances_derivative, distances_gradient_kernel<float>, distances_gradient_kernel<double>},
    {&operation::decay, decay_kernel<float>, decay_kernel<double>},
};
/// The same made for numbers that count what is computed with them.
inline constexpr CpuKernels counting[]{
    {&operation::softcap, nullptr, softcap_kernel<Counted>},
};

// Composed of others: no table, no gradient, no kernel.
/// x where it is larger than 0, else a slope of it.
template <Distributed X>
constexpr auto leaky_relu(const X& x, double slope, Here here = {}) {
  return relu(x, here) - scale(relu(scale(x, -1, here), here), slope, here);
}

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

/// The other operations: of a hidden layer the distances to some centres, the later ones less.
template <class T>
struct Centres {
  Parameter<T, Shape<16, 64 / tensor>> up{normal(0.3)};
  Parameter<T, Shape<4, 64 / tensor>> centres{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const {
    return mean(own::decay<1>(own::distances(own::leaky_relu(matmul(x, up), 0.1), centres), 0.9));
  }
};
constexpr auto& centres_plan = plan<Training<Centres<float>, AdamW, Batch>, Mesh{data = 2, tensor = 2}>;
static_assert(centres_plan.forward.elements(tensor) == 1);  // distances stay pending, only the loss is completed

}  // namespace model
