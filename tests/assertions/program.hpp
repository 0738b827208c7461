// The program of the assertions beside it: a perceptron, its batch split over data, its products over tensor. What it
// prints:
//
//   forward    1  all_reduce  tensor  f32[8/data, 4] +tensor  64 B   down
//   forward    1  all_reduce  data    f32[] +data             4 B    down
//   backward   1  all_reduce  data    f32[6/tensor, 4] +data  48 B   down
//   backward   1  all_reduce  data    f32[4, 6/tensor] +data  48 B   up
//   optimizer  1  all_reduce  tensor  f64[] +tensor           8 B    -
#pragma once
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Perceptron {
  Parameter<float, Shape<4, 6 / tensor>> up;
  Parameter<float, Shape<6 / tensor, 4>> down;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(matmul(relu(matmul(x, up)), down)));  // line 18 of the failures
  }
};
constexpr auto& trained =
    plan<Training<Perceptron, Sgd, Tensor<float, Shape<8 / data, 4>>>, Mesh{data = 2, tensor = 2}>;
