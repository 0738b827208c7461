// bf16 as the precision of a program: parameters, their gradients' sums and the optimizer in f32, products in bf16. A
// GPT-2 whose parameters are stored split (ZeRO), with tensor and sequence parallelism and stages, trained on meshes
// that have one of these each.
#include <doctest/doctest.h>

#include "small_gpt.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

using Step = small_gpt::Step<bfloat16>;
using small_gpt::meshes, small_gpt::channels;

/// The losses of ten steps from PyTorch's weights on PyTorch's batch.
std::vector<double> losses(const Mesh& mesh) {
  std::vector<double> result;
  small_gpt::train<Step>(mesh, {.beta2 = 0.99, .weight_decay = 0.1}, [&](auto& trainer, int rank) {
    for (int i = 0; i < 10; ++i) {
      const double loss = trainer.step(1e-2).loss;
      if (rank == 0) result.push_back(loss);
    }
  });
  return result;
}

View view(void* data, DType dtype, std::int64_t n) {
  View v{.data = data, .dtype = dtype, .rank = 1};
  v.size[0] = v.whole[0] = n;
  return v;
}
void compute(const Operation& operation, Call call) { Cpu{}.kernel(operation, call)(call); }

}  // namespace

TEST_CASE("ten steps in bf16 are PyTorch's with autocast, on every mesh") {
  const std::vector<double>&exact = fixture()["adamw/losses"].values, &rounded = fixture()["bf16/losses"].values;
  const std::vector<double> one = losses(meshes[0]);
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    const std::vector<double> all = losses(mesh);
    for (std::size_t i = 0; i < all.size(); ++i) {
      INFO("step " << i);
      CHECK(all[i] == doctest::Approx(exact[i]).epsilon(0.01));
      CHECK(all[i] == doctest::Approx(rounded[i]).epsilon(0.01));
      CHECK(all[i] == doctest::Approx(one[i]).epsilon(0.01));
    }
  }
}

TEST_CASE("what is added travels and accumulates in f32, what is only moved in bf16") {
  for (const Mesh& mesh : meshes)
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      INFO(text(mesh));
      const OwnedPlan p = derive<Step>(mesh, rank);
      p->all.each([&](const Node& node, std::int64_t) {
        const DType dtype = p->graph.value(node.operands[0]).type.dtype;
        const Collective c = node.transition.collective;
        CAPTURE(std::string(name_of(c)));
        if (node.phase == Phase::optimizer) return;  // the norm of the gradients, f64
        // the loss goes to all stages
        CHECK(dtype == (reduces(c) || c == Collective::broadcast ? DType::f32 : DType::bf16));
        CHECK(node.transition.reduction == dtype);
      });
      for (const Node& node : p->graph.nodes)
        if (node.operation == &operation::accumulate) CHECK(p->graph.value(node.result).type.dtype == DType::f32);
      for (const Member& m : p->graph.members) CHECK(m.type.dtype == (m.role == Role::input ? DType::i32 : DType::f32));
    }
  // Parameters that are stored split are cast before they are gathered: half the bytes of their gradients, for each
  // micro-batch.
  const OwnedPlan p = derive<Step>(Mesh{data = 2});
  constexpr std::int64_t elements = 2 * (4 + 8) * channels * channels;
  CHECK(p->forward.messages(all_gather(data)) == 2 * 2 * elements);
  CHECK(p->backward.messages(reduce_scatter(data)) == 2 * 4 * elements);
}

TEST_CASE("where one rank adds nothing is cast for a sum") {
  const auto casts = [](const Mesh& mesh) {
    const OwnedPlan p = derive<Step>(mesh);
    int n = 0;
    for (const Event& e : p->events) {
      const Operation* o = p->graph.node(e.node).operation;
      n += e.kind == EventKind::compute && (o == &operation::cast || o == &operation::rounded) ? 1 : 0;
    }
    return n;
  };
  // each parameter, once; and gradients of the four that are stored, which each micro-batch hands over to be reduced
  CHECK(casts(Mesh{data = 1}) == 16 + 4);
  CHECK(casts(Mesh{tensor = 2}) > 16 + 4);
}

TEST_CASE("the CPU computes bf16 in float and rounds once, also in place") {
  const auto from = [](float x) { return bfloat16(x); };
  const auto to = [](bfloat16 x) { return static_cast<float>(x); };
  // 1 + 2^-9 lies between two numbers of bf16, and is rounded down; the sum of both terms in float is not.
  bfloat16 x[] = {from(1), from(256)}, y[] = {from(0.001953125f), from(1)}, z[2];
  compute(operation::add,
          {.operands = {view(x, DType::bf16, 2), view(y, DType::bf16, 2)}, .results = {view(z, DType::bf16, 2)}});
  CHECK(to(z[0]) == 1);
  CHECK(to(z[1]) == 256);
  float sums[2];
  compute(operation::add,
          {.operands = {view(x, DType::bf16, 2), view(y, DType::bf16, 2)}, .results = {view(sums, DType::f32, 2)}});
  CHECK(sums[0] == 1.001953125f);
  CHECK(sums[1] == 257);
  // What is written into a memory leaves the rest of it.
  bfloat16 memory[] = {from(1), from(2), from(3), from(4)}, one[] = {from(7)};
  int position = 2;
  compute(
      operation::write,
      {.operands = {view(memory, DType::bf16, 4), view(one, DType::bf16, 1), {.data = &position, .dtype = DType::i32}},
       .results = {view(memory, DType::bf16, 4)},
       .ints = {0, 4}});
  for (int i = 0; i < 4; ++i) CHECK(to(memory[i]) == (i == 2 ? 7 : i + 1));
}
