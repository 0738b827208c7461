// Element-wise kernels against their definitions: broadcasting between all kinds of shapes, functions of one number and
// their derivatives.
#include <parallel/graph/structure.hpp>
#include <parallel/operation/loss.hpp>
#include <parallel/operation/operators.hpp>
#include <parallel/operation/power.hpp>
#include <parallel/operation/unary.hpp>
#include <parallel/operation/update.hpp>
#include <parallel/operation/where.hpp>

#include "device.hpp"

using namespace parallel;
using namespace parallel::internals;

static Sizes broadcast_sizes(const Sizes& x, const Sizes& y) {
  const std::size_t rank = std::max(x.size(), y.size());
  Sizes result(rank, 1);
  for (const Sizes* s : {&x, &y})
    for (std::size_t d = 0; d < s->size(); ++d)
      if ((*s)[d] != 1) result[d + rank - s->size()] = (*s)[d];
  return result;
}
static const std::vector<std::pair<Sizes, Sizes>> shapes{
    {{7}, {7}},
    {{3, 5, 33}, {3, 5, 33}},
    {{4, 33}, {33}},
    {{3, 5, 7}, {5, 7}},
    {{40, 3}, {1}},
    {{}, {}},
    {{2, 17}, {}},
    {{}, {2, 17}},
    {{17}, {3, 17}},
    {{6, 19}, {6, 1}},
    {{3, 1}, {1, 4}},
    {{2, 1, 3, 1}, {5, 1, 4}},
    {{2, 3, 4, 5}, {2, 1, 4, 1}},
    {{1, 1}, {1, 1}},
    {{16, 1}, {1}},
    {{0, 4}, {4}},
    {{2, 3, 2, 3, 2, 3}, {3, 1, 3, 1, 3}},
};

TEST_CASE_TEMPLATE("binary operations broadcast", T, float, double) {
  for (const auto& [sx, sy] : shapes) {
    const Sizes out = broadcast_sizes(sx, sy);
    const Numbers x = normal_numbers(sx, 1), y = normal_numbers(sy, 2, 0.3, 2);
    const auto check = [&](const Operation& operation, auto function) {
      CAPTURE(operation.name);
      check_near(Run<T>().operand(x).operand(y).result(out).run(operation),
                 defined(out, [&](const Sizes& i) { return function(x.repeated(i), y.repeated(i)); }), tolerance<T>);
    };
    check(operation::add, std::plus<>());
    check(operation::subtract, std::minus<>());
    check(operation::multiply, std::multiplies<>());
    check(operation::divide, std::divides<>());
  }
}
TEST_CASE("sums and products of whole numbers") {
  const Numbers x = whole_numbers({5, 7}, 1, 100), y = whole_numbers({7}, 2, 100);
  check_near(Run<int>().operand(x).operand(y).result({5, 7}).run(operation::add),
             defined({5, 7}, [&](const Sizes& i) { return x(i) + y.repeated(i); }), 0);
  check_near(Run<int>().operand(x).operand(y).result({5, 7}).run(operation::multiply),
             defined({5, 7}, [&](const Sizes& i) { return x(i) * y.repeated(i); }), 0);
}
TEST_CASE_TEMPLATE("accumulate adds in place", T, float, double) {
  const Numbers sum = normal_numbers({3, 11}, 1), x = normal_numbers({3, 11}, 2);
  check_near(Run<T>().operand(sum).operand(x).result_in_place(0).run(operation::accumulate),
             defined({3, 11}, [&](const Sizes& i) { return sum(i) + x(i); }), tolerance<T>);
}
TEST_CASE_TEMPLATE("where and masked", T, float, double) {
  for (const auto& [sx, sy] : shapes)
    for (const auto& [mask_sizes, ignored] : shapes) {
      Sizes out = broadcast_sizes(sx, sy);
      if (mask_sizes.size() > out.size()) continue;
      bool fits = true;
      for (std::size_t d = 0; d < mask_sizes.size(); ++d)
        fits = fits && (mask_sizes[d] == 1 || mask_sizes[d] == out[d + out.size() - mask_sizes.size()]);
      if (!fits) continue;
      const Numbers mask = whole_numbers(mask_sizes, 3, 2), x = normal_numbers(sx, 1), y = normal_numbers(sy, 2);
      check_near(Run<T>().integers(mask).operand(x).operand(y).result(out).run(operation::where),
                 defined(out, [&](const Sizes& i) { return mask.repeated(i) != 0 ? x.repeated(i) : y.repeated(i); }),
                 0);
      const Numbers g = normal_numbers(out, 4);
      for (const int kept : {0, 1})
        check_near(Run<T>().integers(mask).operand(g).result(out).ints({kept}).run(operation::masked),
                   defined(out, [&](const Sizes& i) { return (mask.repeated(i) != 0) == (kept == 1) ? g(i) : 0; }), 0);
    }
}

static double gelu_of(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}
static double silu_of(double x) { return x / (1 + std::exp(-x)); }
static double softplus_of(double x) { return std::log1p(std::exp(x)); }
static double gelu_erf_of(double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }

TEST_CASE_TEMPLATE("functions of one number", T, float, double) {
  for (const Sizes& sizes : {Sizes{}, Sizes{1}, Sizes{3, 5}, Sizes{67}, Sizes{5, 1031}}) {
    const Numbers x = normal_numbers(sizes, 1, 2),
                  positive = defined(sizes, [&](const Sizes&i) { return std::abs(x(i)) + 0.25; }),
                  g = normal_numbers(sizes, 2);
    const auto check = [&](const Operation& operation, const Numbers& at, auto function) {
      CAPTURE(operation.name);
      check_near(Run<T>().operand(at).result(sizes).reals(-1.5).run(operation),
                 defined(sizes, [&](const Sizes& i) { return function(at(i)); }), tolerance<T>);
    };
    check(operation::scale, x, [](double v) { return -1.5 * v; });
    check(operation::square, x, [](double v) { return v * v; });
    check(operation::sqrt, positive, [](double v) { return std::sqrt(v); });
    check(operation::exp, x, [](double v) { return std::exp(v); });
    check(operation::log, positive, [](double v) { return std::log(v); });
    check(operation::tanh, x, [](double v) { return std::tanh(v); });
    check(operation::sigmoid, x, [](double v) { return 1 / (1 + std::exp(-v)); });
    check(operation::relu, x, [](double v) { return std::max(v, 0.0); });
    check(operation::gelu, x, gelu_of);
    check(operation::gelu_erf, x, gelu_erf_of);
    check(operation::silu, x, silu_of);
    check(operation::softplus, x, softplus_of);
    check(operation::sin, x, [](double v) { return std::sin(v); });
    check(operation::cos, x, [](double v) { return std::cos(v); });
    check(operation::abs, x, [](double v) { return std::abs(v); });
    const auto check_derivative = [&](const Operation& operation, auto function) {  // by central differences
      CAPTURE(operation.name);
      const double h = 1e-5;
      check_near(
          Run<T>().operand(x).operand(g).result(sizes).run(operation),
          defined(sizes, [&](const Sizes& i) { return g(i) * (function(x(i) + h) - function(x(i) - h)) / (2 * h); }),
          1e-8 + tolerance<T>);
    };
    check_derivative(operation::relu_derivative, [](double v) { return std::max(v, 0.0); });
    check_derivative(operation::gelu_derivative, gelu_of);
    check_derivative(operation::gelu_erf_derivative, gelu_erf_of);
    check_derivative(operation::silu_derivative, silu_of);
    check_derivative(operation::softplus_derivative, softplus_of);
    check_derivative(operation::sin_derivative, [](double v) { return std::sin(v); });
    check_derivative(operation::cos_derivative, [](double v) { return std::cos(v); });
    check_derivative(operation::abs_derivative, [](double v) { return std::abs(v); });
  }
}
TEST_CASE_TEMPLATE("functions of large and of no numbers", T, float, double) {
  const double infinity = std::numeric_limits<double>::infinity(), none = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values(64, 0.0);
  const std::vector<double> special{-infinity, infinity, none, -1e4, 1e4, -40, 40, -0.0};
  std::copy(special.begin(), special.end(), values.begin());
  const Numbers x({64}, values);
  const Numbers e = Run<T>().operand(x).result({64}).run(operation::exp),
                r = Run<T>().operand(x).result({64}).run(operation::relu);
  CHECK(e.values[0] == 0);
  CHECK(e.values[1] > 1e38);
  CHECK(std::isnan(e.values[2]));
  CHECK(e.values[3] == 0);
  CHECK(std::isnan(r.values[2]));
  for (const Operation* operation : {&operation::gelu, &operation::gelu_erf}) {
    const Numbers y = Run<T>().operand(x).result({64}).run(*operation);
    CHECK(std::isnan(y.values[2]));
    CHECK(std::abs(y.values[3]) < 1e-20);
    CHECK(y.values[4] == doctest::Approx(1e4));
    CHECK(std::abs(y.values[5]) < 1e-20);
    CHECK(y.values[6] == doctest::Approx(40));
  }
  for (const Operation* operation : {&operation::gelu_derivative, &operation::gelu_erf_derivative}) {
    const Numbers dy = Run<T>().operand(x).operand(Numbers({64}, 1)).result({64}).run(*operation);
    CHECK(std::isnan(dy.values[2]));
    CHECK(std::abs(dy.values[3]) < 1e-15);
    CHECK(dy.values[4] == doctest::Approx(1));
    CHECK(std::abs(dy.values[5]) < 1e-15);
    CHECK(dy.values[6] == doctest::Approx(1));
  }
}
TEST_CASE_TEMPLATE("roots and logarithms of every kind of number", T, float, double) {
  const double infinity = std::numeric_limits<double>::infinity(), none = std::numeric_limits<double>::quiet_NaN(),
               least = std::numeric_limits<T>::min(), last = std::numeric_limits<T>::denorm_min(),
               most = std::numeric_limits<T>::max();
  const std::vector<double> values{infinity, 0,    -0.0, none, -1,   -infinity, least,   least / 4,
                                   last,     most, 1,    4,    0.25, least * 2, 3 * last};
  const Sizes sizes{static_cast<std::int64_t>(values.size())};
  const Numbers x(sizes, values);
  const auto check = [&](const Operation& operation, double (*function)(double)) {
    CAPTURE(operation.name);
    const Numbers y = Run<T>().operand(x).result(sizes).run(operation);
    for (std::size_t i = 0; i < values.size(); ++i) {
      CAPTURE(values[i]);
      const double wanted = function(values[i]);
      if (std::isfinite(wanted))
        CHECK(std::abs(y.values[i] - wanted) <= 4 * std::numeric_limits<T>::epsilon() * std::abs(wanted));
      else
        CHECK((std::isnan(wanted) ? std::isnan(y.values[i]) : y.values[i] == wanted));
    }
  };
  check(operation::sqrt, std::sqrt);
  check(operation::log, std::log);
}
TEST_CASE_TEMPLATE("binary cross entropy of infinite logits", T, float, double) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Numbers z({8}, {infinity, infinity, infinity, -infinity, -infinity, -infinity, 1e4, -1e4}),
      t({8}, {0, 0.5, 1, 0, 0.5, 1, 1, 0});
  const Numbers loss = Run<T>().operand(z).operand(t).result({8}).run(operation::binary_cross_entropy);
  CHECK(loss.values == std::vector<double>{infinity, infinity, 0, 0, infinity, infinity, 0, 0});
}
TEST_CASE_TEMPLATE("an element's bits do not depend on the part that it is computed in", T, float, double) {
  const Numbers x = normal_numbers({5, 53}, 1, 2), g = normal_numbers({5, 53}, 2);
  for (const Operation* operation :
       {&operation::exp, &operation::log, &operation::tanh, &operation::sigmoid, &operation::gelu, &operation::gelu_erf,
        &operation::sqrt, &operation::gelu_derivative, &operation::gelu_erf_derivative, &operation::softplus,
        &operation::sin, &operation::cos, &operation::softplus_derivative, &operation::pow,
        &operation::binary_cross_entropy}) {
    CAPTURE(operation->name);
    const auto run = [&](const Box& part) {
      return Run<T>().operand(x, part).operand(g, part).result(x.sizes, part).run(*operation);
    };
    const Numbers whole = run(all_of(x.sizes));
    for (const int dim : {0, 1})
      for (const int n : {2, 3, 5})
        for (const Box& part : split(x.sizes, dim, n)) {
          const Numbers own = run(part), expected = part_of(whole, part);
          for (std::size_t i = 0; i < own.values.size(); ++i)
            CHECK((own.values[i] == expected.values[i] || std::isnan(own.values[i])));
        }
  }
}
TEST_CASE("casts") {
  const Numbers x = normal_numbers({3, 21}, 1, 10);
  const Numbers truncated = defined(x.sizes, [&](const Sizes& i) { return std::trunc(x(i)); });
  check_near(Run<float>().operand(x).result<double>(x.sizes).run(operation::cast), x, 0);
  check_near(Run<double>().operand(x).result<float>(x.sizes).run(operation::cast), x, 0);
  check_near(Run<float>().operand(x).result<int>(x.sizes).run(operation::cast), truncated, 0);
  check_near(Run<int>().operand(truncated).result<double>(x.sizes).run(operation::cast), truncated, 0);
}
#if !defined(PARALLEL_TEST_CUDA)
TEST_CASE("a device has no kernel for what it cannot compute, and takes those of a program") {
  Run<float> half;
  half.operand(Numbers({4}, 1)).operand(Numbers({4}, 1)).result({4});
  half.call().operands[1].dtype = DType::bf16;
  CHECK_FALSE(bool(CpuOf<double>{}.kernel(operation::add, half.call())));
  static constexpr Operation swish{.name = "swish"};
  Run<float> call;
  call.operand(Numbers({4}, 1)).result({4});
  CHECK_FALSE(bool(CpuDouble{}.kernel(swish, call.call())));
  static constexpr CpuKernels mine[]{{&swish, [](const Call& c) { c.results[0].as<float>()[0] = 7; }}};
  const Kernel kernel = CpuDouble{mine}.kernel(swish, call.call());
  REQUIRE(bool(kernel));
  kernel(call.call());
  CHECK(call.get(0).values[0] == 7);
  CHECK((CpuDouble{mine}.kernel(operation::exp, call.call()) == CpuDouble{}.kernel(operation::exp, call.call())));
  Run<float> mask;  // a mask of real numbers
  mask.operand(Numbers({4}, 1)).operand(Numbers({4}, 1)).operand(Numbers({4}, 1)).result({4});
  CHECK_FALSE(bool(CpuDouble{}.kernel(operation::where, mask.call())));
}
template <class T>
void total(const Call& call) {
  const T* const x = call.operands[0].as<const T>();
  call.results[0].as<double>()[0] = std::accumulate(x, x + call.operands[0].elements(), 0.0);
}
TEST_CASE("a kernel is chosen by its first result, and cannot take an operand for one of another element type") {
  static constexpr Operation summed{.name = "summed"};
  static constexpr CpuKernels by_result[]{{&summed, total<float>, total<double>}},
      by_operand[]{{&summed, nullptr, total<float>}};
  Run<float> call;
  call.operand(Numbers({4}, 1)).result<double>({1});
  CHECK_THROWS_WITH(
      CpuDouble{by_result}.kernel(summed, call.call())(call.call()),
      "a view of f32 is read as f64; read it by span<float>() or as<float>(), a kernel, which is chosen by "
      "its first result, every other view as what View::dtype says");
  CpuDouble{by_operand}.kernel(summed, call.call())(call.call());
  CHECK(call.get(0).values[0] == 4);
  CHECK(call.call().operands[0].as<const std::byte>() == call.call().operands[0].data);
}
#endif
