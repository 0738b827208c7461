// What is computed again is the same to the last bit: losses of ten steps, with dropout, on every kind of mesh, by every
// word; and of the layers the backward pass keeps what the word says.
#include "ten_steps.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using namespace ten_steps;

namespace {

/// A block of a GPT, of 6 channels, 2 heads and 4 positions; what attention applies is one function.
template <class T, bool sliced>
struct Block {
  using Hidden = std::conditional_t<sliced, Shape<8 / data, 4 / tensor, 6>, Shape<8 / data, 4, 6>>;
  Parameter<T, Shape<6>> gain{ones}, shift{normal(0.1)};
  Parameter<T, Shape<6, 2 / tensor, 3>> query{normal(0.5)}, key{normal(0.5)}, value{normal(0.5)};
  Parameter<T, Shape<2 / tensor, 3, 6>> projection{normal(0.5)};
  Parameter<T, Shape<6, 8 / tensor>> up{normal(0.3)};
  Parameter<T, Shape<8 / tensor>> up_bias{normal(0.3)};
  Parameter<T, Shape<8 / tensor, 6>> down{normal(0.3)};

  static constexpr auto scores(Distributed auto q, Distributed auto k, Distributed auto v) {
    const auto p = dropout(softmax<3>(batched_matmul(transpose<0, 2, 1, 3>(q), transpose<0, 2, 3, 1>(k))), 0.2);
    return transpose<0, 2, 1, 3>(batched_matmul(p, transpose<0, 2, 1, 3>(v)));
  }
  constexpr auto attention(Distributed auto x) const {
    const auto a = to<Shape<8 / data, 4, 6>>(x);
    return matmul<2>(scores(matmul(a, query), matmul(a, key), matmul(a, value)), projection);
  }
  constexpr auto perceptron(Distributed auto x) const {
    return matmul(gelu(matmul(to<Shape<8 / data, 4, 6>>(x), up) + up_bias), down);
  }
  constexpr auto operator()(Distributed auto x) const {
    const auto y = x + dropout(to<Hidden>(attention(layer_norm(x, gain, shift))), 0.1);
    return y + dropout(to<Hidden>(perceptron(y)), 0.1);
  }
};
/// The same block, which says itself what is computed again: its attention.
template <class T, bool sliced>
struct SelectiveBlock {
  Block<T, sliced> of;
  constexpr auto operator()(Distributed auto x) const {
    using B = Block<T, sliced>;
    const auto again = recompute([this](const auto& a) { return of.attention(layer_norm(a, of.gain, of.shift)); }, x);
    const auto y = x + dropout(to<typename B::Hidden>(again), 0.1);
    return y + dropout(to<typename B::Hidden>(of.perceptron(y)), 0.1);
  }
};

template <class T, bool sliced, Dim depth, class B, class... Word>
struct Model {
  Parameter<T, Shape<5, 6>> in{normal(0.5)};
  Layers<depth, B, Word...> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    const auto hidden = to<typename Block<T, sliced>::Hidden>(matmul(x, in));
    return mean(square(to<Shape<8 / data, 4, 6>>(blocks(hidden)) - y));
  }
};
template <class T>
using X = Tensor<T, Shape<8 / data, 4, 5>>;
template <class T>
using Y = Tensor<T, Shape<8 / data, 4, 6>>;
template <class T, bool sliced, Dim depth, int micro_batches, class B, class... Word>
using Step = Accumulate<micro_batches, Training<Model<T, sliced, depth, B, Word...>, AdamW, X<T>, Y<T>>>;

std::int64_t activations(const Graph& graph, const Mesh& mesh) {
  return derive(graph, mesh, {}, {})->memory.of(Use::activations);
}
struct Variant {
  std::string name;
  Graph graph;
  bool stored = false;  ///< ranks add up gradients in another order
};
template <class T, bool sliced, Dim depth, int micro_batches>
std::vector<Variant> variants() {
  using B = Block<T, sliced>;
  std::vector<Variant> all;
  all.push_back({"all", build<Step<T, sliced, depth, micro_batches, B, Recompute<>>>()});
  all.push_back({"collectives too", build<Step<T, sliced, depth, micro_batches, B, Recompute<Repeat::collectives>>>()});
  all.push_back({"as published", build<Step<T, sliced, depth, micro_batches, B, RecomputeAsPublished>>()});
  all.push_back({"two", build<Step<T, sliced, depth, micro_batches, B, Recompute<2>>>()});
  all.push_back({"three", build<Step<T, sliced, depth, micro_batches, B, Recompute<3, Repeat::collectives>>>()});
  all.push_back(
      {"operations", build<Step<T, sliced, depth, micro_batches, B,
                                Recompute<2, &operation::softmax, &operation::dropout, &operation::gelu>>>()});
  all.push_back({"attention", build<Step<T, sliced, depth, micro_batches, SelectiveBlock<T, sliced>>>()});
  all.push_back(
      {"stored",
       build<AllStored<Step<T, sliced, depth, micro_batches, B, Recompute<2, Repeat::collectives>>, Stored<data>>>(),
       true});
  return all;
}
template <class T, bool sliced, Dim depth, int micro_batches>
void check_on(std::initializer_list<Mesh> meshes) {
  const Graph plain = build<Step<T, sliced, depth, micro_batches, Block<T, sliced>>>();
  const Graph stored = build<AllStored<Step<T, sliced, depth, micro_batches, Block<T, sliced>>, Stored<data>>>();
  const std::vector<Variant> all = variants<T, sliced, depth, micro_batches>();
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    const std::vector<double> kept = losses(plain, mesh), kept_stored = losses(stored, mesh);
    CHECK(kept.front() > 1.2 * kept.back());
    for (const Variant& v : all) {
      INFO(v.name);
      CHECK(losses(v.graph, mesh) == (v.stored ? kept_stored : kept));
      CHECK(activations(v.graph, mesh) < activations(plain, mesh));
      const OwnedPlan plan = derive(v.graph, mesh, {}, {});
      CHECK(plan->flops_again() > 0);
      // kept instead, it is the plain program again
      const OwnedPlan instead = derive(kept_instead(v.graph), mesh, {}, {});
      CHECK(instead->flops_again() == 0);
    }
  }
}
}  // namespace

TEST_CASE("computed again: the same losses to the last bit, on data and tensor parallel meshes") {
  check_on<double, false, 6, 1>({{data = 1}, {data = 4}, {tensor = 2}, {data = 4, tensor = 2}});
}
TEST_CASE("the same with sequence parallelism, in bf16, with micro-batches") {
  check_on<double, true, 6, 1>({{data = 1}, {tensor = 2}, {data = 2, tensor = 2}});
  check_on<bfloat16, true, 6, 3>({{data = 1}, {tensor = 2}, {data = 4, tensor = 2}});
}
TEST_CASE("kept instead of computed again, it is the plain program") {
  using B = Block<double, false>;
  const Graph plain = build_unfused<Step<double, false, 6, 3, B>>();
  const Graph again = build_unfused<Step<double, false, 6, 3, B, Recompute<Repeat::collectives>>>();
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}}) {
    CHECK(activations(again, mesh) < activations(plain, mesh));
    CHECK(activations(kept_instead(again), mesh) == activations(plain, mesh));
  }
}
TEST_CASE("the same on stages") {
  check_on<double, false, 12 / stage, 4>({{stage = 1}, {stage = 2}, {stage = 2, data = 2, tensor = 2}});
}

namespace {
using Whole = Block<double, false>;
template <class... Word>
using Staged = Step<double, false, 12 / stage, 4, Whole, Word...>;
const std::initializer_list<Mesh> staged = {{stage = 2}, {stage = 2, tensor = 2}};
void check_same(const Graph& plain, std::initializer_list<Graph> all) {
  for (const Mesh& mesh : staged) {
    INFO(text(mesh));
    const std::vector<double> kept = losses(plain, mesh);
    for (const Graph& graph : all) CHECK(losses(graph, mesh) == kept);
  }
}
}  // namespace

TEST_CASE("by every schedule") {
  const Graph plain = build<Staged<>>();
  const Graph all[] = {build<Staged<Recompute<>>>(), build<Staged<RecomputeAsPublished>>(),
                       build<Staged<Recompute<3, Repeat::collectives>>>(),
                       build<Step<double, false, 12 / stage, 4, SelectiveBlock<double, false>>>()};
  for (const Schedule* schedule : {&schedules::naive, &schedules::gpipe, &schedules::interleaved<2>,
                                   &schedules::zero_bubble_h1, &schedules::zero_bubble_h2}) {
    INFO(schedule->name);
    const auto by = [&](const Graph& graph) { return with_schedule(graph, *schedule); };
    check_same(by(plain), {by(all[0]), by(all[1]), by(all[2]), by(all[3])});
  }
}
TEST_CASE("with weights that each micro-batch updates") {
  check_same(build<Pipelined<schedules::pipedream, Staged<>>>(),
             {build<Pipelined<schedules::pipedream, Staged<Recompute<>>>>(),
              build<Pipelined<schedules::pipedream, Staged<Recompute<2, Repeat::collectives>>>>()});
}
TEST_CASE("with parameters on the host") {
  const Graph plain = build<AllStored<Staged<>, Stored<host>>>();
  check_same(plain, {build<AllStored<Staged<Recompute<>>, Stored<host>>>(),
                     build<AllStored<Staged<Recompute<3, Repeat::collectives>>, Stored<host>>>(), build<Staged<>>()});
}
TEST_CASE("with what is kept on the host, by every schedule") {
  const Graph plain = build<Staged<>>();
  const Graph all[] = {build<Staged<KeepOnHost>>(), build<Staged<Recompute<>, KeepOnHost>>(),
                       build<Staged<KeepOnHost, Recompute<3, Repeat::collectives>>>()};
  for (const Schedule* schedule :
       {&schedules::naive, &schedules::gpipe, &schedules::one_forward_one_backward, &schedules::interleaved<2>,
        &schedules::zero_bubble_h1, &schedules::zero_bubble_h2}) {
    INFO(schedule->name);
    const auto by = [&](const Graph& graph) { return with_schedule(graph, *schedule); };
    check_same(by(plain), {by(all[0]), by(all[1]), by(all[2])});
  }
  check_same(build<Pipelined<schedules::pipedream, Staged<>>>(),
             {build<Pipelined<schedules::pipedream, Staged<Recompute<>, KeepOnHost>>>()});
}
TEST_CASE("an evaluation takes no notice, and shares the parameters of a training that takes three layers at a time") {
  const Mesh mesh{data = 2};
  const OwnedPlan trained = derive<Step<double, false, 12, 1, Whole, Recompute<3>>>(mesh);
  const auto evaluated = [&](const OwnedPlan& plan, const OwnedPlan& parameters_of) {
    CHECK(plan->flops_again() == 0);
    std::vector<double> loss(2);
    run_threads(2, [&](Threads& world) {
      under_test::Parameters parameters(*parameters_of, world.rank(), 5);
      Executor<Threads, under_test::Device> executor(*plan, world, parameters);
      executor.input(0, program::numbers<double>(8 * 4 * 5, 1));
      executor.input(1, program::numbers<double>(8 * 4 * 6, 2));
      executor.run();
      loss[static_cast<std::size_t>(world.rank())] = executor.output(0).template as<const double>()[0];
    });
    return loss;
  };
  const OwnedPlan plain = derive<Evaluation<Model<double, false, 12, Whole>, X<double>, Y<double>>>(mesh);
  const OwnedPlan same = derive<Evaluation<Model<double, false, 12, Whole, Recompute<3>>, X<double>, Y<double>>>(mesh);
  CHECK(evaluated(same, trained) == evaluated(plain, plain));
}
