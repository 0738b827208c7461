// Rung 8, memory: as rung 4, but each of four ranks has a quarter of the model too, and keeps one value of each layer.
//
// Two lines differ from rung 4. `Stored<data>`, ZeRO's third stage, gathers a layer's parameters before they are used;
// `Recompute<>` makes a layer's activations again for the backward pass. Each says what it saves, and what it sends.
//
//   meson compile -C build/demo examples/ladder/8_zero && build/demo/examples/ladder/8_zero [--record FILE]
#include "run.hpp"

using namespace parallel;
using namespace parallel::axes;

constexpr int micro_batches = 1;
constexpr Dim examples = 32 / micro_batches / data;
constexpr Dim tokens = 8;
constexpr Dim hidden = 64;
constexpr Dim layers = 8;
constexpr Mesh mesh{data = 4};
constexpr int width = 16;

struct Block {
  Parameter<float, Shape<width>> gain{ones};
  Parameter<float, Shape<width, hidden>> up{normal(0.3)};
  Parameter<float, Shape<hidden, width>> down{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(rms_norm(x, gain), up)), down); }
};

struct Model {
  Parameter<float, Shape<width, width>> in{xavier};
  Layers<layers, Block, Recompute<>> blocks;  // changed
  Parameter<float, Shape<width, width>> out{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(matmul(x, in)), out) - y));
  }
};

using Batch = Tensor<float, Shape<examples, tokens, width>>;
using Step = AllStored<Accumulate<micro_batches, Training<Model, AdamW, Batch, Batch>>, Stored<data>>;  // changed

int main(int argc, char** argv) { return ladder::run<Step>("8_zero", mesh, argc, argv); }

// Expected output:
// data=4: 4 ranks
//
//            sent in a step            parameters  activations  peak
// each rank  data 149 KiB in 79 calls  16.6 KiB    40 KiB       180 KiB
//
// step  0  loss 3.3644
// step 10  loss 0.1407
// step 20  loss 0.0960
// step 30  loss 0.0901
