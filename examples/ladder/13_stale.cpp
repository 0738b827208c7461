// Rung 13, an asynchronous parameter server: as rung 9, but nobody waits for the newest parameters.
//
// One line differs from rung 9, and 1 line is added. `Stale<1, AdamW>`: a gradient is at the parameters of the step
// before, so those of the next step are pulled from the first moment on, under all that is computed, and no rank waits
// for them but where it ends. `Zero::states`: the ranks keep what they pulled, only the optimizer's states lie at rank 0.
// So the losses are its own, the same on one rank.
//
//   meson compile -C build/demo examples/ladder/13_stale && build/demo/examples/ladder/13_stale [--record FILE]
#include <parallel/model/stale.hpp>  // added

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
  Layers<layers, Block> blocks;
  Parameter<float, Shape<width, width>> out{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(matmul(x, in)), out) - y));
  }
};

using Batch = Tensor<float, Shape<examples, tokens, width>>;
using Step = AllStored<Training<Model, Stale<1, AdamW>, Batch, Batch>, Stored<data, At<0>, Zero::states>>;  // changed

int main(int argc, char** argv) { return ladder::run<Step>("13_stale", mesh, argc, argv); }

// Expected output:
// data=4: 4 ranks
//
//            sent in a step            parameters  activations  peak
// each rank  data 133 KiB in 26 calls  66.5 KiB    330 KiB      769 KiB
//
// step  0  loss 3.3644
// step 10  loss 1.0830
// step 20  loss 0.9764
// step 30  loss 0.4825
