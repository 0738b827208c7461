// Steps of whole pipelines, predicted: against the formulas of schedules, on machines made up so that only some things
// take time.
#include <cmath>

#include <doctest/doctest.h>

#include <parallel/cost/predict.hpp>
#include <parallel/cost/published_machines.hpp>

#include "pipeline_models.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int micro_batches = 8;

/// Eight equal layers of one product each: 1024 operations forward, twice as many backward.
struct Layer {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, w); }
};
template <Dim depth>
struct Deep {
  Layers<depth, Layer> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(layers(x)); }
};
template <Dim depth, Dim batch = 8>
using Train = Accumulate<micro_batches, Training<Deep<depth>, Sgd, Tensor<float, Shape<batch, 8>>>>;
using Staged = Train<8 / stage>;
constexpr double forward = 8 * 1024;  ///< of a micro-batch, through all layers

/// One product's operation a second; everything else is as good as free, but for what the link of the stages takes.
Machine products_only(double latency = 0, bool overlaps = true, double bandwidth = 0) {
  Machine m;
  Rates r;
  r.products[static_cast<int>(DType::f32)] = 1;
  r.memory_bandwidth = 1e30;
  m.rates.push_back(r);
  m.links.push_back({"stage", {latency, bandwidth}});
  m.overlaps = overlaps;
  return m;
}
/// The same where what is no product takes no time either.
Graph only_products(Graph graph) {
  for (Node& n : graph.nodes)
    if (n.operation->name != "matmul") n.flops = 0;
  return graph;
}
Graph staged(const Schedule& schedule) { return only_products(with_schedule(build_unfused<Staged>(), schedule)); }
/// A step without what stands behind the micro-batches' work.
double work(const Prediction& p) { return predicting::end_of(p.timing); }

}  // namespace

// In the compiler too.
static_assert(predict(build<Train<8>>(), Mesh{data = 1}, machines::a100).seconds > 0);

TEST_CASE("without stages it is what simulate says") {
  const Graph g = build<Train<8>>();
  for (const Machine* m : machines::published) {
    const Prediction p = predict(g, Mesh{}, *m);
    CHECK(p.seconds == simulate(derive(g, Mesh{}, {}, {}), *m).seconds);
    CHECK(p.bubble() == 0);
    CHECK(p.stages.size() == 1);
    CHECK(p.timing.spans.empty());
    const Graph many = build<Train<8, 8 / data>>();
    const Simulation two = simulate(derive(many, Mesh{data = 2}, {}, {}), *m);
    REQUIRE(two.exposed.size() == 1);
    CHECK(two.exposed[0] > 0);
    CHECK(predict(many, Mesh{data = 2}, *m).waiting(&data) == two.exposed[0]);
  }
  const Graph one = build<Staged>();  // stages that a mesh lacks
  CHECK(predict(one, Mesh{}, machines::a100).seconds ==
        doctest::Approx(simulate(derive(one, Mesh{}, {}, {}), machines::a100).seconds).epsilon(1e-9));
}

TEST_CASE("the bubble is the schedule's") {
  const double ideal = micro_batches * 3 * forward;
  for (const int p : {1, 2, 4, 8}) {
    const Mesh mesh{stage = p};
    const auto bubble = [&](const Schedule& s) {
      return (work(predict(staged(s), mesh, products_only())) - ideal / p) / (ideal / p);
    };
    CHECK(bubble(schedules::naive) == doctest::Approx(p - 1));
    CHECK(bubble(schedules::gpipe) == doctest::Approx((p - 1.0) / micro_batches));
    CHECK(bubble(schedules::one_forward_one_backward) == doctest::Approx((p - 1.0) / micro_batches));
    if (p < 8) CHECK(bubble(schedules::interleaved<2>) == doctest::Approx((p - 1.0) / (2 * micro_batches)));
    CHECK(bubble(schedules::zero_bubble_h1) == doctest::Approx((p - 1.0) / (3 * micro_batches)));
    const Prediction one = predict(staged(schedules::one_forward_one_backward), mesh, products_only());
    CHECK(one.seconds == doctest::Approx(work(one)));
    CHECK(one.bubble() == doctest::Approx((p - 1.0) / (micro_batches + p - 1)));
    CHECK(one.model_flops == doctest::Approx(ideal));
    CHECK(one.utilization(1) == doctest::Approx(ideal / p / one.seconds));
  }
}

TEST_CASE("an asynchronous schedule has its updates among the micro-batches") {
  const Graph g = only_products(build_unfused<Pipelined<schedules::pipedream, Staged>>());
  for (const int p : {1, 2, 4, 8}) {
    const Prediction step = predict(g, Mesh{stage = p}, products_only());
    CHECK(work(step) == doctest::Approx((micro_batches + p - 1.0) * 3 * forward / p));
    REQUIRE(step.stages[0].parts.size() == 3);
  }
}

TEST_CASE("stages that have different numbers of layers") {
  using Gpt =
      Accumulate<micro_batches,
                 Training<pipelines::Gpt<float>, AdamW, pipelines::Tokens, pipelines::Tokens, pipelines::Tokens>>;
  const Graph g = build<Balanced<Gpt>>();
  for (const int p : {3, 5, 7}) {
    const Prediction step = predict(g, Mesh{stage = p}, machines::a100);
    double flops = 0, all = 0;
    int stages = 0;
    std::int64_t most = 0;
    for (const StageTimes& s : step.stages) {
      flops += s.count * s.flops;
      stages += s.count;
    }
    for (int s = 0; s < p; ++s) {
      const OwnedPlan plan = derive(g, Mesh{stage = p}.on_stage(s), {}, {});
      all += plan->flops();
      most = plan->peak_memory() > most ? plan->peak_memory() : most;
    }
    CHECK(stages == p);
    CHECK(flops == doctest::Approx(all));
    CHECK(step.peak_memory() == most);
    CHECK(step.model_flops == doctest::Approx(predict(g, Mesh{}, machines::a100).model_flops));
  }
}

TEST_CASE("parts of a stage's work take what the plan has in them") {
  const Prediction p = predict(staged(schedules::interleaved<2>), Mesh{stage = 2}, products_only());
  REQUIRE(p.stages.size() == 2);
  for (const StageTimes& s : p.stages) {
    REQUIRE(s.parts.size() == 4);
    for (const int chunk : {0, 1}) {
      CHECK(s.parts[2 * chunk] == doctest::Approx(forward / 4));
      CHECK(s.parts[2 * chunk + 1] == doctest::Approx(2 * forward / 4));
    }
  }
  const Prediction apart = predict(staged(schedules::zero_bubble_h2), Mesh{stage = 4}, products_only());
  REQUIRE(apart.stages.size() == 3);
  for (const StageTimes& s : apart.stages)
    for (const double part : s.parts) CHECK(part == doctest::Approx(forward / 4));
  CHECK(apart.stages[1].count == 2);
}

TEST_CASE("an edge is a copy in the chunk that keeps what it has, and a message in the other") {
  const Machine machine = products_only(3);
  for (const int here : {0, 1}) {
    const OwnedPlan plan = derive(staged(schedules::interleaved<2>), Mesh{stage = 2}.on_stage(here), {}, {});
    int copies = 0, messages = 0;
    for (const Event& e : plan->events) {
      if (plan->graph.node(e.node).transition.along == 0 || e.kind == EventKind::wait) continue;
      CHECK(seconds(plan, e, machine) == doctest::Approx(e.kind == EventKind::start ? 3 : 0));
      (e.kind == EventKind::start ? messages : copies) += 1;
    }
    CHECK(messages == 6);
    CHECK(copies == 1);
  }
}

TEST_CASE("messages lengthen a step as the schedule has them") {
  for (const int p : {2, 4, 8}) {
    const Graph g = staged(schedules::one_forward_one_backward);
    const Prediction free = predict(g, Mesh{stage = p}, products_only()),
                     costly = predict(g, Mesh{stage = p}, products_only(3));
    CHECK(work(costly) - work(free) == doctest::Approx((2.0 * (p - 1) * micro_batches / p + 2 * (p - 2)) * 3));
    // and what all stages do together behind: the gradients' norm, and the loss
    CHECK(costly.waiting(&stage) > work(costly) - work(free));
    CHECK(costly.idle == doctest::Approx(free.idle));
    const Prediction wide = predict(g, Mesh{stage = p}, products_only(2, true, 8 * 8 * 4));
    CHECK(work(wide) == doctest::Approx(work(costly)));
    // Where nothing overlaps who receives copies: each of its tasks is longer, but the first stage's forward and the
    // last one's backward.
    const Prediction threads = predict(g, Mesh{stage = p}, products_only(2, false, 8 * 8 * 4));
    CHECK(threads.stages[0].parts[0] == doctest::Approx(forward / p));
    CHECK(threads.stages[1].parts[0] == doctest::Approx(forward / p + 3));
    CHECK(threads.stages[0].parts[1] == doctest::Approx(2 * forward / p + 3));
    CHECK(threads.stages[p == 2 ? 1 : 2].parts[1] == doctest::Approx(2 * forward / p));
  }
}

TEST_CASE("one stage alone does not wait for the others") {
  const Graph g = staged(schedules::one_forward_one_backward);
  const auto delay = [&](int here) {
    const OwnedPlan plan = derive(g, Mesh{stage = 4}.on_stage(here), {}, {});
    CHECK(simulate(plan, products_only()).seconds == doctest::Approx(micro_batches * 3 * forward / 4));
    const double delayed = simulate(plan, products_only(3)).seconds;
    CHECK(delayed < predict(g, Mesh{stage = 4}, products_only(3)).seconds);
    return delayed - micro_batches * 3 * forward / 4;
  };
  // What is received, and the last message; the norm's ring has 6 steps, the loss's broadcast 3. The first stage goes
  // three micro-batches ahead, each of which waits until the one before is sent; the others receive meanwhile.
  CHECK(delay(0) == doctest::Approx(3 * (micro_batches + 3 + 9)));
  CHECK(delay(1) == doctest::Approx(3 * (2 * micro_batches + 1 + 9)));
  CHECK(delay(3) == doctest::Approx(3 * (micro_batches + 1 + 9)));
}

TEST_CASE("stages that come late delay what all do together; each operation counts once") {
  using Gpt =
      Accumulate<micro_batches,
                 Training<pipelines::Gpt<float>, AdamW, pipelines::Tokens, pipelines::Tokens, pipelines::Tokens>>;
  const Graph g = build<Gpt>();
  const double model = predict(g, Mesh{}, machines::dgx_a100).model_flops;
  for (const Mesh& mesh : {Mesh{stage = 2}, Mesh{stage = 4}, Mesh{stage = 8}, Mesh{stage = 4, data = 2, tensor = 2}}) {
    const Prediction p = predict(g, mesh, machines::dgx_a100);
    CHECK(p.model_flops == doctest::Approx(model));
    CHECK(p.ranks == mesh.ranks());
    double exposed = 0;
    for (const Exposed& e : p.exposed) exposed += e.seconds;
    CHECK(exposed + p.idle < p.seconds);
    CHECK(p.idle > 0);
    std::int64_t most = 0;
    double slowest = 0;
    for (int s = 0; s < mesh.extent(&stage); ++s) {
      const OwnedPlan plan = derive(g, mesh.on_stage(s), {}, {});
      most = plan->peak_memory() > most ? plan->peak_memory() : most;
      const double alone = simulate(plan, machines::dgx_a100).seconds;
      slowest = alone > slowest ? alone : slowest;
    }
    CHECK(p.peak_memory() == most);
    for (int s = 1; s < mesh.extent(&stage) - 1; ++s)
      CHECK(p.stages[1].memory.peak() >= derive(g, mesh.on_stage(s), {}, {})->peak_memory());
    CHECK(p.seconds > slowest);
    CHECK((p.waiting(&data) > 0) == (mesh.extent(&data) > 1));
    CHECK((p.waiting(&tensor) > 0) == (mesh.extent(&tensor) > 1));
    // The norm of all gradients: who is there early waits for who is there late, so all stages end within what comes
    // after it.
    double first = 1e30, last = 0;
    for (int k = 0; k < p.stages.size(); ++k) {
      const double end = predicting::end_of(p.timing.spans[k == 0                    ? 0
                                                           : k < p.stages.size() - 1 ? 1
                                                                                     : mesh.extent(&stage) - 1]) +
                         p.stages[k].behind;
      first = end < first ? end : first;
      last = end > last ? end : last;
    }
    CHECK(last - first < 0.1 * p.seconds);
  }
}

TEST_CASE("a program is predicted as its graph is; what one stage sees of it is refused") {
  const Mesh mesh{stage = 4};
  const Prediction whole = predict<Staged>(mesh, machines::a100);
  CHECK(whole.seconds > 0);
  CHECK(whole.seconds == predict(build<Staged>(), mesh, machines::a100).seconds);
  const OwnedPlan first = derive<Staged>(mesh);
  CHECK_THROWS_AS(predict(first->graph, mesh, machines::a100), std::invalid_argument);
  CHECK_THROWS_AS(predict<Staged>(Mesh{stage = 3}, machines::a100), MeshRefused);
}
