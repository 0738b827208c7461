// Rung 9, a parameter server: as rung 4, but one rank has the model, and updates it. The others pull what they use.
//
// One line differs from rung 4. `Stored<data, At<0>>`: a parameter lies at rank 0. It is broadcast before it is used,
// and its gradient is reduced to where it lies, so all that goes between ranks goes through that rank's link.
//
//   meson compile -C build/demo examples/ladder/9_servers && build/demo/examples/ladder/9_servers [--record FILE]
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
using Step = AllStored<Training<Model, AdamW, Batch, Batch>, Stored<data, At<0>>>;  // changed

int main(int argc, char** argv) { return ladder::run<Step>("9_servers", mesh, argc, argv); }

// Expected output:
// data=4: 4 ranks
//
//            sent in a step            parameters  activations  peak
// each rank  data 199 KiB in 79 calls  66.5 KiB    330 KiB      640 KiB
//
// step  0  loss 3.3644
// step 10  loss 0.1407
// step 20  loss 0.0960
// step 30  loss 0.0901
