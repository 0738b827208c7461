// Two micro-batches' gradients for one update.
// figures: rank<0>, micro_batch<0>, chunk<0>
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
constexpr Tasks order(int, int, int micro_batches, int) {
  Tasks tasks;
  for (int k = 0; k < micro_batches; ++k) {
    tasks.push_back({Work::forward, k});
    tasks.push_back({Work::backward, k});
#ifdef WRONG
    if (k % 2 == 1) tasks.push_back({Work::update, k});
#else
    tasks.push_back({Work::update, k});
#endif
  }
  return tasks;
}
inline constexpr Schedule mine{"mine", 1, false, true, order};
using Step = Pipelined<mine, Accumulate<4, Training<Model, Sgd, Tensor<float, Shape<2, 6>>>>>;
constexpr auto& p = plan<Step, Mesh{stage = 2}>;
