// How numbers are drawn, several at once; draw.hpp says what. They are made of sums, products, one quotient and moves
// of bits, in one order, and of nothing from a library of mathematics.
#pragma once
#include <algorithm>
#include <bit>
#include <numbers>

#include <parallel/device/draw.hpp>

namespace parallel::internals {

namespace drawing {
/// A whole number below 2^52 as a double, by its bits.
inline double exact(std::uint64_t n) { return std::bit_cast<double>(n | 0x4330000000000000) - 0x1p52; }
/// As random_fraction.
inline double fraction(std::uint64_t high, std::uint64_t low) {
  return ((exact(high) * 0x1p21 + exact(low >> 11)) + 0.5) * 0x1p-53;
}
/// Of a number in (0, 1], by the series of fdlibm's __ieee754_log.
inline double log(double x) {
  const std::uint64_t shifted = std::bit_cast<std::uint64_t>(x) + (0x3ff0000000000000 - 0x3fe6a09e00000000);
  const double exponent = exact(shifted >> 52) - 1023,
               f = std::bit_cast<double>((shifted & 0x000fffffffffffff) + 0x3fe6a09e00000000) - 1, half = 0.5 * f * f,
               s = f / (2 + f), z = s * s, w = z * z;
  const double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01)),
               odd =
                   z * (6.666666666666735130e-01 +
                        w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  return exponent * 6.93147180369123816490e-01 -
         ((half - (s * (half + (even + odd)) + exponent * 1.90821492927058770002e-10)) - f);
}
/// Of a number from 0 on that is no larger than 2^1000, by Newton's method for its inverse.
inline double root(double x) {
  double y = std::bit_cast<double>(0x5fe6eb50c7b537a9 - (std::bit_cast<std::uint64_t>(x) >> 1));
  for (int i = 0; i < 4; ++i) y = y * (1.5 - (0.5 * x) * (y * y));
  return x * y;
}
/// Of 2 pi times the fraction: a quarter of the circle, and by fdlibm's series what is left of it.
inline double cosine(std::uint64_t high, std::uint64_t low) {
  const std::uint64_t quarter = (high + (std::uint64_t{1} << 29)) >> 30;
  const double x = 2 * std::numbers::pi * (fraction(high, low) - exact(quarter) * 0.25), z = x * x, half = 0.5 * z;
  const double sine = x + x * z *
                              (-1.66666666666666324348e-01 +
                               z * (8.33333333332248946124e-03 +
                                    z * (-1.98412698298579493134e-04 +
                                         z * (2.75573137070700676789e-06 +
                                              z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
  const double terms = z * (4.16666666666666019037e-02 +
                            z * (-1.38888888888741095749e-03 +
                                 z * (2.48015872894767294178e-05 +
                                      z * (-2.75573143513906633035e-07 +
                                           z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)))));
  const double cosine = (1 - half) + (((1 - (1 - half)) - half) + z * terms);
  const std::uint64_t other = std::uint64_t{0} - (quarter & 1);
  return std::bit_cast<double>(
      ((std::bit_cast<std::uint64_t>(sine) & other) | (std::bit_cast<std::uint64_t>(cosine) & ~other)) ^
      (((quarter + 1) & 2) << 62));
}
/// The steps of a counter wait for each other: of fewer at once processors wait, too.
inline constexpr int at_once = 64;
using Words = CounterColumns<at_once>;
inline void words(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, Words& all) {
  const auto halves = [](std::uint64_t n) {
    return std::array{static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(n >> 32)};
  };
  philox<at_once>(all, first, halves(stream), halves(seed));
}
inline void uniforms(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, double (&to)[at_once]) {
  Words all;
  words(seed, stream, first, all);
  for (int i = 0; i < at_once; ++i) to[i] = fraction(all[0][i], all[1][i]);
}
/// Normal with mean 0 and deviation 1 (Box and Muller, 1958), step by step: the constants of one are in registers.
inline void normals(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, double (&to)[at_once]) {
  Words all;
  words(seed, stream, first, all);
  for (int i = 0; i < at_once; ++i) to[i] = fraction(all[0][i], all[1][i]);
  for (int i = 0; i < at_once; ++i) to[i] = -2 * log(to[i]);
  for (int i = 0; i < at_once; ++i) to[i] = root(to[i]);
  for (int i = 0; i < at_once; ++i) to[i] *= cosine(all[2][i], all[3][i]);
}
template <class T>
void draw(const Draw& what, std::uint64_t first, std::int64_t n, T* to) {
  for (std::int64_t i = 0; i < n; i += at_once) {
    double drawn[at_once];
    (what.normal ? normals : uniforms)(what.seed, what.stream, first + static_cast<std::uint64_t>(i), drawn);
    T numbers[at_once];
    for (int k = 0; k < at_once; ++k)
      numbers[k] = static_cast<T>(what.scale * (what.normal ? drawn[k] : 2 * drawn[k] - 1));
    std::copy_n(numbers, std::min<std::int64_t>(at_once, n - i), to + i);
  }
}
}  // namespace drawing

PARALLEL_INLINE void draw(const Draw& what, std::uint64_t first, std::int64_t n, float* to) {
  drawing::draw(what, first, n, to);
}
PARALLEL_INLINE void draw(const Draw& what, std::uint64_t first, std::int64_t n, double* to) {
  drawing::draw(what, first, n, to);
}
PARALLEL_INLINE double random_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  double drawn[drawing::at_once];
  drawing::normals(seed, stream, index, drawn);
  return drawn[0];
}

}  // namespace parallel::internals
