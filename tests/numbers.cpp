// Plain numbers beside tensors, and functions of one number: values and gradients by the formulas of a textbook, on
// several meshes.
#include <cmath>

#include <doctest/doctest.h>

#include "models.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::axes;

namespace {
constexpr int rows = 4, width = 6;

struct Functions {
  constexpr auto operator()(Distributed auto x) const {
    const auto away = x + 3;
    return sum(tanh(x) + sigmoid(x) + log(away) + 2.0 / away + (0.5F - x) * (x - 4) / 2 + (1 + -x) * 3);
  }
};
double function(double x) {
  return std::tanh(x) + 1 / (1 + std::exp(-x)) + std::log(x + 3) + 2 / (x + 3) + (0.5 - x) * (x - 4) / 2 + (1 - x) * 3;
}
double derivative(double x) {
  const double t = std::tanh(x), s = 1 / (1 + std::exp(-x));
  return 1 - t * t + s * (1 - s) + 1 / (x + 3) - 2 / ((x + 3) * (x + 3)) + (4.5 - 2 * x) / 2 - 3;
}

struct Pending {
  constexpr auto operator()(Distributed auto x, Distributed auto w) const { return 1.5 - (matmul(x, w) + 2); }
};
using Sum =
    Evaluation<Pending, Tensor<double, Shape<rows, width / tensor>>, Tensor<double, Shape<width / tensor, rows>>>;
}  // namespace

TEST_CASE("numbers and functions: the value and the gradient") {
  const auto x = program::numbers<double>(rows * width, 1);
  double value = 0;
  for (const double v : x) value += function(v);
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}, Mesh{data = 4}}) {
    INFO(text(mesh));
    const auto outputs = program::outputs<Training<Functions, Sgd, Wanted<double, Shape<rows / data, width>>>>(
        mesh, [&](auto& e) { e.input(0, x); });
    REQUIRE(outputs.size() == 3);
    CHECK(outputs[0].data[0] == doctest::Approx(value).epsilon(1e-12));
    for (std::size_t i = 0; i < x.size(); ++i)
      CHECK(outputs[2].data[i] == doctest::Approx(derivative(x[i])).epsilon(1e-10));
  }
}
TEST_CASE("a number joins a pending sum once") {
  static_assert(plan<Sum, Mesh{tensor = 2}>.calls() == 1);
  const auto x = program::numbers<double>(rows * width, 1), w = program::numbers<double>(width * rows, 2);
  for (const Mesh& mesh : {Mesh{tensor = 1}, Mesh{tensor = 2}, Mesh{tensor = 3}}) {
    INFO(text(mesh));
    const auto outputs = program::outputs<Sum>(mesh, [&](auto& e) {
      e.input(0, x);
      e.input(1, w);
    });
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < rows; ++j) {
        double product = 0;
        for (std::size_t k = 0; k < width; ++k) product += x[i * width + k] * w[k * rows + j];
        CHECK(outputs[0].data[i * rows + j] == doctest::Approx(-0.5 - product));
      }
  }
}
