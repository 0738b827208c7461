// Rung 7, a hybrid: two stages of two times two ranks. Each axis does what it did alone.
//
// The lines of rungs 3, 4 and 5 together: five differ from rung 1, and none of them knows of the others.
//
//   meson compile -C build/demo examples/ladder/7_hybrid && build/demo/examples/ladder/7_hybrid [--record FILE]
#include "run.hpp"

using namespace parallel;
using namespace parallel::axes;

constexpr int micro_batches = 8;                     // changed
constexpr Dim examples = 32 / micro_batches / data;  // changed
constexpr Dim tokens = 8;
constexpr Dim hidden = 64 / tensor;                    // changed
constexpr Dim layers = 8 / stage;                      // changed
constexpr Mesh mesh{stage = 2, data = 2, tensor = 2};  // changed
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

int main(int argc, char** argv) { return ladder::run<Step>("7_hybrid", mesh, argc, argv); }

// Expected output:
// stage=2, data=2, tensor=2: 8 ranks
//
//          sent in a step                                                                    parameters  activations  peak
// stage 0  stage 8.0 KiB in 18 calls, data 17.2 KiB in 4 calls, tensor 64.0 KiB in 65 calls  17.2 KiB    50.5 KiB     150 KiB
// stage 1  stage 8.0 KiB in 18 calls, data 17.3 KiB in 5 calls, tensor 64.0 KiB in 65 calls  17.2 KiB    26.3 KiB     127 KiB
//
// stage 0  F0 F1 .. .. B0    F2 B1    F3 B2    F4 B3    F5 B4    F6 B5    F7 B6    .. B7
// stage 1  .. F0 B0    F1 B1    F2 B2    F3 B3    F4 B4    F5 B5    F6 B6    F7 B7    .. ..
//
// step  0  loss 3.3644
// step 10  loss 0.1407
// step 20  loss 0.0960
// step 30  loss 0.0901
