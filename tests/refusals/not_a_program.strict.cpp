// A word of programs about the model: of being strict.
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
using Program = Training<Strict<Model>, Sgd, X>;
#else
using Program = Strict<Training<Model, Sgd, X>>;
#endif
constexpr auto& p = plan<Program, Mesh{data = 2}>;
