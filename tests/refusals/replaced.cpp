// The mean is read as it was before.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

constexpr Operation mix{.name = "mix", .updates = true};
constexpr Operation shift{.name = "shift", .updates = true};

struct Shift {
  struct Hyperparameters {
    double clip_norm = 0;
  };
  static constexpr void update(Update& u) {
    const Update::Value mean = u.state("mean");
#ifdef WRONG
    u.replace(mix, {mean}, {u.gradient()});
    u.replace(shift, {u.parameter()}, {mean});
#else
    const Update::Value mixed = u.replace(mix, {mean}, {u.gradient()})[0];
    u.replace(shift, {u.parameter()}, {mixed});
#endif
  }
};
struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Shift, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
