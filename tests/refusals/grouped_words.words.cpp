// A word of another place.
// figures: member<-1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> base;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, base))); }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>;
#ifdef WRONG
using Program = Grouped<Step, Stored<data>>;
#else
using Program = AllStored<Step, Stored<data>>;
#endif
constexpr auto& p = plan<Program, Mesh{data = 2}>;
