// An optimizer made of another hands it a gradient of its own.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

/// Each element is the sum of its row.
constexpr Signatures row_sums_table(const Arguments&) {
  return {{{Broadcast}, {Broadcast}}, {{Split<0>}, {Split<0>}}, {{Split<1>}, {Partial}}};
}
constexpr Operation row_sums{.name = "row_sums", .shape = operation::same_shape, .signatures = row_sums_table};

struct ByRows : Sgd {
  static constexpr void update(Update& u) {
    const auto sums = u.apply(row_sums, {u.gradient()})[0];
#ifdef WRONG
    u.gradient(sums);
#else
    u.gradient(u.completed(sums));
#endif
    Sgd::update(u);
  }
};
struct Model {
  Parameter<float, Shape<6, 8 / tensor>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, ByRows, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2, tensor = 2}>;
