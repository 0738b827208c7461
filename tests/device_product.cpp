// One product as the CPU's kernels call it, into memory of any content: every edge of the registers, and several tiles
// each way. Beside device_matmul, whose object is linked with other libraries' products, too.
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/device/cpu/product.hpp>

using namespace parallel::internals;

template <class T>
static std::vector<T> numbers(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> result(static_cast<std::size_t>(n));
  for (T& x : result) x = static_cast<T>(random() % 2001) / T{1000} - T{1};
  return result;
}
template <class T>
static T& at(std::vector<T>& numbers, std::int64_t i) {
  return numbers[static_cast<std::size_t>(i)];
}

/// 2 * left[m, k] * right[k, n] over no numbers, and added to numbers, in all layouts; what lies between rows stays.
template <class T>
static void check_product(std::int64_t m, std::int64_t n, std::int64_t k) {
  const T nothing = std::numeric_limits<T>::quiet_NaN();
  const std::int64_t stride = n + 3;
  std::vector<T> left = numbers<T>(m * k, 1), right = numbers<T>(k * n, 2);
  for (const bool left_transposed : {false, true})
    for (const bool right_transposed : {false, true}) {
      std::vector<double> products(static_cast<std::size_t>(m * n), 0);
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t l = 0; l < k; ++l)
          for (std::int64_t j = 0; j < n; ++j)
            at(products, i * n + j) += 2 * static_cast<double>(at(left, left_transposed ? l * m + i : i * k + l)) *
                                       static_cast<double>(at(right, right_transposed ? j * k + l : l * n + j));
      for (const bool add : {false, true}) {
        const auto before = [&](std::int64_t i, std::int64_t j) { return add ? static_cast<T>((i + j) % 8) : nothing; };
        std::vector<T> out(static_cast<std::size_t>(m * stride), nothing);
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) at(out, i * stride + j) = before(i, j);
        cpu::multiply<T>(m, n, k, T{2}, {left.data(), left_transposed ? m : k, left_transposed},
                         {right.data(), right_transposed ? k : n, right_transposed}, {out.data(), stride}, add);
        double furthest = 0;
        bool gaps_are_kept = true;
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < stride; ++j) {
            const double found = static_cast<double>(at(out, i * stride + j));
            if (j >= n) {
              gaps_are_kept = gaps_are_kept && std::isnan(found);
              continue;
            }
            const double expected = at(products, i * n + j) + (add ? static_cast<double>(before(i, j)) : 0);
            const double difference = std::abs(found - expected);
            if (!(difference <= furthest)) furthest = difference;  // also what is no number
          }
        INFO(m, " x ", n, " x ", k, ", left transposed ", left_transposed, ", right ", right_transposed, ", added ",
             add);
        CHECK(furthest <= static_cast<double>(k + 16) * std::numeric_limits<T>::epsilon());
        CHECK(gaps_are_kept);
      }
    }
}

TEST_CASE_TEMPLATE("sums begin at zero whatever lies there, or are added", T, float, double) {
  for (const std::int64_t k : {1, 5})
    for (std::int64_t m = 1; m <= 13; ++m)
      for (std::int64_t n = 1; n <= 75; ++n) check_product<T>(m, n, k);
  for (std::int64_t m = 1; m <= 13; m += 3)
    for (std::int64_t n = 1; n <= 75; n += 7) check_product<T>(m, n, 200);
}
TEST_CASE_TEMPLATE("several tiles of rows, columns and depths", T, float, double) {
  check_product<T>(140, 200, 800);
  check_product<T>(521, 49, 193);
}
