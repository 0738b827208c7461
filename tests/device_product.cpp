// One product as the CPU's kernels call it, packed or as it lies, into memory of any content: every edge of the
// registers, and several tiles each way. Beside device_matmul, whose object is linked with other libraries' products,
// too.
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/device/cpu/product.hpp>
#include <parallel/device/cpu/product_in_cache.hpp>

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
/// `in_cache`: as it lies, with a right operand that is not transposed.
template <class T>
static void check_product(std::int64_t m, std::int64_t n, std::int64_t k, bool in_cache) {
  const T nothing = std::numeric_limits<T>::quiet_NaN();
  const std::int64_t stride = n + 3;
  std::vector<T> left = numbers<T>(m * k, 1), right = numbers<T>(k * n, 2);
  for (const bool left_transposed : {false, true})
    for (const bool right_transposed : {false, true}) {
      if (in_cache && right_transposed) continue;
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
        const cpu::Matrix<const T> by_left{left.data(), left_transposed ? m : k, left_transposed},
            by_right{right.data(), right_transposed ? k : n, right_transposed};
        if (in_cache)
          cpu::multiply_in_cache<T>(m, n, k, T{2}, by_left, by_right, {out.data(), stride}, add);
        else
          cpu::multiply<T>(m, n, k, T{2}, by_left, by_right, {out.data(), stride}, add);
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
             add, ", in the cache ", in_cache);
        CHECK(furthest <= static_cast<double>(k + 16) * std::numeric_limits<T>::epsilon());
        CHECK(gaps_are_kept);
      }
    }
}

TEST_CASE_TEMPLATE("sums begin at zero whatever lies there, or are added", T, float, double) {
  for (const bool in_cache : {false, true}) {
    for (const std::int64_t k : {1, 5})
      for (std::int64_t m = 1; m <= 13; ++m)
        for (std::int64_t n = 1; n <= 75; ++n) check_product<T>(m, n, k, in_cache);
    for (std::int64_t m = 1; m <= 13; m += 3)
      for (std::int64_t n = 1; n <= 75; n += 7) check_product<T>(m, n, 200, in_cache);
  }
}
TEST_CASE_TEMPLATE("several tiles of rows, columns and depths", T, float, double) {
  for (const bool in_cache : {false, true}) {
    check_product<T>(140, 200, 800, in_cache);
    check_product<T>(521, 49, 193, in_cache);
  }
}
TEST_CASE_TEMPLATE("a product of nothing is zero, or adds nothing", T, float, double) {
  for (const bool add : {false, true}) {
    const std::vector<T> none(16);
    std::vector<T> out(5 * 7, T{3});
    cpu::multiply_in_cache<T>(5, 7, 0, T{2}, {none.data(), 0}, {none.data(), 7}, {out.data(), 7}, add);
    CHECK(out == std::vector<T>(5 * 7, add ? T{3} : T{0}));
  }
}
TEST_CASE_TEMPLATE("a row has the same bits whatever rows stand beside it, and is transposed", T, float, double) {
  constexpr std::int64_t m = 37, n = 83, k = 300;
  const std::vector<T> left = numbers<T>(m * k, 1), right = numbers<T>(k * n, 2);
  std::vector<T> all(m * n), one(n), turned(k * m), back(m * k);
  cpu::multiply_in_cache<T>(m, n, k, T{2}, {left.data(), k}, {right.data(), n}, {all.data(), n}, false);
  for (std::int64_t i = 0; i < m; ++i) {
    cpu::multiply_in_cache<T>(1, n, k, T{2}, {left.data() + i * k, k}, {right.data(), n}, {one.data(), n}, false);
    CHECK(std::equal(one.begin(), one.end(), all.begin() + i * n));
  }
  cpu::transpose(left.data(), k, turned.data(), m, m, k);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t l = 0; l < k; ++l) REQUIRE(at(turned, l * m + i) == left[static_cast<std::size_t>(i * k + l)]);
  cpu::transpose(turned.data(), m, back.data(), k, k, m);
  CHECK(back == left);
}
