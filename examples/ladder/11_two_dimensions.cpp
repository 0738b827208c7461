// Rung 11, tensor parallelism in two dimensions: each of two times two ranks has a block of every matrix, and of what
// goes between them a block of examples and numbers.
//
// Ten lines differ from rung 1. Before a product its row of ranks gathers the input, its column of ranks the matrix:
// beside split columns the one follows, `Stored<row>` says the other. No rank has all of anything.
//
//   meson compile -C build/demo examples/ladder/11_two_dimensions && build/demo/examples/ladder/11_two_dimensions [--record FILE]
#include "run.hpp"

using namespace parallel;
inline constexpr Axis row{"row"}, column{"column"};  // changed

constexpr int micro_batches = 1;
constexpr Dim examples = 32 / micro_batches / row;  // changed
constexpr Dim tokens = 8;
constexpr Dim hidden = 64;
constexpr Dim layers = 8;
constexpr Mesh mesh{row = 2, column = 2};  // changed
constexpr int width = 16;

struct Block {
  Parameter<float, Shape<width / column>> gain{ones};                 // changed
  Parameter<float, Shape<width, hidden / column>> up{normal(0.3)};    // changed
  Parameter<float, Shape<hidden, width / column>> down{normal(0.1)};  // changed
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(rms_norm(x, gain), up)), down); }
};

struct Model {
  Parameter<float, Shape<width, width / column>> in{xavier};  // changed
  Layers<layers, Block> blocks;
  Parameter<float, Shape<width, width / column>> out{xavier};  // changed
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(matmul(x, in)), out) - y));
  }
};

using Batch = Tensor<float, Shape<examples, tokens, width / column>>;                                  // changed
using Step = AllStored<Accumulate<micro_batches, Training<Model, AdamW, Batch, Batch>>, Stored<row>>;  // changed

int main(int argc, char** argv) { return ladder::run<Step>("11_two_dimensions", mesh, argc, argv); }

// Expected output:
// row=2, column=2: 4 ranks
//
//            sent in a step                                        parameters  activations  peak
// each rank  row 49.6 KiB in 79 calls, column 340 KiB in 53 calls  16.6 KiB    508 KiB      671 KiB
//
// step  0  loss 3.3644
// step 10  loss 0.1407
// step 20  loss 0.0960
// step 30  loss 0.0901
