// A step needs the one before, so steps go along the sequence as it is counted.
// figures: axis<sequence>, dimension<0>, dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Cell {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto h, Distributed auto x) const { return tanh(matmul(h, w) + x); }
};
struct Model {
  Scan<8, Cell> scan;
  constexpr auto operator()(Distributed auto x) const {
    const auto whole = to<On<sequence, Invariant>>(x);
#ifdef WRONG
    return mean(scan(constant<float, Shape<6>>(0), whole).last);
#else
    return mean(scan(constant<float, Shape<6>>(0), in_order(whole)).last);
#endif
  }
};
using Batch = Tensor<float, Shape<8 / zigzag(sequence), 6>>;
constexpr auto& p = plan<Training<Model, Sgd, Batch>, Mesh{sequence = 2}>;
