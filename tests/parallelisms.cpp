// What docs/parallelism says of costs in formulas is what the plans of the rungs of examples/ladder say.
#include <doctest/doctest.h>

#include <parallel/question/moment.hpp>
#include <parallel/schedule/check.hpp>

#include "docs/ladder.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr double batch = 32, tokens = 8, width = 16, hidden = 64, layers = 8;
// bytes of the hidden state of all examples
constexpr double state = 4 * batch * tokens * width;
constexpr double parameters = 4 * (2 * width * width + layers * (width + 2 * width * hidden));  // bytes
constexpr double all_reduced(double bytes, double n) { return 2 * (n - 1) / n * bytes; }        // what a rank sends

doctest::Approx exactly(double bytes) { return doctest::Approx(bytes).epsilon(1e-12); }
std::int64_t activations(const Plan& plan) { return plan.memory.of(Use::activations); }

/// The layers of rung 4 alone, in m micro-batches.
template <class... Words>
struct DeepModel {
  Layers<static_cast<int>(layers), data_parallel::Block, Words...> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(blocks(x) - y)); }
};
template <int m>
using Examples = Tensor<float, Shape<32 / m / data, 8, 16>>;
template <int m, class... Words>
using Deep = Accumulate<m, Training<DeepModel<Words...>, AdamW, Examples<m>, Examples<m>>>;

/// Which collectives of a plan's backward pass an iteration leaves under way for the next one.
int left_under_way(const Plan& plan) {
  int n = 0;
  for (const Event& e : plan.events)
    n += e.kind == EventKind::wait && e.crossing && plan.graph.node(e.node).phase == Phase::backward;
  return n;
}

}  // namespace

TEST_CASE("data: the parameters' bytes, all-reduced once, however large the batch; a share of the activations") {
  const OwnedPlan alone = derive<one_rank::Step>(Mesh{});
  CHECK(alone->memory.of(Use::parameters) == parameters);
  for (const int n : {2, 4, 8}) {
    const OwnedPlan plan = derive<data_parallel::Step>(Mesh{data = n}),
                    parts = derive<beside_the_ladder::Accumulated>(Mesh{data = n});
    CHECK(plan->sent() == exactly(all_reduced(parameters + 4, n)));  // and the loss
    CHECK(parts->sent() == exactly(plan->sent()));
    CHECK(plan->memory.of(Use::parameters) == parameters);
    CHECK(activations(plan) * n == activations(alone));
  }
}

TEST_CASE("a parameter server: through its link goes what all others pull and push, through theirs their own") {
  using Step = served::Step;
  constexpr double in = 4 * width * width, p = parameters, gains = 4 * layers * width;
  for (const int n : {2, 4, 8}) {
    const double others = n - 1, completed = all_reduced(4 + 8, n);  // the loss, and the norm, which the server has
    const auto check = [&](const Plan& plan, double pulled, double pushed) {
      const Traffic server = plan.link(data, 0), worker = plan.link(data, n - 1);
      CHECK(server.sent == exactly(others * pulled + completed));
      CHECK(server.received == exactly(others * pushed + completed));
      CHECK(worker.sent == exactly(pushed + completed));
      CHECK(worker.received == exactly(pulled + completed));
    };
    check(derive<Step>(Mesh{data = n}), 2 * p - in, p);
    check(derive<AllStored<data_parallel::Step, Stored<data, At<0>, Gathered::per_pass>>>(Mesh{data = n}), p, p);
    check(derive<AllStored<data_parallel::Step, Stored<data, At<0>, Zero::states>>>(Mesh{data = n}), p, p);
    if (n < 4) continue;  // which have a third server
    const OwnedPlan spread = derive<beside_the_ladder::Spread>(Mesh{data = n});
    const double matrices = 4 * layers * width * hidden;
    CHECK(spread->link(data, 1).sent == exactly(others * 2 * matrices + in + gains + matrices + in + completed));
  }
}
TEST_CASE("data, all stored: each stage of ZeRO sends and keeps what its page says") {
  constexpr double in = 4 * width * width;  // which no gradient of an input goes back through
  for (const int n : {2, 4, 8}) {
    const double part = (n - 1.0) / n;
    const auto check = [&](const Plan& plan, double gathered, double scattered, double kept) {
      CHECK(plan.sent(all_gather(data)) == exactly(part * gathered));
      CHECK(plan.sent(reduce_scatter(data)) == exactly(part * scattered));
      CHECK(plan.sent(all_reduce(data)) == exactly(all_reduced(4 + 8, n)));  // the loss, and the norm of what is split
      CHECK(plan.memory.of(Use::parameters) == kept);
      CHECK(plan.memory.of(Use::optimizer_state) == 2 * parameters / n);
    };
    const Mesh mesh{data = n};
    using Step = data_parallel::Step;
    using Parts = beside_the_ladder::Accumulated;  // four micro-batches
    constexpr double p = parameters;
    check(derive<AllStored<Step, Stored<data, Zero::states>>>(mesh), p, p, p);
    check(derive<AllStored<Step, Stored<data, Zero::gradients>>>(mesh), p, p, p);
    check(derive<AllStored<Step, Stored<data>>>(mesh), 2 * p - in, p, p / n);
    check(derive<AllStored<Step, Stored<data, Gathered::per_pass>>>(mesh), p, p, p / n);
    check(derive<AllStored<Step, Stored<data, Gathered::per_step>>>(mesh), p, p, p / n);
    check(derive<AllStored<Parts, Stored<data, Zero::states>>>(mesh), p, p, p);
    check(derive<AllStored<Parts, Stored<data, Zero::gradients>>>(mesh), p, 4 * p, p);
    check(derive<AllStored<Parts, Stored<data>>>(mesh), 4 * (2 * p - in), 4 * p, p / n);
    check(derive<AllStored<Parts, Stored<data, Gathered::per_pass>>>(mesh), 4 * p, 4 * p, p / n);
    check(derive<AllStored<Parts, Stored<data, Gathered::per_step>>>(mesh), p, 4 * p, p / n);
  }
}

TEST_CASE("stored split, the parameters of two iterations over layers are whole at a time") {
  constexpr double layer = 4 * (width + 2 * width * hidden);
  const auto whole = [](const Plan& plan) {
    std::int64_t most = 0;
    for (const Moment& m : moments(plan)) most = std::max(most, m.of(Use::parameters_in_use));
    return static_cast<double>(most);
  };
  const Mesh mesh{data = 4};
  CHECK(whole(derive<AllStored<Deep<1>, Stored<data>>>(mesh)) == 2 * layer);
  CHECK(whole(derive<AllStored<Deep<1, Recompute<>>, Stored<data>>>(mesh)) == 2 * layer);
  CHECK(whole(derive<AllStored<Deep<1, Recompute<2>>, Stored<data>>>(mesh)) == 2 * 2 * layer);
  CHECK(whole(derive<AllStored<Deep<1, Recompute<4>>, Stored<data>>>(mesh)) == 2 * 4 * layer);
}

TEST_CASE("gradients that are reduced while the layer before is computed, and those that wait for the loop's end") {
  const auto check = [](const Plan& plan, const Collective how, std::int64_t calls, int under_way) {
    CHECK(plan.backward.calls(how == Collective::all_reduce ? all_reduce(data) : reduce_scatter(data)) == calls);
    CHECK(left_under_way(plan) == under_way);
  };
  const Mesh mesh{data = 4};
  constexpr Collective whole = Collective::all_reduce, parts = Collective::reduce_scatter;
  // two matrices a layer, and the vectors of all layers at once
  check(derive<Deep<1>>(mesh), whole, 2 * 8 + 1, 2);
  check(derive<AllStored<Deep<1>, Stored<data, Zero::states>>>(mesh), parts, 2 * 8 + 1, 2);
  check(derive<AllStored<Deep<1>, Stored<data, Zero::gradients>>>(mesh), parts, 3 * 8, 3);
  check(derive<AllStored<Deep<1>, Stored<data>>>(mesh), parts, 3 * 8, 3);
  // four micro-batches
  check(derive<Deep<4>>(mesh), whole, 2 * 8 + 1, 2);
  check(derive<AllStored<Deep<4>, Stored<data, Zero::states>>>(mesh), parts, 2 * 8 + 1, 0);
  check(derive<AllStored<Deep<4>, Stored<data, Zero::gradients>>>(mesh), parts, 4 * 3 * 8, 3);
  check(derive<AllStored<Deep<4>, Stored<data>>>(mesh), parts, 4 * 3 * 8, 3);
}

TEST_CASE(
    "tensor: an all-reduce of the hidden state for each pair of matrices forward and one backward; sequence: the same bytes in halves") {
  for (const int n : {2, 4, 8}) {
    const OwnedPlan plan = derive<tensor_parallel::Step>(Mesh{tensor = n}),
                    sliced = derive<sequence_parallel::Step>(Mesh{tensor = n});
    CHECK(plan->sent() == exactly(layers * 2 * all_reduced(state, n) + all_reduced(8, n)));  // and the norm
    CHECK(plan->calls() == 2 * layers + 1);
    CHECK(sliced->sent(all_gather(tensor)) == exactly(2 * layers * (n - 1) / n * state));
    CHECK(sliced->sent(reduce_scatter(tensor)) == exactly(2 * layers * (n - 1) / n * state));
    // loss, gains, in, out, norm
    CHECK(sliced->sent(all_reduce(tensor)) ==
          exactly(all_reduced(4 + 4 * (layers * width + 2 * width * width) + 8, n)));
    CHECK(activations(sliced) < activations(plan));
    CHECK(plan->redundant(tensor) > 0.02);
    CHECK(sliced->redundant(tensor) < 0.001);
  }
}

TEST_CASE(
    "context: keys and values around a ring once forward and once back, their gradients once; parameters all-reduced") {
  constexpr double attention = 4 * layers * (width + 4 * width * width);  // bytes of its parameters
  const OwnedPlan alone = derive<context_parallel::Step>(Mesh{});
  for (const int n : {2, 4, 8}) {
    const OwnedPlan plan = derive<context_parallel::Step>(Mesh{sequence = n});
    const double around = layers * 2 * (n - 1) / n * state;  // keys are as large as the hidden state
    CHECK(plan->forward.sent(rotate(sequence)) == exactly(around));
    CHECK(plan->backward.sent(rotate(sequence)) == exactly(2 * around));
    CHECK(plan->sent(all_reduce(sequence)) == exactly(all_reduced(parameters + attention + 4, n)));
    CHECK(plan->sent() == exactly(3 * around + all_reduced(parameters + attention + 4, n)));
    CHECK(plan->memory.of(Use::parameters) == parameters + attention);
    CHECK(activations(plan) * n == activations(alone));
  }
}

TEST_CASE(
    "stages: the hidden state over each cut, once forward and once back, in however many parts; min(m, p - r) parts kept by stage r") {
  for (const int p : {2, 4, 8})
    for (int r = 0; r < p; ++r) {
      const double cuts = r == 0 || r == p - 1 ? 1 : 2;
      const double rest = all_reduced(8, p) + 4;  // the norm; the loss, which the last stage tells all
      const OwnedPlan inter = derive<inter_layer::Step>(Mesh{stage = p}.on_stage(r)),
                      pipe = derive<pipelined::Step>(Mesh{stage = p}.on_stage(r));
      CHECK(inter->sent() == exactly(cuts * state + rest));
      CHECK(pipe->sent() == exactly(cuts * state + rest));
      if (r == 0 || r == p - 1) continue;
      const OwnedPlan last_but_one = derive<pipelined::Step>(Mesh{stage = p}.on_stage(p - 2));
      CHECK(activations(pipe) * 2 == activations(last_but_one) * std::min(8, p - r));
      CHECK(activations(inter) * 2 == activations(last_but_one) * 8);
    }
}

TEST_CASE("stages wait (p - 1) / m of the time that they work, (p - 1) / (m + p - 1) of the step") {
  for (const int p : {1, 2, 4, 8})
    for (const int m : {1, 2, 4, 8, 16, 32}) {
      const Timing t = timed(*schedule_of<pipelined::Step>(), p, m);
      CHECK(t.bubble_over_ideal() == exactly((p - 1.0) / m));
      CHECK(t.bubble() == exactly((p - 1.0) / (m + p - 1)));
    }
}

TEST_CASE("hybrid: on each axis what the parallelism alone sends, of the shares that the others leave") {
  for (const int p : {1, 2, 4})
    for (const int d : {1, 2, 4})
      for (const int n : {1, 2, 4}) {
        INFO("stage=" << p << ", data=" << d << ", tensor=" << n);
        const Mesh mesh = Mesh{stage = p, data = d, tensor = n}.on_stage(0);
        const OwnedPlan plan = derive<hybrid::Step>(mesh);
        const double norm = all_reduced(8, p * n);
        if (n > 1) CHECK(plan->sent(tensor) == exactly(layers / p * 2 * all_reduced(state / d, n) + norm));
        const double held = 4 * width * width * (p > 1 ? 1 : 2) + 4 * layers / p * (width + 2 * width * hidden / n);
        CHECK(plan->memory.of(Use::parameters) == held);
        // the loss is the last stage's
        if (d > 1) CHECK(plan->sent(data) == exactly(all_reduced(held + (p > 1 ? 0 : 4), d)));
        if (p > 1) CHECK(plan->sent(stage) == exactly(state / d + 4 + norm));
        if (p > 1) CHECK(derive<beside_the_ladder::Scattered>(mesh)->sent(stage) == exactly(state / d / n + 4 + norm));
      }
}
