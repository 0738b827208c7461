// Rung 3, a pipeline: the batch goes through the stages in eight parts, and most of the time all stages work.
//
// One line differs from rung 2. The order of the parts is a schedule, 1F1B unless the program says
// Pipelined<schedules::gpipe, ...>; it decides how much each stage keeps and how long it waits, and no number.
//
//   meson compile -C build/demo examples/ladder/3_pipeline && build/demo/examples/ladder/3_pipeline [--record FILE]
#include "run.hpp"

using namespace parallel;
using namespace parallel::axes;

constexpr int micro_batches = 8;  // changed
constexpr Dim examples = 32 / micro_batches;
constexpr Dim tokens = 8;
constexpr Dim hidden = 64;
constexpr Dim layers = 8 / stage;
constexpr Mesh mesh{stage = 4};
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

int main(int argc, char** argv) { return ladder::run<Step>("3_pipeline", mesh, argc, argv); }

// Expected output:
// stage=4: 4 ranks
//
//          sent in a step              parameters  activations  peak
// stage 0  stage 16.0 KiB in 18 calls  17.1 KiB    169 KiB      284 KiB
// stage 1  stage 32.0 KiB in 34 calls  16.1 KiB    127 KiB      221 KiB
// stage 2  stage 32.0 KiB in 34 calls  16.1 KiB    84.5 KiB     179 KiB
// stage 3  stage 16.0 KiB in 18 calls  17.1 KiB    44.3 KiB     160 KiB
//
// stage 0  F0 F1 F2 F3 .. .. .. .. .. .. B0    F4 B1    F5 B2    F6 B3    F7 B4    .. B5    .. B6    .. B7
// stage 1  .. F0 F1 F2 .. .. .. .. B0    F3 B1    F4 B2    F5 B3    F6 B4    F7 B5    .. B6    .. B7    .. ..
// stage 2  .. .. F0 F1 .. .. B0    F2 B1    F3 B2    F4 B3    F5 B4    F6 B5    F7 B6    .. B7    .. .. .. ..
// stage 3  .. .. .. F0 B0    F1 B1    F2 B2    F3 B3    F4 B4    F5 B5    F6 B6    F7 B7    .. .. .. .. .. ..
//
// step  0  loss 3.3644
// step 10  loss 0.1407
// step 20  loss 0.0960
// step 30  loss 0.0901
