// A program that turns a tensor by all-to-alls from every dimension of four to another, forward and, with its gradient,
// back.
#pragma once
#include <parallel/parallel.hpp>

namespace turning {

using namespace parallel;
using namespace parallel::axes;

inline constexpr std::int64_t elements = 24 * 12 * 12 * 12;

struct Turned {
  Parameter<double, Shape<12>> gain{ones};
  constexpr auto operator()(Distributed auto x) const {
    auto a = to<On<tensor, Split<2>>>(x * gain);
    auto b = to<On<tensor, Split<3>>>(square(a));
    auto c = to<On<tensor, Split<0>>>(b * b);
    return mean(square(to<On<tensor, Split<1>>>(c)));
  }
};
using Step = Training<Turned, KeepGradients, Tensor<double, Shape<24 / data, 12 / tensor, 12, 12>>>;

}  // namespace turning
