// What is to take the parameter's place is returned.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

constexpr Operation shift{.name = "shift", .updates = true};

struct Shift {
  struct Hyperparameters {
    double clip_norm = 0;
  };
#ifdef WRONG
  static constexpr auto update(Update& u) { return u.apply(operation::add, {u.parameter(), u.gradient()}); }
#else
  static constexpr void update(Update& u) { u.replace(shift, {u.parameter()}, {u.gradient()}); }
#endif
};
struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Shift, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
