// Kernels along a dimension against their definitions: where extremes stand, the k largest, sums up to each element, the
// logarithm of a softmax; and what elements that are no numbers give, as in PyTorch.
#include <algorithm>

#include <parallel/operation/argmax.hpp>
#include <parallel/operation/compare.hpp>
#include <parallel/operation/cumulative.hpp>
#include <parallel/operation/larger.hpp>
#include <parallel/operation/loss.hpp>
#include <parallel/operation/power.hpp>
#include <parallel/operation/top_k.hpp>

#include "device.hpp"

using namespace parallel;
using namespace parallel::internals;

namespace {
const double none = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
const std::vector<Sizes> all_sizes{{7}, {6, 37}, {3, 4, 16}, {2, 5, 3, 19}, {4, 1100}, {3000, 3}, {5, 1}, {1, 300, 2}};

Sizes with(Sizes sizes, int dim, std::int64_t extent) {
  sizes[static_cast<std::size_t>(dim)] = extent;
  return sizes;
}
Sizes without(Sizes sizes, int dim) {
  sizes.erase(sizes.begin() + dim);
  return sizes;
}
/// Multiples of a half, so that some are equal; one is no number.
Numbers rounded(const Sizes& sizes, unsigned seed, bool numberless) {
  Numbers x = normal_numbers(sizes, seed);
  for (double& v : x.values) v = std::round(2 * v) / 2;
  if (numberless) x.values[x.values.size() / 2] = none;
  return x;
}
/// Positions of a row, those first that come first: by size, what is no number before all, of equal ones the first.
std::vector<std::int64_t> ordered(const std::vector<double>& row, bool largest) {
  std::vector<std::int64_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
    const double a = row[static_cast<std::size_t>(i)], b = row[static_cast<std::size_t>(j)];
    return std::isnan(a) || std::isnan(b) ? std::isnan(a) && !std::isnan(b) : largest ? a > b : a < b;
  });
  return order;
}
/// Calls f(dimension, row of x, index of its elements but for that dimension) for every row along every dimension.
std::vector<double> row_of(const Numbers& x, Sizes index, int dim) {
  std::vector<double> row;
  auto& at = index[static_cast<std::size_t>(dim)];
  for (at = 0; at < x.sizes[static_cast<std::size_t>(dim)]; ++at) row.push_back(x(index));
  return row;
}
Sizes inserted(Sizes index, int dim) {
  index.insert(index.begin() + dim, 0);
  return index;
}
}  // namespace

TEST_CASE_TEMPLATE("positions of extremes, whole and of parts", T, float, double) {
  for (const Sizes& sizes : all_sizes)
    for (int dim = 0; dim < static_cast<int>(sizes.size()); ++dim)
      for (const bool numberless : {false, true})
        for (const bool largest : {true, false}) {
          const Numbers x = rounded(sizes, 1, numberless);
          const Sizes kept = without(sizes, dim);
          const Numbers first = defined(kept, [&](const Sizes& i) {
            return static_cast<double>(ordered(row_of(x, inserted(i, dim), dim), largest)[0]);
          });
          CAPTURE(dim);
          check_near(Run<T>().operand(x).template result<int>(kept).ints({dim}).run(largest ? operation::argmax
                                                                                            : operation::argmin),
                     first, 0);
          const Numbers extreme =
              Run<T>().operand(x).result(kept).ints({dim}).run(largest ? operation::local_max : operation::local_min);
          Numbers found(kept, -infinity);
          for (const Box& part : split(sizes, dim, 3)) {
            const Numbers own =
                Run<T>().operand(x, part).operand(extreme).template result<double>(kept).ints({dim}).run(
                    operation::first_equal);
            for (std::size_t i = 0; i < own.values.size(); ++i)
              found.values[i] = std::max(found.values[i], own.values[i]);
          }
          check_near(Run<T>().template operand<double>(found).template result<int>(kept).run(operation::position_of),
                     first, 0);
        }
}
TEST_CASE_TEMPLATE("the k largest", T, float, double) {
  for (const Sizes& sizes : all_sizes)
    for (int dim = 0; dim < static_cast<int>(sizes.size()); ++dim)
      for (const std::int64_t k : {1, 3}) {
        if (k > sizes[static_cast<std::size_t>(dim)]) continue;
        const Numbers x = rounded(sizes, 2, true);
        const Sizes few = with(sizes, dim, k);
        const Numbers positions =
            Run<T>().operand(x).template result<int>(few).ints({dim, k}).run(operation::top_k_positions);
        check_near(positions,
                   defined(few,
                           [&](Sizes i) {
                             const auto place = static_cast<std::size_t>(i[static_cast<std::size_t>(dim)]);
                             return static_cast<double>(ordered(row_of(x, i, dim), true)[place]);
                           }),
                   0);
        const auto at = [&](Sizes i) {
          const auto d = static_cast<std::size_t>(dim);
          i[d] = static_cast<std::int64_t>(positions(i));
          return i;
        };
        check_near(Run<T>().operand(x).integers(positions).result(few).ints({dim}).run(operation::chosen),
                   defined(few, [&](const Sizes& i) { return x(at(i)); }), 0);
        const Numbers g = normal_numbers(few, 3);
        Numbers back(sizes);
        each_index(few, [&](const Sizes& i) { back(at(i)) = g(i); });
        check_near(Run<T>().integers(positions).operand(g).result(sizes).ints({dim}).run(operation::chosen_derivative),
                   back, 0);
      }
}
TEST_CASE_TEMPLATE("sums up to each element", T, float, double) {
  for (const Sizes& sizes : all_sizes)
    for (int dim = 0; dim < static_cast<int>(sizes.size()); ++dim)
      for (const bool from_end : {false, true}) {
        const Numbers x = normal_numbers(sizes, 1);
        check_near(Run<T>().operand(x).result(sizes).ints({dim, from_end}).run(operation::cumulative_sum),
                   defined(sizes,
                           [&](const Sizes& i) {
                             const std::vector<double> row = row_of(x, i, dim);
                             const auto here = row.begin() + i[static_cast<std::size_t>(dim)];
                             return from_end ? std::accumulate(here, row.end(), 0.0)
                                             : std::accumulate(row.begin(), here + 1, 0.0);
                           }),
                   tolerance<T>);
      }
  const Numbers counted = whole_numbers({3, 40}, 1, 100);
  check_near(Run<T>().integers(counted).template result<int>({3, 40}).ints({1, 0}).run(operation::cumulative_sum),
             defined({3, 40},
                     [&](const Sizes& i) {
                       double sum = 0;
                       for (std::int64_t j = 0; j <= i[1]; ++j) sum += counted({i[0], j});
                       return sum;
                     }),
             0);
}
TEST_CASE_TEMPLATE("the logarithm of a softmax of large numbers, and its gradient", T, float, double) {
  for (const int dim : {0, 1}) {
    const Sizes sizes{33, 70}, kept{dim == 0 ? 70 : 33};
    const Numbers x = normal_numbers(sizes, 1, 60), g = normal_numbers(sizes, 2);
    const auto along = [&](const Numbers& of, auto f) {
      return defined(kept, [&](const Sizes& i) { return f(row_of(of, inserted(i, dim), dim)); });
    };
    const auto at = [&](const Sizes& i) { return Sizes{i[static_cast<std::size_t>(1 - dim)]}; };
    const Numbers largest = along(x, [](const auto& row) { return *std::max_element(row.begin(), row.end()); });
    const Numbers e = defined(sizes, [&](const Sizes& i) { return std::exp(x(i) - largest(at(i))); });
    const Numbers sum = along(e, [](const auto& row) { return std::accumulate(row.begin(), row.end(), 0.0); });
    const Numbers y = defined(sizes, [&](const Sizes& i) { return x(i) - largest(at(i)) - std::log(sum(at(i))); });
    check_near(Run<T>().operand(x).operand(largest).operand(sum).result(sizes).ints({dim}).run(
                   operation::normalized_logarithm),
               y, tolerance<T>);
    const Numbers total = along(g, [](const auto& row) { return std::accumulate(row.begin(), row.end(), 0.0); });
    check_near(
        Run<T>().operand(y).operand(g).operand(total).result(sizes).ints({dim}).run(operation::log_softmax_derivative),
        defined(sizes, [&](const Sizes& i) { return g(i) - std::exp(y(i)) * total(at(i)); }),
        std::is_same_v<T, float> ? 2e-5 : 1e-12);
  }
}
TEST_CASE_TEMPLATE("what is no number, infinite or at a corner is as in PyTorch", T, float, double) {
  const Sizes n{8};
  const Numbers x(n, {none, 0.0, -0.0, 2, -2, infinity, -infinity, none}), y(n, {0, 0, 0, none, 3, 1, 1, none}),
      g(n, 3);
  const auto check = [&](const Operation& operation, const std::vector<double>& expected, double first = 0,
                         double second = 0) {
    CAPTURE(operation.name);
    check_near(Run<T>().operand(x).result(n).reals(first, second).run(operation), Numbers(n, expected), 1e-6);
  };
  const auto check_derivative = [&](const Operation& operation, const std::vector<double>& expected, double first = 0,
                                    double second = 0) {
    CAPTURE(operation.name);
    check_near(Run<T>().operand(x).operand(g).result(n).reals(first, second).run(operation), Numbers(n, expected),
               1e-6);
  };
  const auto check_two = [&](const Operation& operation, const std::vector<double>& expected) {
    CAPTURE(operation.name);
    check_near(Run<T>().operand(x).operand(y).result(n).run(operation), Numbers(n, expected), 1e-6);
  };
  const auto check_two_derivative = [&](const Operation& operation, const std::vector<double>& expected) {
    CAPTURE(operation.name);
    check_near(Run<T>().operand(x).operand(y).operand(g).result(n).run(operation), Numbers(n, expected), 1e-6);
  };
  const auto check_mask = [&](const Operation& operation, const std::vector<double>& expected) {
    CAPTURE(operation.name);
    check_near(Run<T>().operand(x).operand(y).template result<int>(n).run(operation), Numbers(n, expected), 0);
  };
  const double ln2 = std::log(2.0);
  check(operation::abs, {none, 0, 0, 2, 2, infinity, infinity, none});
  check_derivative(operation::abs_derivative, {0, 0, 0, 3, -3, 3, -3, 0});
  check(operation::sign, {0, 0, 0, 1, -1, 1, -1, 0});
  check(operation::clamp, {none, 0, 0, 1, -2, 1, -2, none}, -2, 1);
  check(operation::clamp, {none, -5, -5, -5, -5, -5, -5, none}, 1, -5);
  check_derivative(operation::clamp_derivative, {0, 3, 3, 0, 0, 0, 0, 0}, -2, 1);
  check(operation::huber, {none, 0, 0, 0.875, 0.875, infinity, infinity, none}, 0.5);
  check_derivative(operation::huber_derivative, {none, 0, 0, 1.5, -1.5, 1.5, -1.5, none}, 0.5);
  check(operation::softplus, {none, ln2, ln2, std::log1p(std::exp(2)), std::log1p(std::exp(-2)), infinity, 0, none});
  check(operation::sin, {none, 0, 0, std::sin(2), -std::sin(2), none, none, none});
  check_two(operation::larger, {none, 0, 0, none, 3, infinity, 1, none});
  check_two(operation::smaller, {none, 0, 0, none, -2, 1, -infinity, none});
  check_two_derivative(operation::larger_derivative, {3, 1.5, 1.5, 3, 0, 3, 0, 3});
  check_two_derivative(operation::smaller_derivative, {3, 1.5, 1.5, 3, 3, 0, 3, 3});
  check_two(operation::pow, {1, 1, 1, none, -8, infinity, -infinity, none});
  check_two_derivative(operation::pow_derivative, {0, 0, 0, none, 36, 3, 3, none});
  check_two_derivative(operation::pow_exponent_derivative, {none, 0, 0, none, none, infinity, none, none});
  check_mask(operation::equal, {0, 1, 1, 0, 0, 0, 0, 0});
  check_mask(operation::not_equal, {1, 0, 0, 1, 1, 1, 1, 1});
  check_mask(operation::less, {0, 0, 0, 0, 1, 0, 1, 0});
  check_mask(operation::less_equal, {0, 1, 1, 0, 1, 0, 1, 0});
  check_mask(operation::greater, {0, 0, 0, 0, 0, 1, 0, 0});
  check_mask(operation::greater_equal, {0, 1, 1, 0, 0, 1, 0, 0});

  const Numbers logits({4}, {200, -200, 200, -200}), targets({4}, {1, 0, 0, 1});
  check_near(Run<T>().operand(logits).operand(targets).result({4}).run(operation::binary_cross_entropy),
             Numbers({4}, {0, 0, 200, 200}), 1e-6);
  check_near(Run<T>()
                 .operand(logits)
                 .operand(targets)
                 .operand(Numbers({4}, 1))
                 .result({4})
                 .run(operation::binary_cross_entropy_derivative),
             Numbers({4}, {0, 0, 1, -1}), 1e-6);
}
