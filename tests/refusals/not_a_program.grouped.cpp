// A word of programs about the model: of groups.
// figures: argument<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> base;
  Parameter<float, Shape<6, 6>> head;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(matmul(x, base), head))); }
};
using X = Tensor<float, Shape<4 / data, 6>>;
#ifdef WRONG
using Program = Training<Grouped<Model, Frozen<"base">>, Sgd, X>;
#else
using Program = Grouped<Training<Model, Sgd, X>, Frozen<"base">>;
#endif
constexpr auto& p = plan<Program, Mesh{data = 2}>;
