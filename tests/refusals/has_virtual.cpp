// A virtual function chooses what is computed.
// figures: member<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
struct Activation {
  virtual ~Activation() = default;
  constexpr auto operator()(Distributed auto x) const { return relu(x); }
};
#else
struct Activation {
  constexpr auto operator()(Distributed auto x) const { return relu(x); }
};
#endif
struct Model {
  Parameter<float, Shape<8, 8>> w;
  Activation activation;
  constexpr auto operator()(Distributed auto x) const { return mean(square(activation(matmul(x, w)))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
