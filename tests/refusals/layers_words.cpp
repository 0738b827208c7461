// How parameters are stored is said of each, or of all of a program.
// figures: layers<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
struct Model {
#ifdef WRONG
  Layers<4, Block, Stored<data>> layers;
#else
  Layers<4, Block> layers;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>;
constexpr auto& p = plan<AllStored<Step, Stored<data>>, Mesh{data = 2}>;
