// Rung 12, tensor parallelism in three dimensions: each of two times two times two ranks has an eighth of every matrix,
// and of all that goes between them.
//
// Eleven lines differ from rung 1. Of a product, one axis gathers the input, another the matrix, and on the third each
// rank has a term of the result, of which it needs the sum for some examples: a reduce-scatter, which `to` writes. Then
// `column` and `depth` change places, so that what one product gives the next one takes.
//
//   meson compile -C build/demo examples/ladder/12_three_dimensions && build/demo/examples/ladder/12_three_dimensions [--record FILE]
#include "run.hpp"

using namespace parallel;
inline constexpr Axis row{"row"}, column{"column"}, depth{"depth"};  // changed

constexpr int micro_batches = 1;
constexpr Dim examples = 32 / micro_batches / row / column;  // changed
constexpr Dim tokens = 8;
constexpr Dim hidden = 64 / depth;  // changed
constexpr Dim layers = 8;
constexpr Mesh mesh{row = 2, column = 2, depth = 2};  // changed
constexpr Dim width = 16 / column;                    // changed

struct Block {
  Parameter<float, Shape<width>> gain{ones};
  Parameter<float, Shape<width, hidden>> up{normal(0.3)};
  Parameter<float, Shape<hidden, width>> down{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const {                                      // changed
    return x + matmul(gelu(to<On<column, Split<0>>>(matmul(rms_norm(x, gain), up))), down);  // changed
  }                                                                                          // changed
};

struct Model {
  Parameter<float, Shape<16 / depth, width>> in{xavier};  // changed
  Layers<layers, Block> blocks;
  Parameter<float, Shape<width, 16 / depth>> out{xavier};  // changed
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(to<On<depth, Split<0>>>(matmul(x, in))), out) - y));  // changed
  }
};

using Batch = Tensor<float, Shape<examples, tokens, 16 / depth>>;                                      // changed
using Step = AllStored<Accumulate<micro_batches, Training<Model, AdamW, Batch, Batch>>, Stored<row>>;  // changed

int main(int argc, char** argv) { return ladder::run<Step>("12_three_dimensions", mesh, argc, argv); }

// Expected output:
// row=2, column=2, depth=2: 8 ranks
//
//            sent in a step                                                                    parameters  activations  peak
// each rank  row 25.0 KiB in 79 calls, column 266 KiB in 53 calls, depth 72.1 KiB in 46 calls  8.4 KiB     254 KiB      328 KiB
//
// step  0  loss 3.3644
// step 10  loss 0.1407
// step 20  loss 0.0960
// step 30  loss 0.0901
