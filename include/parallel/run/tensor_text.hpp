// The numbers of a tensor as text, in brackets by dimensions; of long dimensions the beginning and the end.
#pragma once
#include <cstdio>
#include <span>
#include <string>

#include <parallel/algebra/type.hpp>
#include <parallel/meta/bfloat16.hpp>
#include <parallel/meta/float16.hpp>

namespace parallel::internals {

namespace tensor_text {
inline constexpr std::int64_t most = 1000, at_ends = 3;  ///< as PyTorch's

inline std::string number(DType dtype, const void* data, std::int64_t i) {
  char digits[32];
  switch (dtype) {
    case DType::i32: return std::to_string(static_cast<const int*>(data)[i]);
    case DType::f64: std::snprintf(digits, sizeof digits, "%.9g", static_cast<const double*>(data)[i]); break;
    case DType::bf16:
      std::snprintf(digits, sizeof digits, "%.3g",
                    static_cast<double>(static_cast<float>(static_cast<const bfloat16*>(data)[i])));
      break;
    case DType::f16:
      std::snprintf(digits, sizeof digits, "%.4g",
                    static_cast<double>(static_cast<float>(static_cast<const float16*>(data)[i])));
      break;
    default:
      std::snprintf(digits, sizeof digits, "%.5g", static_cast<double>(static_cast<const float*>(data)[i]));
      break;
  }
  return digits;
}

inline void write(std::string& to, DType dtype, const void* data, std::span<const std::int64_t> extents,
                  std::int64_t first, std::size_t dim, bool shortened) {
  if (dim == extents.size()) {
    to += number(dtype, data, first);
    return;
  }
  std::int64_t step = 1;
  for (std::size_t d = dim + 1; d < extents.size(); ++d) step *= extents[d];
  const std::int64_t n = extents[dim];
  const bool last = dim + 1 == extents.size();
  const std::string between = last ? ", " : ",\n" + std::string(dim + 1, ' ');
  to += '[';
  for (std::int64_t i = 0; i < n; ++i) {
    if (i > 0) to += between;
    if (shortened && n > 2 * at_ends && i == at_ends) {
      to += "..." + between;
      i = n - at_ends;
    }
    write(to, dtype, data, extents, first + i * step, dim + 1, shortened);
  }
  to += ']';
}
}  // namespace tensor_text

/// Row-major numbers of these extents.
inline std::string text_of_numbers(DType dtype, const void* data, std::span<const std::int64_t> extents) {
  std::int64_t elements = 1;
  for (const std::int64_t n : extents) elements *= n;
  std::string result;
  tensor_text::write(result, dtype, data, extents, 0, 0, elements > tensor_text::most);
  return result;
}

}  // namespace parallel::internals
