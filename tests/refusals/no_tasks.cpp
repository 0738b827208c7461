// The function is forgotten.
// figures: stages<2>, micro_batches<300>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Layer {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
struct Model {
  Layers<4 / stage, Layer> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(layers(x)); }
};
#ifdef WRONG
inline constexpr Schedule mine{"mine"};
#else
inline constexpr Schedule mine{.name = "mine", .tasks = schedules::gpipe.tasks};
#endif
using Step = Pipelined<mine, Accumulate<300, Training<Model, Sgd, Tensor<float, Shape<2, 6>>>>>;
constexpr auto& p = plan<Step, Mesh{stage = 2}>;
