// Training by gradients of older parameters, and its definition in plain loops over vectors, without the library.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/model/stale.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

#include "device_under_test.hpp"

namespace stale {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

constexpr int examples = 12, inputs = 5, width = 6, results = 3, layers = 4, steps = 6;

template <class W, class B>
struct Block {
  W w{normal(0.4)};
  B b{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const { return x + tanh(matmul(x, w) + b); }
};
template <class... At>
using BlockAt = Block<Parameter<double, Shape<width, width>, At...>, Parameter<double, Shape<width>, At...>>;
template <class In, class Blocks, class Out>
struct Net {
  In in{normal(0.4)};
  Blocks blocks;
  Out out{normal(0.4)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(matmul(x, in)), out) - y));
  }
};
template <class Blocks>
using NetOf = Net<Parameter<double, Shape<inputs, width>>, Blocks, Parameter<double, Shape<width, results>>>;
/// Parameters at several servers.
using Spread = Net<Parameter<double, Shape<inputs, width>, Stored<data, At<1>>>,
                   Layers<layers, Block<Parameter<double, Shape<width, width>, Stored<data, At<-1>>>,
                                        Parameter<double, Shape<width>, Stored<data, At<0>>>>>,
                   Parameter<double, Shape<width, results>, Stored<data, At<0>>>>;
template <class Model, class Optimizer, int micro_batches = 1>
using Step =
    Accumulate<micro_batches, Training<Model, Optimizer, Tensor<double, Shape<examples / micro_batches / data, inputs>>,
                                       Tensor<double, Shape<examples / micro_batches / data, results>>>>;

using Numbers = std::vector<double>;
inline Numbers batch(int step, int columns, double by) {
  Numbers all(static_cast<std::size_t>(examples * columns));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::sin(by * static_cast<double>(i + 1) + step);
  return all;
}

/// What the definition is written with: the network's numbers, in, w, b and out of each layer one behind the other.
struct Weights {
  Numbers in = Numbers(inputs * width), w = Numbers(layers * width * width), b = Numbers(layers * width),
          out = Numbers(width * results);
  template <class F>
  static void each(F f) {
    f(&Weights::in);
    f(&Weights::w);
    f(&Weights::b);
    f(&Weights::out);
  }
};
/// c += a b, of [n, k] and [k, m], either transposed.
inline void multiply(const double* a, bool a_transposed, const double* b, bool b_transposed, double* c, int n, int k,
                     int m) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j)
      for (int l = 0; l < k; ++l)
        c[i * m + j] += (a_transposed ? a[l * n + i] : a[i * k + l]) * (b_transposed ? b[j * k + l] : b[l * m + j]);
}
/// The loss of a batch, and its gradient.
inline double gradient(const Weights& at, const Numbers& x, const Numbers& y, Weights& g) {
  g = {};
  std::vector<Numbers> h(layers + 1, Numbers(examples * width)), t(layers, Numbers(examples * width));
  multiply(x.data(), false, at.in.data(), false, h[0].data(), examples, inputs, width);
  for (std::size_t l = 0; l < layers; ++l) {
    multiply(h[l].data(), false, at.w.data() + l * width * width, false, t[l].data(), examples, width, width);
    for (std::size_t i = 0; i < t[l].size(); ++i) {
      t[l][i] = std::tanh(t[l][i] + at.b[l * width + i % width]);
      h[l + 1][i] = h[l][i] + t[l][i];
    }
  }
  Numbers error(examples * results), back(examples * width);
  multiply(h[layers].data(), false, at.out.data(), false, error.data(), examples, width, results);
  double loss = 0;
  for (std::size_t i = 0; i < error.size(); ++i) {
    error[i] -= y[i];
    loss += error[i] * error[i] / (examples * results);
    error[i] *= 2.0 / (examples * results);
  }
  multiply(h[layers].data(), true, error.data(), false, g.out.data(), width, examples, results);
  multiply(error.data(), false, at.out.data(), true, back.data(), examples, results, width);
  for (std::size_t l = layers; l-- > 0;) {
    Numbers within(back.size());
    for (std::size_t i = 0; i < within.size(); ++i) {
      within[i] = back[i] * (1 - t[l][i] * t[l][i]);
      g.b[l * width + i % width] += within[i];
    }
    multiply(h[l].data(), true, within.data(), false, g.w.data() + l * width * width, width, examples, width);
    multiply(within.data(), false, at.w.data() + l * width * width, true, back.data(), examples, width, width);
  }
  multiply(x.data(), true, back.data(), false, g.in.data(), inputs, examples, width);
  return loss;
}

/// What a training leaves: losses, norms, parameters, and of servers what is newer than the parameters.
struct Left {
  Numbers numbers{};
  std::map<std::string, Numbers> tensors{};
};
constexpr double rate = 0.05, clip = 0.5, kept = 0.875, decay = 0.125;

/// Momentum by gradients at the parameters of so many steps before, as it is defined. `skipped`: a step whose loss is
/// no number.
inline Left simulated(Weights initial, int staleness, int skipped = -1) {
  std::vector<Weights> versions{initial};
  Weights moments{};
  Left left;
  for (int step = 0; step < steps; ++step) {
    if (step == skipped) continue;
    const std::size_t t = versions.size() - 1, s = static_cast<std::size_t>(staleness);
    Weights g, next = versions.back();
    left.numbers.push_back(
        gradient(versions[t < s ? 0 : t - s], batch(step, inputs, 0.7), batch(step, results, 0.3), g));
    double norm = 0;
    Weights::each([&](auto of) {
      for (const double n : g.*of) norm += n * n;
    });
    norm = std::sqrt(norm);
    left.numbers.push_back(norm);
    const double factor = std::min(1.0, clip / (norm + 1e-6));
    Weights::each([&](auto of) {
      for (std::size_t i = 0; i < (next.*of).size(); ++i) {
        double& m = (moments.*of)[i];
        m = kept * m + factor * (g.*of)[i] + decay * (next.*of)[i];
        (next.*of)[i] -= rate * m;
      }
    });
    versions.push_back(next);
  }
  const auto name = [&](const Weights& of, const std::string& behind) {
    left.tensors["in" + behind] = of.in;
    left.tensors["blocks.*.w" + behind] = of.w;
    left.tensors["blocks.*.b" + behind] = of.b;
    left.tensors["out" + behind] = of.out;
  };
  const std::size_t last = versions.size() - 1, s = static_cast<std::size_t>(staleness);
  for (std::size_t i = 0; i <= s; ++i)
    name(versions[last + i < s ? 0 : last + i - s], i == 0 ? "" : i == s ? ".newest" : ".newer_" + std::to_string(i));
  return left;
}

/// The same by a program, on a rank: each that has a tensor, or a part of it, writes it. `still`: so many steps at a
/// rate of 0 come behind. An average is the last that it is of.
template <class Program, Communicator World>
void train(World& world, const Mesh& mesh, Left& left, int skipped = -1, int still = 0) {
  const OwnedPlan plan = derive<Program>(mesh, world.rank());
  under_test::Parameters parameters(plan, world.rank(), 5);
  typename Program::Optimizer::Hyperparameters numbers;
  numbers.learning_rate = rate;
  numbers.clip_norm = clip;
  numbers.weight_decay = decay;
  if constexpr (requires { numbers.momentum; }) numbers.momentum = kept;
  Trainer<World, under_test::Device> trainer(plan, world, parameters, numbers, 1);
  trainer.on_no_number(NoNumber::skips);
  if (trainer.executor().reads("average_decay")) trainer.executor().scalar("average_decay", 0);
  for (int step = 0; step < steps; ++step) {
    Numbers x = batch(step, inputs, 0.7);
    if (step == skipped) x[0] = std::numeric_limits<double>::infinity();
    const StepResult r = trainer(x, batch(step, results, 0.3));
    CHECK(r.skipped == (step == skipped));
    if (world.rank() == 0 && !r.skipped) left.numbers.insert(left.numbers.end(), {r.loss, r.gradient_norm});
  }
  for (int step = 0; step < still; ++step) trainer.step(0);
  for (int rank = 0; rank < world.size(); ++rank, world.barrier())
    for (const NamedTensor& t : trainer.executor().tensors()) {
      if (rank != world.rank() || t.role == Role::input) continue;
      Numbers& to = left.tensors[t.name];
      to.resize(static_cast<std::size_t>(t.type.layout.elements()), std::numeric_limits<double>::quiet_NaN());
      trainer.executor().get(t.name, to);
    }
}

/// The parameters as the library draws them.
inline Weights initial() {
  Weights w;
  run_threads(1, [&](Threads&) {
    const OwnedPlan plan = derive<Step<NetOf<Layers<layers, BlockAt<>>>, Momentum>>(Mesh{});
    under_test::Parameters parameters(plan, 0, 5);
    parameters.get(plan, 0, "in", w.in);
    parameters.get(plan, 0, "blocks.*.w", w.w);
    parameters.get(plan, 0, "blocks.*.b", w.b);
    parameters.get(plan, 0, "out", w.out);
  });
  return w;
}
/// How far what a training left is from its definition, at most. `in_part`: it is what one process has of it.
inline double apart(const Left& left, const Left& defined, bool in_part = false) {
  double worst = 0;
  const auto compare = [&](const Numbers& a, const Numbers& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < b.size(); ++i)
      if (!in_part || !std::isnan(a[i])) worst = std::max(std::isnan(a[i]) ? 1e300 : std::abs(a[i] - b[i]), worst);
  };
  if (!in_part || !left.numbers.empty()) compare(left.numbers, defined.numbers);
  for (const auto& tensor : defined.tensors) {
    CAPTURE(tensor.first);
    REQUIRE(left.tensors.contains(tensor.first));
    compare(left.tensors.at(tensor.first), tensor.second);
  }
  return worst;
}

}  // namespace stale
