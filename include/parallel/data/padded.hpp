// Extents that ranks do not divide, filled up to some that they do.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <parallel/algebra/shape.hpp>
#include <parallel/meta/failure.hpp>

namespace parallel {

/// An extent that is filled up: `constexpr Padded context = padded(1000, 16);`. As a Dim it is all of it:
/// `Shape<8, context / sequence>`.
struct Padded {
  std::int64_t size = 1;  ///< with the padding
  std::int64_t of = 1;    ///< what counts
  constexpr operator Dim() const { return size; }
  constexpr std::int64_t added() const { return size - of; }
  /// Of all that is computed for it.
  constexpr double share() const { return static_cast<double>(added()) / static_cast<double>(size); }
};
/// The least extent from `size` on that so many ranks divide; in zigzag order say twice as many. Throws Failure
/// (configuration) where either is below 1.
constexpr Padded padded(std::int64_t size, std::int64_t ranks) {
  if (size < 1 || ranks < 1)
    throw Failure("an extent of " + std::to_string(size) + " is padded for " + std::to_string(ranks) +
                      " ranks; both are at least 1",
                  exit_code::configuration);
  return {(size + ranks - 1) / ranks * ranks, size};
}
/// numbers[..., what counts] -> [..., with the padding]: the last dimension is filled up, `with` behind each row; to
/// fill up another one, count as one row all that it and those behind it hold. Throws Failure(bad_data) where they
/// are no whole rows.
template <class T>
std::vector<T> padded(const std::vector<T>& numbers, const Padded& extent, std::type_identity_t<T> with) {
  const auto row = static_cast<std::size_t>(extent.of);
  if (numbers.size() % row != 0)
    throw Failure(std::to_string(numbers.size()) + " numbers are padded, which are no whole rows of " +
                      std::to_string(extent.of) +
                      "; give those of whole rows, or an extent whose `of` is a row's numbers",
                  exit_code::bad_data);
  std::vector<T> all(numbers.size() / row * static_cast<std::size_t>(extent.size), with);
  for (std::size_t r = 0; r < numbers.size() / row; ++r)
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(r * row), row,
                all.begin() + static_cast<std::ptrdiff_t>(r * static_cast<std::size_t>(extent.size)));
  return all;
}

}  // namespace parallel
