// Rung 5, tensor parallelism: each of four ranks has a quarter of every matrix: columns of `up`, rows of `down`.
//
// Two lines differ from rung 1, as in rung 2: what is split, and among how many. Behind `down` each rank has a term of
// the result, and the residual sum needs all of it: one all-reduce for each layer forward, one backward.
//
//   meson compile -C build/demo examples/ladder/5_tensor && build/demo/examples/ladder/5_tensor [--record FILE]
#include "run.hpp"

using namespace parallel;
using namespace parallel::axes;

constexpr int micro_batches = 1;
constexpr Dim examples = 32 / micro_batches;
constexpr Dim tokens = 8;
constexpr Dim hidden = 64 / tensor;  // changed
constexpr Dim layers = 8;
constexpr Mesh mesh{tensor = 4};  // changed
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

int main(int argc, char** argv) { return ladder::run<Step>("5_tensor", mesh, argc, argv); }

// Expected output:
// tensor=4: 4 ranks
//
//            sent in a step              parameters  activations  peak
// each rank  tensor 384 KiB in 17 calls  18.5 KiB    552 KiB      721 KiB
//
// step  0  loss 3.3644
// step 10  loss 0.1407
// step 20  loss 0.0960
// step 30  loss 0.0901
