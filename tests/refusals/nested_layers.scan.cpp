// A Scan lies in no Layers: several recurrent layers are Scans beside each other.
// figures: layers<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Cell {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto h, Distributed auto x) const { return tanh(matmul(h, w) + x); }
};
struct Recurrent {
  Scan<8, Cell> scan;
  constexpr auto operator()(Distributed auto x) const { return scan(constant<float, Shape<4 / data, 6>>(0), x).each; }
};
struct Model {
#ifdef WRONG
  Layers<2, Recurrent> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
#else
  Recurrent first, second;
  constexpr auto operator()(Distributed auto x) const { return mean(square(second(first(x)))); }
#endif
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<8, 4 / data, 6>>>, Mesh{data = 2}>;
