// Rung 2, inter-layer parallelism: each of four ranks has two of the eight layers.
//
// Two lines differ from rung 1. A type says what is split, a mesh among how many ranks: on Mesh{stage = 1} this is rung
// 1. Activations go from stage to stage, gradients back, and while one stage works the others wait, as the picture
// shows.
//
//   meson compile -C build/demo examples/ladder/2_inter_layer && build/demo/examples/ladder/2_inter_layer [--record FILE]
#include "run.hpp"

using namespace parallel;
using namespace parallel::axes;

constexpr int micro_batches = 1;
constexpr Dim examples = 32 / micro_batches;
constexpr Dim tokens = 8;
constexpr Dim hidden = 64;
constexpr Dim layers = 8 / stage;  // changed
constexpr Mesh mesh{stage = 4};    // changed
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

int main(int argc, char** argv) { return ladder::run<Step>("2_inter_layer", mesh, argc, argv); }

// Expected output:
// stage=4: 4 ranks
//
//          sent in a step             parameters  activations  peak
// stage 0  stage 16.0 KiB in 4 calls  17.1 KiB    338 KiB      551 KiB
// stage 1  stage 32.0 KiB in 6 calls  16.1 KiB    338 KiB      531 KiB
// stage 2  stage 32.0 KiB in 6 calls  16.1 KiB    338 KiB      531 KiB
// stage 3  stage 16.0 KiB in 4 calls  17.1 KiB    354 KiB      568 KiB
//
// stage 0  F0 .. .. .. .. .. .. .. .. .. B0
// stage 1  .. F0 .. .. .. .. .. .. B0    .. ..
// stage 2  .. .. F0 .. .. .. B0    .. .. .. ..
// stage 3  .. .. .. F0 B0    .. .. .. .. .. ..
//
// step  0  loss 3.3644
// step 10  loss 0.1407
// step 20  loss 0.0960
// step 30  loss 0.0901
