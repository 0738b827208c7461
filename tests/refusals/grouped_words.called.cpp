// Two members without the name of their group.
// figures: member<-3>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> base;
  Parameter<float, Shape<6, 6>> head;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(matmul(x, base), head))); }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>;
#ifdef WRONG
using Program = Grouped<Step, Group<"base", "head">>;
#else
using Program = Grouped<Step, Group<"last", "base", "head">>;
#endif
constexpr auto& p = plan<Program, Mesh{data = 2}>;
