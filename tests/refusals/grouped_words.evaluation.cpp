// What is only evaluated is not trained at all.
// figures: member<-1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> base;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, base); }
};
using Look = Evaluation<Model, Tensor<float, Shape<4 / data, 6>>>;
#ifdef WRONG
using Program = Grouped<Look, Frozen<"base">>;
#else
using Program = Look;
#endif
constexpr auto& p = plan<Program, Mesh{data = 2}>;
