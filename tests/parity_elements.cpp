// Operations element by element and along a dimension against PyTorch, on every mesh: what they give, and gradients,
// also where elements are equal, or at a corner. tools/fixtures/elements.py has computed them.
#include "parity.hpp"

namespace {

using namespace parity;

inline constexpr Dim rows = 8 / data;
using Grid = Wanted<float, Shape<rows, 16 / tensor>>;
using Rows = Wanted<float, Shape<rows>>;
using One = Wanted<float, Shape<>>;

/// A function without parameters as a layer.
#define LAYER(NAME, ...)                                                                                           \
  struct NAME {                                                                                                    \
    constexpr auto operator()([[maybe_unused]] Distributed auto x, [[maybe_unused]] Distributed auto... y) const { \
      return __VA_ARGS__;                                                                                          \
    }                                                                                                              \
  };
LAYER(Sin, sin(x))
LAYER(Cos, cos(x))
LAYER(Softplus, softplus(x))
LAYER(Reciprocal, reciprocal(x))
LAYER(Cubed, pow(x, 3))
LAYER(PowerOfTwo, pow(2.0, x))
LAYER(Abs, abs(x))
LAYER(Sign, sign(x) * x)
LAYER(Clamp, clamp(x, -0.5, 1))
LAYER(MinimumOfOne, minimum(x, 0.5))
LAYER(LogSoftmax, log_softmax<1>(x))
LAYER(CumulativeSum, cumulative_sum<1>(to<On<tensor, Invariant>>(x)))
LAYER(Max, max<1>(x))
LAYER(Min, min<1>(x))
LAYER(MinOfAll, min(x))
LAYER(Argmax, cast<float>(argmax<1>(x)) + to<On<tensor, Invariant>>(sum<1>(x)))
LAYER(Argmin, cast<float>(argmin<1>(x)) + to<On<tensor, Invariant>>(sum<1>(x)))
LAYER(Pow, pow(x, y...))
LAYER(BinaryCrossEntropy, binary_cross_entropy(x, y...))
LAYER(SoftCrossEntropy, soft_cross_entropy(x, y...))
LAYER(Huber, huber_loss(x, y..., 0.75))
LAYER(MeanSquared, mean_squared_error(x, y...))
LAYER(MeanAbsolute, mean_absolute_error(x, y...))
LAYER(Maximum, maximum(x, y...))
LAYER(Minimum, minimum(x, y...))
#undef LAYER
struct TopThree {
  constexpr auto operator()(Distributed auto x) const {
    const auto [values, positions] = top_k<1, 3>(to<On<tensor, Invariant>>(x));
    return values + cast<float>(positions);
  }
};
struct Compared {
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return where(x == y, x, 2 * y) + where(x != 0.5, y, x) + where(x < y, x, -y) + where(0 >= x, 3 * x, y) +
           where(x > y && !(y >= 1), x, x * y) + where(x > 1 || y < 0, y, x);
  }
};

template <class Layer, class Result>
void check_one(const char* name) {
  check_layer<Training<Weighed<Layer>, KeepGradients, Result, Grid>>(name, {"x"});
}
template <class Layer, class Result>
void check_two(const char* name) {
  check_layer<Training<Weighed<Layer>, KeepGradients, Result, Grid, Grid>>(name, {"x", "y"});
}

}  // namespace

TEST_CASE("functions of one number are PyTorch's") {
  check_one<Sin, Grid>("sin");
  check_one<Cos, Grid>("cos");
  check_one<Softplus, Grid>("softplus");
  check_one<Reciprocal, Grid>("reciprocal");
  check_one<Cubed, Grid>("cubed");
  check_one<PowerOfTwo, Grid>("power_of_two");
  check_one<Abs, Grid>("abs");
  check_one<Sign, Grid>("sign");
  check_one<Clamp, Grid>("clamp");
  check_one<MinimumOfOne, Grid>("minimum_of_one");
}
TEST_CASE("functions of two numbers and comparisons are PyTorch's") {
  check_two<Pow, Grid>("pow");
  check_two<Maximum, Grid>("maximum");
  check_two<Minimum, Grid>("minimum");
  check_two<Compared, Grid>("compared");
}
TEST_CASE("what goes along a dimension is PyTorch's") {
  check_one<LogSoftmax, Grid>("log_softmax");
  check_one<CumulativeSum, Wanted<float, Shape<rows, 16>>>("cumulative_sum");
  check_one<TopThree, Wanted<float, Shape<rows, 3>>>("top_k");
  check_one<Max, Rows>("max");
  check_one<Min, Rows>("min");
  check_one<MinOfAll, One>("min_of_all");
  check_one<Argmax, Rows>("argmax");
  check_one<Argmin, Rows>("argmin");
}
TEST_CASE("losses are PyTorch's") {
  check_two<BinaryCrossEntropy, Grid>("binary_cross_entropy");
  check_two<SoftCrossEntropy, Rows>("soft_cross_entropy");
  check_two<Huber, Grid>("huber_loss");
  check_two<MeanSquared, One>("mean_squared_error");
  check_two<MeanAbsolute, One>("mean_absolute_error");
}
