// PipeDream updates before all gradients are known.
// figures: micro_batches<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Layer {
  Parameter<float16, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, w); }
};
struct Model {
  Layers<4 / stage, Layer> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
};
using Step = LossScaled<Accumulate<4, Training<Model, Sgd, Tensor<float16, Shape<4, 6>>>>>;
#ifdef WRONG
using Program = Pipelined<schedules::pipedream, Step>;
#else
using Program = Pipelined<schedules::gpipe, Step>;
#endif
constexpr auto& p = plan<Program, Mesh{stage = 2}>;
