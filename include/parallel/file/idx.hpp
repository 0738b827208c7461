// IDX, the format of MNIST's images and labels: http://yann.lecun.com/exdb/mnist/.
#pragma once
#include <string>

#include <parallel/file/file_tensor.hpp>

namespace parallel::internals {

/// A file of bytes in the format IDX, mapped. Throws Failure: missing_input where there is none, bad_data where it is
/// damaged, compressed, or has elements of more than a byte, which IDX has in big endian.
inline FileTensor read_idx(const std::string& file) {
  auto in = std::make_shared<const MappedFile>(file);
  const auto bytes = in->bytes();
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  if (bytes.size() >= 2 && byte(0) == 0x1f && byte(1) == 0x8b)
    throw damaged(file, "it is compressed; say gunzip, and name what that writes");
  if (bytes.size() < 4 || byte(0) != 0 || byte(1) != 0)
    throw damaged(file, "it does not begin with two zeros, as IDX does");
  if (byte(2) != 8 && byte(2) != 9)
    throw damaged(file, "its elements are of IDX's type " + std::to_string(byte(2)) + "; 8 and 9, bytes, are read");
  const std::size_t dimensions = byte(3), begin = 4 + 4 * dimensions;
  if (bytes.size() < begin) throw damaged(file, "it ends within its " + std::to_string(dimensions) + " dimensions");
  std::vector<std::int64_t> shape;
  for (std::size_t d = 0; d < dimensions; ++d) {
    std::int64_t size = 0;
    for (std::size_t b = 0; b < 4; ++b) size = size << 8 | byte(4 + 4 * d + b);
    shape.push_back(size);
  }
  const auto elements = elements_of(shape);
  const std::size_t there = bytes.size() - begin;
  if (!elements || static_cast<std::uint64_t>(*elements) != there)
    throw damaged(file, "its dimensions are of " + (elements ? std::to_string(*elements) : "too many") +
                            " bytes, but behind them are " + std::to_string(there));
  return {{"", byte(2) == 8 ? FileDType::U8 : FileDType::I8, std::move(shape)}, std::move(in), bytes.subspan(begin)};
}

}  // namespace parallel::internals

namespace parallel {
using internals::read_idx;
}  // namespace parallel
