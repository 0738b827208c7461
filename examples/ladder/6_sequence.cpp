// Rung 6, sequence parallelism: between the matrices each rank has a quarter of the tokens, too.
//
// One line differs from rung 5. Each all-reduce becomes a reduce-scatter and an all-gather of the same bytes; norms and
// residual sums are computed, and kept, for a rank's own tokens only.
//
//   meson compile -C build/demo examples/ladder/6_sequence && build/demo/examples/ladder/6_sequence [--record FILE]
#include "run.hpp"

using namespace parallel;
using namespace parallel::axes;

constexpr int micro_batches = 1;
constexpr Dim examples = 32 / micro_batches;
constexpr Dim tokens = 8 / tensor;  // changed
constexpr Dim hidden = 64 / tensor;
constexpr Dim layers = 8;
constexpr Mesh mesh{tensor = 4};
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

int main(int argc, char** argv) { return ladder::run<Step>("6_sequence", mesh, argc, argv); }

// Expected output:
// tensor=4: 4 ranks
//
//            sent in a step              parameters  activations  peak
// each rank  tensor 388 KiB in 37 calls  18.5 KiB    426 KiB      564 KiB
//
// step  0  loss 3.3644
// step 10  loss 0.1407
// step 20  loss 0.0960
// step 30  loss 0.0901
