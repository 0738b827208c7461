// As others call it.
// figures: argument<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

constexpr Operation shift{.name = "shift", .updates = true};

struct Shift {
  struct Hyperparameters {
    double clip_norm = 0;
  };
#ifdef WRONG
  static constexpr void step(Update& u) { u.replace(shift, {u.parameter()}, {u.gradient()}); }
#else
  static constexpr void update(Update& u) { u.replace(shift, {u.parameter()}, {u.gradient()}); }
#endif
};
struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Shift, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
