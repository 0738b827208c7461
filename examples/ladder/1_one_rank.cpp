// Rung 1 of the ladder: one rank. Six lines say what the other rungs change, one or two at a time; the model is the
// same in all.
//
// A residual network, whose eight blocks are those of a transformer without attention; a step is 32 examples of 8
// tokens. Every rung trains it on the same numbers and prints the same losses. What changes is who holds what, who
// sends what, and who waits: the lines above the losses. docs/parallelism explains each rung on a page.
//
//   meson compile -C build/demo examples/ladder/1_one_rank && build/demo/examples/ladder/1_one_rank [--record FILE]
#include "run.hpp"

using namespace parallel;
using namespace parallel::axes;

constexpr int micro_batches = 1;
constexpr Dim examples = 32 / micro_batches;
constexpr Dim tokens = 8;
constexpr Dim hidden = 64;
constexpr Dim layers = 8;
constexpr Mesh mesh{};
constexpr int width = 16;

struct Block {
  Parameter<float, Shape<width>> gain{ones};
  Parameter<float, Shape<width, hidden>> up{normal(0.3)};
  Parameter<float, Shape<hidden, width>> down{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(rms_norm(x, gain), up)), down); }
};

struct Model {
  Parameter<float, Shape<width, width>> in{xavier};
  Layers<layers, Block> blocks;
  Parameter<float, Shape<width, width>> out{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(matmul(x, in)), out) - y));
  }
};

using Batch = Tensor<float, Shape<examples, tokens, width>>;
using Step = Accumulate<micro_batches, Training<Model, AdamW, Batch, Batch>>;

int main(int argc, char** argv) { return ladder::run<Step>("1_one_rank", mesh, argc, argv); }

// Expected output:
// one rank: 1 rank
//
//            sent in a step  parameters  activations  peak
// each rank  nothing         66.5 KiB    1.3 MiB      1.7 MiB
//
// step  0  loss 3.3644
// step 10  loss 0.1407
// step 20  loss 0.0960
// step 30  loss 0.0901
