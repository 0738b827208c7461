// A ring leads over one axis, and two split the sequence.
// figures: axis<tensor>, length<8>, axes<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 4, 8>> q, k, v;
  constexpr auto operator()(Distributed auto x) const {
    const auto a = matmul(x, q), b = matmul(x, k), c = matmul(x, v);  // f32[4, 8/sequence/tensor, 4, 8]
#ifdef WRONG
    return mean(attention<true, Context::ring>(a, b, c));
#else
    using Heads = On<tensor, Split<2>>;
    const auto y = attention<true, Context::ring>(to<Heads>(a), to<Heads>(b), to<Heads>(c));
    return mean(to<On<tensor, Split<1>>>(y));
#endif
  }
};
using Batch = Tensor<float, Shape<4, 8 / sequence / tensor, 6>>;
constexpr auto& p = plan<Training<Model, Sgd, Batch>, Mesh{sequence = 2, tensor = 2}>;
