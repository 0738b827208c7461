// A table has no row for how the parameter lies.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

constexpr Signatures rows_table(const Arguments&) {
  return {{{Broadcast, Broadcast}, {Broadcast}},
#ifndef WRONG
          {{Split<1>, Split<1>}, {Split<1>}},
#endif
          {{Split<0>, Split<0>}, {Split<0>}}};
}
constexpr Operation shift{.name = "shift", .shape = operation::same_shape, .signatures = rows_table, .updates = true};

struct Shift {
  struct Hyperparameters {
    double clip_norm = 0;
  };
  static constexpr void update(Update& u) { u.replace(shift, {u.parameter()}, {u.gradient()}); }
};
struct Model {
  Parameter<float, Shape<6, 8 / tensor>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Shift, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2, tensor = 2}>;
