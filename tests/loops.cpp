// Loops: collectives that stay under way from one iteration to the next, values that the backward pass computes again.
#include <doctest/doctest.h>

#include <parallel/plan/walk.hpp>

#include "models.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int rows = 64, width = 16;
using Batch = Tensor<double, Shape<rows / data, width>>;

/// A block that ends in a pending sum: the reduction is what an iteration hands on.
template <bool again>
struct Pending {
  Parameter<double, Shape<width, 4 * width / tensor>> up{normal(0.3)};
  Parameter<double, Shape<4 * width / tensor, width>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const {
    const auto hidden = matmul(x, up);
    if constexpr (again)
      return matmul(recompute(gelu(recompute(hidden))), down);
    else
      return matmul(gelu(hidden), down);
  }
};
template <bool again>
struct Deep {
  Layers<5, Pending<again>> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(blocks(x) - y)); }
};
template <bool again>
using Step = Training<Deep<again>, KeepGradients, Batch, Batch>;

int crossing(const Plan& plan) {
  int n = 0;
  for (const Event& e : plan.events) n += e.crossing;
  return n;
}

}  // namespace

TEST_CASE("a reduction that an iteration hands on is waited for by the next") {
  constexpr auto& planned = plan<Step<false>, Mesh{data = 2, tensor = 2}>;
  CHECK(crossing(planned) == 4);  // forward; in the backward loop the gradient of x, and those of two matrices
  static_assert(planned.forward.collectives(tensor) == 5);
  std::int64_t started = 0, waited = 0;
  each_event(planned, [&](const Event& e) {
    started += e.kind == EventKind::start;
    waited += e.kind == EventKind::wait;
  });
  CHECK(started == planned.calls());
  CHECK(waited == started);
}
TEST_CASE("loops with reductions under way compute the same on every mesh") {
  const auto x = program::numbers<double>(rows * width, 1), y = program::numbers<double>(rows * width, 2);
  const auto feed = [&](auto& executor) {
    executor.input(0, x);
    executor.input(1, y);
  };
  const auto one = program::outputs<Step<false>>(Mesh{data = 1}, feed);
  for (const Mesh& mesh :
       {Mesh{tensor = 2}, Mesh{tensor = 4}, Mesh{data = 2, tensor = 2}, Mesh{data = 2, tensor = 4}}) {
    const auto many = program::outputs<Step<false>>(mesh, feed);
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(lockstep::difference(many[i], one[i]) < 1e-10);
  }
}
TEST_CASE("what is computed again is not kept, and the gradients are the same") {
  const auto x = program::numbers<double>(rows * width, 1), y = program::numbers<double>(rows * width, 2);
  const auto feed = [&](auto& executor) {
    executor.input(0, x);
    executor.input(1, y);
  };
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2, tensor = 2}}) {
    const auto kept = program::outputs<Step<false>>(mesh, feed), again = program::outputs<Step<true>>(mesh, feed);
    INFO(text(mesh));
    for (std::size_t i = 0; i < kept.size(); ++i) {
      INFO("output " << i);
      CHECK(lockstep::difference(again[i], kept[i]) == 0);
    }
  }
  constexpr Mesh mesh{data = 2, tensor = 2};
  constexpr auto& kept = plan<Step<false>, mesh>;
  constexpr auto& again = plan<Step<true>, mesh>;
  constexpr std::int64_t hidden = 8 * (rows / 2) * (4 * width / 2);  // bytes of one layer's hidden state on a rank
  static_assert(kept.memory.by_use[static_cast<int>(Use::activations)] -
                    again.memory.by_use[static_cast<int>(Use::activations)] ==
                2 * 5 * hidden);
  static_assert(again.peak_memory() < kept.peak_memory());
  static_assert(again.flops() > kept.flops());
  static_assert(again.calls() == kept.calls());
}
