// Masks of comparisons: the programs of docs/operations.md.
#pragma once
#include <parallel/parallel.hpp>

namespace masks {
using namespace parallel;
using namespace parallel::axes;

struct LeakyRelu {
  constexpr auto operator()(Distributed auto x) const { return where(x > 0, x, 0.1 * x); }
};
/// How many of the labels that are not -100 have the largest score.
struct Right {
  constexpr auto operator()(Distributed auto scores, Distributed auto label) const {
    return sum(cast<float>(argmax<1>(scores) == label && label != -100));
  }
};
struct Model {
  Parameter<float, Shape<8, 16 / tensor>> w;
  LeakyRelu activated;
  Right right;
  constexpr auto operator()(Distributed auto x, Distributed auto label) const {
    return right(activated(matmul(x, w)), label);
  }
};
using Batch = Tensor<float, Shape<4 / data, 8>>;
using Labels = Tensor<int, Shape<4 / data>>;
constexpr auto& p = plan<Evaluation<Model, Batch, Labels>, Mesh{data = 2, tensor = 2}>;
static_assert(p.forward.collectives(tensor) == 2);  // of the largest scores, and where they stand

}  // namespace masks
