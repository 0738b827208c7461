// float16 against the definition of IEEE 754's binary16: every one of its numbers, and the nearest of them found by
// trying; on the CPU many at once as each alone.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/algebra/halves.hpp>

using parallel::float16;

namespace {

double infinity() { return std::numeric_limits<double>::infinity(); }
/// What the bits mean: a sign, 5 bits of exponent with a bias of 15, 10 of mantissa.
double meaning(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31), mantissa = static_cast<int>(bits & 1023);
  const double size = exponent == 31  ? mantissa == 0 ? infinity() : std::nan("")
                       : exponent == 0 ? std::ldexp(mantissa, -24)
                                      : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}
/// The bits of the nearest number that is not negative, of two the even: the standard rounds as if exponents went on,
/// so what lies behind the last number counts as 2^16.
unsigned nearest(double size) {
  static const std::vector<double> all = [] {
    std::vector<double> numbers;
    for (unsigned bits = 0; bits < 0x7C00; ++bits) numbers.push_back(meaning(bits));
    numbers.push_back(65536);
    return numbers;
  }();
  const auto above = std::lower_bound(all.begin(), all.end(), size);
  if (above == all.end()) return 0x7C00;
  const auto upper = static_cast<unsigned>(above - all.begin());
  if (*above == size) return upper;
  const double to_lower = size - all[upper - 1], to_upper = *above - size;
  return to_lower < to_upper || (to_lower == to_upper && upper % 2 == 1) ? upper - 1 : upper;
}
/// Floats around each number of f16, around the middle between two, of every exponent, and by chance.
std::vector<float> floats() {
  std::vector<float> all;
  const auto around = [&](double x) {
    const auto near = static_cast<float>(x);
    for (const float y : {std::nextafter(near, -HUGE_VALF), near, std::nextafter(near, HUGE_VALF)}) {
      all.push_back(y);
      all.push_back(-y);
    }
  };
  for (unsigned bits = 0; bits < 0x7C00; ++bits) {
    around(meaning(bits));
    around((meaning(bits) + (bits == 0x7BFF ? 65536 : meaning(bits + 1))) / 2);
  }
  for (int exponent = -149; exponent < 128; ++exponent) around(std::ldexp(1.25, exponent));
  std::uint32_t random = 1;
  for (int i = 0; i < 1'000'000; ++i) {
    random = random * 1664525 + 1013904223;
    if (const auto x = std::bit_cast<float>(random); !std::isnan(x)) all.push_back(x);
  }
  all.push_back(HUGE_VALF);
  all.push_back(-HUGE_VALF);
  return all;
}

static_assert(float16(1.5F).bits == 0x3E00 && static_cast<float>(float16(-0.25F)) == -0.25F);

}  // namespace

TEST_CASE("each of its numbers is what its bits mean") {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    float16 x;
    x.bits = static_cast<std::uint16_t>(bits);
    const auto found = static_cast<float>(x);
    if (std::isnan(meaning(bits))) {
      REQUIRE(std::isnan(found));
      REQUIRE(std::isnan(static_cast<float>(float16(found))));
    } else {
      REQUIRE(static_cast<double>(found) == meaning(bits));
      REQUIRE(std::signbit(found) == ((bits & 0x8000) != 0));
      REQUIRE(float16(found).bits == bits);
    }
  }
}

TEST_CASE("a float is rounded to the nearest, of two to the even") {
  for (const float x : floats()) {
    CAPTURE(x);
    REQUIRE(float16(x).bits == (nearest(std::abs(static_cast<double>(x))) | (std::signbit(x) ? 0x8000U : 0U)));
  }
  for (const std::uint32_t bits : {0x7F800001U, 0x7FC00000U, 0xFFFFFFFFU, 0x7F801000U})
    CHECK(std::isnan(static_cast<float>(float16(std::bit_cast<float>(bits)))));
}

TEST_CASE("many at once are converted as each alone") {
  using parallel::DType;
  using namespace parallel::internals;
  std::vector<float16> all(0x10000);
  for (unsigned bits = 0; bits < 0x10000; ++bits) all[bits].bits = static_cast<std::uint16_t>(bits);
  std::vector<float> wide(all.size());
  halves::widen(DType::f16, all.data(), wide.data(), 0x10000);
  for (std::size_t i = 0; i < all.size(); ++i)
    REQUIRE(std::bit_cast<std::uint32_t>(wide[i]) == std::bit_cast<std::uint32_t>(static_cast<float>(all[i])));
  std::vector<float> from = floats();
  from.push_back(std::nanf(""));
  std::vector<float16> rounded(from.size());
  for (const std::size_t n : {from.size(), std::size_t{7}, std::size_t{9}}) {
    halves::round(DType::f16, from.data() + from.size() - n, rounded.data(), static_cast<std::int64_t>(n));
    for (std::size_t i = 0; i < n; ++i) REQUIRE(rounded[i].bits == float16(from[from.size() - n + i]).bits);
  }
}
