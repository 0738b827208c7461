// Which element of a tensor a sentence is about, and its number.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <parallel/run/misuse.hpp>

namespace parallel::internals {

/// Of an element by its place in memory.
inline std::vector<std::int64_t> place_of(std::int64_t element, const std::vector<std::int64_t>& size) {
  std::vector<std::int64_t> at(size.size());
  for (std::size_t d = size.size(); d-- > 0; element /= size[d]) at[d] = element % size[d];
  return at;
}
/// `[0, 7]`
inline std::string text_of_element(const std::vector<std::int64_t>& at) {
  std::string text = "[";
  for (std::size_t d = 0; d < at.size(); ++d) text += (d > 0 ? ", " : "") + std::to_string(at[d]);
  return text + "]";
}

/// A number for a sentence: what is none has no sign.
inline std::string text_of_number(double x) { return std::isnan(x) ? "nan" : shortest(x); }

}  // namespace parallel::internals
