// Numbers and nothing else, as fwrite, numpy.ndarray.tofile and numpy.memmap have them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <parallel/file/file_tensor.hpp>

namespace parallel::internals {

/// A file of Ts, row by row, mapped; what they are and how they lie the file does not say. Throws Failure:
/// missing_input where there is none, bad_data where it has not the bytes of that shape.
template <class T>
FileTensor read_raw(const std::string& file, std::vector<std::int64_t> shape) {
  auto in = std::make_shared<const MappedFile>(file);
  const auto elements = elements_of(shape);
  const auto size = elements ? bytes_of(file_dtype_of<T>, *elements) : std::nullopt;
  const auto bytes = in->bytes();
  if (!size || static_cast<std::uint64_t>(*size) != bytes.size())
    throw damaged(file, "the shape that was given has " + (size ? std::to_string(*size) : "too many") +
                            " bytes, but the file has " + std::to_string(bytes.size()));
  return {{"", file_dtype_of<T>, std::move(shape)}, std::move(in), bytes};
}

}  // namespace parallel::internals

namespace parallel {
using internals::read_raw;
}  // namespace parallel
