// A loss counts once.
// figures: axis<tensor>, axes<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto loss = mean(square(matmul(to<On<tensor, Broadcast>>(x), w)));
#ifdef WRONG
    return loss;
#else
    return to<On<tensor, Partial>>(loss);
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Wanted<float, Shape<4, 6>>>, Mesh{tensor = 2}>;
