// Rung 10, context parallelism: blocks attend to other tokens, and each rank has a quarter of the tokens.
//
// Three lines differ from rung 1, and 16 lines are added: attention before each block. So its losses are its own, the
// same on one rank. Each rank attends to its own keys and values first. Those of the others come around a ring in three
// shifts, while it attends to what it has; backward they come around again, and their gradients behind them.
//
//   meson compile -C build/demo examples/ladder/10_context && build/demo/examples/ladder/10_context [--record FILE]
#include "run.hpp"

using namespace parallel;
using namespace parallel::axes;

constexpr int micro_batches = 1;
constexpr Dim examples = 32 / micro_batches;
constexpr Dim tokens = 8 / sequence;  // changed
constexpr Dim hidden = 64;
constexpr Dim layers = 8;
constexpr Mesh mesh{sequence = 4};  // changed
constexpr int heads = 4;            // added
constexpr int width = 16;

struct Block {
  Parameter<float, Shape<width>> gain{ones};
  Parameter<float, Shape<width, hidden>> up{normal(0.3)};
  Parameter<float, Shape<hidden, width>> down{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(rms_norm(x, gain), up)), down); }
};

struct Attention {                                                             // added
  Parameter<float, Shape<width>> gain{ones};                                   // added
  Parameter<float, Shape<width, 3, heads, width / heads>> in{normal(0.3)};     // added
  Parameter<float, Shape<heads, width / heads, width>> out{normal(0.1)};       // added
  constexpr auto operator()(Distributed auto x) const {                        // added
    const auto all = matmul(rms_norm(x, gain), in);                            // added
    const auto q = take<2, 0>(all), k = take<2, 1>(all), v = take<2, 2>(all);  // added
    return x + matmul<2>(attention<true, Context::ring>(q, k, v), out);        // added
  }                                                                            // added
};                                                                             // added

struct AttentionAndBlock {                                                          // added
  Attention attend;                                                                 // added
  Block block;                                                                      // added
  constexpr auto operator()(Distributed auto x) const { return block(attend(x)); }  // added
};                                                                                  // added

struct Model {
  Parameter<float, Shape<width, width>> in{xavier};
  Layers<layers, AttentionAndBlock> blocks;  // changed
  Parameter<float, Shape<width, width>> out{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(matmul(x, in)), out) - y));
  }
};

using Batch = Tensor<float, Shape<examples, tokens, width>>;
using Step = Accumulate<micro_batches, Training<Model, AdamW, Batch, Batch>>;

int main(int argc, char** argv) { return ladder::run<Step>("10_context", mesh, argc, argv); }

// Expected output:
// sequence=4: 4 ranks
//
//            sent in a step                 parameters  activations  peak
// each rank  sequence 725 KiB in 180 calls  99 KiB      532 KiB      1016 KiB
//
// step  0  loss 4.8292
// step 10  loss 0.1548
// step 20  loss 0.1009
// step 30  loss 0.0912
