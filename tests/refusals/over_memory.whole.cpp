// The states of a model of 67 million parameters exceed the budget of each rank where all have them whole; stored split
// they do not. tests/growth_stored_mpi.cpp trains it so, within that.
// figures: bytes<1119093952>, budget<700000000>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<1024>> gain{ones};
  Parameter<float, Shape<1024, 4096 / tensor>> up;
  Parameter<float, Shape<4096 / tensor, 1024>> down;
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(rms_norm(x, gain), up)), down); }
};
struct Model {
  Layers<8, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
using Step = Training<Model, AdamW, Tensor<float, Shape<64 / data, 1024>>>;
#ifdef WRONG
constexpr auto& p = plan<Within<Step, PeakMemory<700'000'000>>, Mesh{data = 2}>;
#else
constexpr auto& p = plan<Within<AllStored<Step, Stored<data>>, PeakMemory<700'000'000>>, Mesh{data = 2}>;
#endif
