// Loops in every shape that a program can give them: order and memory of their plans, and that every parameter that
// counts is trained.
#include <doctest/doctest.h>

#include <parallel/parallel.hpp>

#include "models.hpp"
#include "regions.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace loops {
using Batch = Shape<4 / data, 6>;
template <class Model, class Input = Tensor<float, Batch>>
using Step = Training<Model, AdamW, Input>;

struct Linear {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
struct Network {
  Parameter<float, Shape<6, 8 / tensor>> up;
  Parameter<float, Shape<8 / tensor, 6>> down;
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(x, up)), down); }
};
struct Scaled {  // backward there is more to compute behind the reduction that the next iteration waits for
  Parameter<float, Shape<6, 8 / tensor>> up;
  Parameter<float, Shape<8 / tensor, 6>> down;
  constexpr auto operator()(Distributed auto x) const { return matmul(gelu(matmul(x, exp(exp(up)))), down); }
};
// Backward, rows are added in place to a product's gradient, which the iteration before may still be sending.
struct LooksUp {
  Parameter<float, Shape<6, 6>> w, other;
  constexpr auto operator()(Distributed auto x) const {
    return x + matmul(matmul(embedding(argmax<1>(x), w), transpose(other)), w);
  }
};

template <int depth, class Block>
struct Deep {
  Layers<depth, Block> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
};
// What a layer returns: its input; another look at its own value; what was moved; a pending sum that Layers completes;
// one value twice over.
struct Identity {
  Parameter<float, Shape<6>> unused;
  constexpr auto operator()(Distributed auto x) const { return x; }
};
struct Viewed {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return reshape<4, 6>(reshape<2, 2, 6>(matmul(x, w))); }
};
struct Transposed {
  Parameter<float, Shape<4, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return transpose(transpose(x * w)); }
};
struct Moved {
  Parameter<float, Shape<6 / tensor, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return to<On<tensor, Invariant>>(matmul(x, w)); }
};
struct Pending {
  Parameter<float, Shape<6 / tensor, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, w); }
};
struct Twice {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(x, w);
    return y + y + matmul(y, w);
  }
};
struct Added {  // both gradients are the layer's own, carried on besides
  Parameter<float, Batch> p, q;
  constexpr auto operator()(Distributed auto x) const { return x + p + q; }
};
struct Drops {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const {
    return dropout(matmul(x, w), 0.5) + constant<float, Shape<6>>(1);
  }
};

// Two loops one after the other; one loop used twice; a loop whose result counts twice; a loop that does not count; one
// layer.
struct Two {
  Layers<3, Linear> first;
  Layers<2, Network> second;
  constexpr auto operator()(Distributed auto x) const { return mean(square(second(first(x)))); }
};
struct Again {
  Layers<3, Linear> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(layers(x)))); }
};
struct Both {
  Layers<3, Network> layers;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = layers(x);
    return mean(y * gelu(y)) + mean(square(x * y));
  }
};
struct Unused {
  Layers<3, Network> layers;
  Parameter<float, Shape<6, 8 / tensor>> w;
  constexpr auto operator()(Distributed auto x) const {
    [[maybe_unused]] const auto nobody_asks = mean(matmul(layers(x), w));  // not in the graph at all
    return mean(square(matmul(x, w)));
  }
};
// A value from outside in every layer: its gradient adds up over the layers. One that a collective makes is waited for
// before the loop.
struct Mixes {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return gelu(matmul(x, w)) * y; }
};
struct Captured {
  Parameter<float, Shape<6 / tensor, 6>> v;
  Layers<3, Mixes> layers;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(layers(x, to<On<tensor, Invariant>>(matmul(x, v)))));
  }
};
// Parameters of layers stored split: gathered before the loop, reduced behind it.
struct StoredLinear {
  Parameter<float, Shape<6, 6>, Stored<data, Split<0>>> w;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
// A layer of many parameters, of which the backward pass computes four at a time: an iteration gathers 36, and reduces 36.
struct Many {
  Parameter<float, Shape<6, 6>> a, b, c, d, e, f, g, h, i;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(matmul(matmul(x, a), b), c);
    const auto z = matmul(matmul(matmul(y, d), e), f);
    return matmul(matmul(matmul(z, g), h), i);
  }
};
struct Fours {
  Layers<8, Many, Recompute<4, Repeat::collectives>> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
};
// Weights outside the loop used inside it and outside.
struct Shares {
  Parameter<float, Shape<6, 6>> w;
  Layers<2, Mixes> layers;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(layers(matmul(x, w), sum<0>(w)) + matmul(x, w)));
  }
};

// A head behind the layers, whose gradient is the first to be reduced.
template <int depth>
struct Headed {
  Layers<depth, Linear> layers;
  Parameter<float, Shape<6, 6>> head;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(layers(x), head))); }
};

/// `trained`: how many parameters the loss depends on.
template <class Program>
void check(int trained) {
  for (const Mesh& mesh : {Mesh{data = 2, tensor = 2}, Mesh{data = 1, tensor = 2}, Mesh{data = 2, tensor = 1}}) {
    Mesh used;
    const Graph graph = build<Program>();
    for (int i = 0; i < mesh.count; ++i)
      if (names(graph, mesh.axes[i].axis)) used.axes[used.count++] = mesh.axes[i];
    const OwnedPlan plan = derive<Program>(used);
    CAPTURE(text(used));
    for (const std::string& fault : regions::Order(*plan).faults) FAIL_CHECK(fault);
    for (const std::string& fault : regions::Memory(*plan).faults) FAIL_CHECK(fault);
    int updated = 0;
    for (const Member& m : plan->graph.members) updated += m.role == Role::parameter && m.updated >= 0 ? 1 : 0;
    CHECK(updated == trained);
  }
}
/// Also in micro-batches, and with the gradient of the input asked.
template <class Model>
void check_all(int trained) {
  check<Step<Model>>(trained);
  check<Step<Model, Wanted<float, Batch>>>(trained);
  check<Accumulate<3, Step<Model>>>(trained);
}
/// Of sizes that two ranks do not divide.
struct Uneven {
  Parameter<float, Shape<3>> gain;
  Parameter<float, Shape<3, 5>> up;
  Parameter<float, Shape<5>> bias;
  Parameter<float, Shape<5, 3>> down;
  constexpr auto operator()(Distributed auto x) const { return matmul(gelu(matmul(x * gain, up) + bias), down); }
};
using Thirds = Training<Deep<3, Uneven>, AdamW, Tensor<float, Shape<4 / data, 3>>>;
template <class Annotation>
void check_stored() {
  check<AllStored<Thirds, Annotation>>(4);
  check<AllStored<Accumulate<3, Thirds>, Annotation>>(4);
  check<AllStored<Step<Deep<3, Network>>, Annotation>>(2);
  check<AllStored<Accumulate<3, Step<Deep<3, Network>>>, Annotation>>(2);
  check<AllStored<Step<Deep<3, Scaled>>, Annotation>>(2);
  check<AllStored<Step<Deep<3, LooksUp>>, Annotation>>(2);
  check<AllStored<Accumulate<3, Step<Deep<3, LooksUp>>>, Annotation>>(2);
  check<AllStored<Step<Two>, Annotation>>(3);
  check<AllStored<Step<Again>, Annotation>>(1);
  check<AllStored<Accumulate<3, Step<Shares>>, Annotation>>(2);
}
}  // namespace loops
using namespace loops;

TEST_CASE("a layer that returns what it takes, or another look at a value") {
  check_all<Deep<3, Identity>>(0);
  check_all<Deep<3, Linear>>(1);
  check_all<Deep<1, Linear>>(1);
  check_all<Deep<3, Viewed>>(1);
  check_all<Deep<3, Transposed>>(1);
}
TEST_CASE("a layer that returns what a collective makes") {
  check_all<Deep<3, Network>>(2);
  check<Step<Deep<3, Scaled>>>(2);
  check<Step<Deep<3, Scaled>, Wanted<float, Batch>>>(2);
  check_all<Deep<3, Moved>>(1);
  check_all<Deep<3, Pending>>(1);
}
// A micro-batch that did not wait for it would start it again while it is under way.
TEST_CASE("what layers leave under way is waited for within the micro-batch") {
  check<Accumulate<3, Step<Deep<3, Scaled>>>>(2);
}

TEST_CASE("a layer that uses a value more than once, and one with a constant and random numbers") {
  check_all<Deep<3, Twice>>(1);
  check_all<Deep<3, Drops>>(1);
  check_all<Deep<3, Added>>(2);
  check_all<Deep<3, LooksUp>>(2);
}
TEST_CASE("several loops, and a loop used again") {
  check_all<Two>(3);
  check_all<Again>(1);
  check_all<Both>(2);
}
TEST_CASE("values from outside a loop, and parameters stored split") {
  check_all<Captured>(2);
  check_all<Shares>(2);
  check_all<Deep<3, StoredLinear>>(1);
}
TEST_CASE("everything stored on an axis, by every stage, with every life of what is gathered") {
  check_stored<Stored<data, Zero::states>>();
  check_stored<Stored<data, Zero::gradients>>();
  check_stored<Stored<data>>();
  check_stored<Stored<data, Gathered::per_pass>>();
  check_stored<Stored<data, Gathered::per_step>>();
}

TEST_CASE("however many an iteration has, it gathers ahead, and the next one waits for its reductions") {
  using Program = AllStored<Step<Fours>, Stored<data>>;
  check<Program>(9);
  check<AllStored<Accumulate<3, Step<Fours>>, Stored<data>>>(9);
  const OwnedPlan plan = derive<Program>(Mesh{data = 2});
  int gathers = 0, ahead = 0, reductions = 0, crossing = 0;
  for (const Event& e : plan->events) {
    const Node& node = plan->graph.node(e.node);
    if (node.region == 0 || !calls(node, plan->mesh)) continue;
    const bool reduces = node.transition.collective == Collective::reduce_scatter;
    reductions += reduces && e.kind == EventKind::start;
    crossing += reduces && e.kind == EventKind::wait && e.crossing;
    gathers += !reduces && e.kind == EventKind::wait;
    ahead += starts_next(e);
  }
  CHECK(gathers == 2 * 36);
  CHECK(ahead == gathers);
  CHECK(reductions == 36);
  CHECK(crossing == reductions);
}
/// How many loops lie between where a head's gradient is reduced and where that is waited for.
template <int depth>
int loops_meanwhile() {
  check<Step<Headed<depth>>>(2);
  check<Accumulate<3, Step<Headed<depth>>>>(2);
  const OwnedPlan plan = derive<Step<Headed<depth>>>(Mesh{data = 2});
  int loops = -1;
  for (const Event& e : plan->events) {
    const Node& node = plan->graph.node(e.node);
    const bool reduces = calls(node, plan->mesh) && node.phase == Phase::backward && node.region == 0;
    if (reduces && e.kind == EventKind::start) loops = 0;
    if (reduces && e.kind == EventKind::wait) return loops;
    if (loops >= 0) loops += e.kind == EventKind::end;
  }
  return -1;
}
TEST_CASE("what is under way when a loop begins stays so, unless the loop takes its place") {
  CHECK(loops_meanwhile<2>() == 1);
  CHECK(loops_meanwhile<max_started - 1>() == 1);
  CHECK(loops_meanwhile<max_started>() == 0);
}
TEST_CASE("what no output and no update needs is not in the plan") {
  check_all<Unused>(1);
  const OwnedPlan plan = derive<Step<Unused>>(Mesh{data = 2, tensor = 2});
  for (const Event& e : plan->events) {
    CHECK(e.kind != EventKind::begin);
    CHECK(plan->graph.node(e.node).region == 0);
  }
  CHECK(plan->forward.collectives(tensor) == 1);  // the loss's
  CHECK(plan->graph.regions.size() == 1);
}

TEST_CASE("what differentiation leaves in the graph and nothing needs is not in the plan") {
  using Gpt = models::Gpt<float, models::multiples_of(4)>;
  const OwnedPlan plan = derive<Training<Gpt, AdamW, Gpt::Tokens, Gpt::Tokens>>(Mesh{data = 2, tensor = 2});
  const Vector<bool> alive = needed(plan->graph, plan->mesh);
  int dead = 0;
  for (int n = 0; n < alive.size(); ++n) dead += alive[n] ? 0 : 1;
  CHECK(dead > 5);
  for (const Event& e : plan->events) CHECK(alive[e.node]);
}
