// The update of an optimizer communicates, and nothing says what.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

constexpr Signatures columns_table(const Arguments&) {
  Signature row = split_row({{1, 2}, {1, 2}}, {{1, 2}}, 2);
#ifdef WRONG
  row.communicates = true;
#endif
  return {uniform_row(2, 1, Broadcast), row};
}
constexpr Operation shift{
    .name = "shift", .shape = operation::same_shape, .signatures = columns_table, .updates = true};

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
