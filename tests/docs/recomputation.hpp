// The programs of docs/memory.md on recomputation: one transformer, of which the backward pass finds more or less. What
// the document says of each is printed.
#pragma once
#include <cstdio>
#include <string>

#include <parallel/model/transformer.hpp>
#include <parallel/parallel.hpp>

#include "blocks.hpp"

namespace recomputation {

using namespace parallel;
using namespace parallel::axes;
inline constexpr std::int64_t width = 512, heads = 8, context = 256;

struct Block {
  models::LayerNorm<width, float> norm1, norm2;
  Parameter<float, Shape<width, 3, heads / tensor, width / heads>> qkv;
  Parameter<float, Shape<heads / tensor, width / heads, width>> projection;
  Parameter<float, Shape<width, 4 * width / tensor>> up;
  Parameter<float, Shape<4 * width / tensor, width>> down;

  constexpr auto attention(Distributed auto x) const {
    const auto all = matmul(norm1(x), qkv);
    return matmul<2>(models::self_attention<context>(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all), 0.1),
                     projection);
  }
  constexpr auto perceptron(Distributed auto x) const { return matmul(gelu(matmul(norm2(x), up)), down); }
  constexpr auto operator()(Distributed auto x) const {
    const auto y = x + attention(x);
    return y + perceptron(y);
  }
};
/// One that says itself which of its parts is computed again.
struct Selective {
  Block of;
  constexpr auto operator()(Distributed auto x) const {
    const auto attention = [this](const auto& a) { return of.attention(a); };
    const auto y = x + recompute(attention, x);
    return y + of.perceptron(y);
  }
};

template <class... Word>
using EachLayer = Layers<16, Block, Word...>;
using Whole = Layers<16, Block, Recompute<>>;
using Fours = Layers<16, Block, Recompute<4, Repeat::collectives>>;
using Cheap = Layers<16, Block, Recompute<&operation::gelu, &operation::layer_norm>>;

template <class Blocks>
struct Model {
  Blocks blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
/// In bf16, for one rank of `tensor`.
struct Staged {
  struct Perceptron {
    Parameter<bfloat16, Shape<width, 4 * width>> up;
    Parameter<bfloat16, Shape<4 * width, width>> down;
    constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(x, up)), down); }
  };
  Layers<16 / stage, Perceptron> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
template <class Blocks>
OwnedPlan plan_of() {
  using Input = Tensor<float, Shape<8 / data, context, width>>;
  return derive<Training<Model<Blocks>, AdamW, Input>>(Mesh{data = 2, tensor = 2});
}
template <class Blocks>
void print(const char* words) {
  const OwnedPlan plan = plan_of<Blocks>(), kept = plan_of<EachLayer<>>();
  std::printf("| %s | %s | %s | %+.1f %% | %+.1f %% |\n", words,
              printing::bytes(static_cast<double>(plan->memory.of(Use::activations))).c_str(),
              printing::bytes(static_cast<double>(plan->peak_memory())).c_str(),
              100 * (plan->flops() / kept->flops() - 1), 100 * (plan->all.sent(tensor) / kept->all.sent(tensor) - 1));
}
/// The same layers on stages, with eight micro-batches: how long what is gathered lives.
template <class S>
OwnedPlan staged() {
  using Input = Tensor<bfloat16, Shape<4 / data, context, width>>;
  return derive<AllStored<Accumulate<8, Training<Staged, AdamW, Input>>, S>>(Mesh{data = 4, stage = 2});
}
template <class S>
void print_life(const char* word, const char* elsewhere) {
  const OwnedPlan plan = staged<S>();
  const auto bytes = [&](Use use) { return printing::bytes(static_cast<double>(plan->memory.of(use))); };
  std::printf("| `%s` | %s | %s | %s | %s | %s | %s | %s |\n", word, elsewhere, bytes(Use::parameters).c_str(),
              bytes(Use::parameters_in_use).c_str(), bytes(Use::gradients).c_str(), bytes(Use::buffers).c_str(),
              printing::bytes(static_cast<double>(plan->peak_memory())).c_str(),
              printing::bytes(plan->all.sent(data)).c_str());
}
inline void print_lives() {
  blocks::begin("lives");
  std::puts(
      "| on each of four ranks of a stage | elsewhere | parameters | in use | gradients | buffers | peak memory | sent "
      "on `data` |\n"
      "|---|---|---|---|---|---|---|---|");
  print_life<Stored<data, Zero::states>>("Stored<data, Zero::states>",
                                         "Megatron-LM's distributed optimizer; DeepSpeed stage 1");
  print_life<Stored<data, Zero::gradients>>("Stored<data, Zero::gradients>", "DeepSpeed stage 2");
  print_life<Stored<data, Gathered::per_step>>(
      "Stored<data, Gathered::per_step>",
      "FSDP2, `reshard_after_forward=False`, `set_reshard_after_backward(False)` but at the last micro-batch");
  print_life<Stored<data, Gathered::per_pass>>("Stored<data, Gathered::per_pass>",
                                               "FSDP2, `reshard_after_forward=False`");
  print_life<Stored<data>>("Stored<data>", "FSDP2, `reshard_after_forward=True`; DeepSpeed stage 3");
}
inline void print() {
  print_lives();
  blocks::begin("recomputation");
  std::puts(
      "| `Layers<16, Block, ...>` | activations | peak memory | operations | sent on `tensor` |\n|---|---|---|---|---|");
  print<EachLayer<>>("no word");
  print<Cheap>("`Recompute<&operation::gelu, &operation::layer_norm>`");
  print<Whole>("`Recompute<>`");
  print<EachLayer<Recompute<Repeat::collectives>>>("`Recompute<Repeat::collectives>`");
  print<EachLayer<RecomputeAsPublished>>("`RecomputeAsPublished`");
  print<EachLayer<Recompute<2, Repeat::collectives>>>("`Recompute<2, Repeat::collectives>`");
  print<Layers<16, Selective>>("none; `recompute(attention, x)` in the block");
  print<Fours>("`Recompute<4, Repeat::collectives>`");
}

}  // namespace recomputation
