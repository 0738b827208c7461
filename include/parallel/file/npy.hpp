// NumPy's .npy: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Versions 1.0, 2.0 and 3.0.
#pragma once
#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <parallel/file/file_tensor.hpp>
#include <parallel/file/new_file.hpp>

namespace parallel::internals {

/// The format in numbers.
namespace npy {
inline constexpr std::string_view magic = "\x93NUMPY";
inline constexpr std::size_t most_header = 1 << 20;  ///< bytes; the format has no limit
inline constexpr std::size_t most_dimensions = 64;   ///< as NumPy's

struct Spelling {
  FileDType dtype;
  std::string_view descr;
};
inline constexpr Spelling spellings[] = {{FileDType::BOOL, "|b1"}, {FileDType::U8, "|u1"},  {FileDType::I8, "|i1"},
                                         {FileDType::I16, "<i2"},  {FileDType::U16, "<u2"}, {FileDType::F16, "<f2"},
                                         {FileDType::I32, "<i4"},  {FileDType::U32, "<u4"}, {FileDType::F32, "<f4"},
                                         {FileDType::C64, "<c8"},  {FileDType::F64, "<f8"}, {FileDType::I64, "<i8"},
                                         {FileDType::U64, "<u8"}};

/// The header, a dictionary of Python's, word by word. Only what NumPy writes is read: nothing of Python is executed.
class Header {
 public:
  Header(const std::string& file, std::string_view text) : file_(file), text_(text) {
    expect('{');
    while (!at('}')) {
      const std::string_view key = quoted();
      expect(':');
      const auto known = std::find(std::begin(keys), std::end(keys), key);
      if (known == std::end(keys)) throw refused("what follows one of descr, fortran_order and shape");
      if (std::exchange(seen_[known - keys], true))
        throw damaged(file_, "its header has its " + std::string(key) + " twice");
      switch (known - keys) {
        case 0: descr_ = quoted(); break;
        case 1: fortran_ = truth(); break;
        default: read_shape();
      }
      if (!at('}')) expect(',');
    }
    expect('}');
    if (!text_.empty()) throw refused("nothing behind the }");
    for (std::size_t k = 0; k < 3; ++k)
      if (!seen_[k]) throw damaged(file_, "its header has no " + std::string(keys[k]));
  }
  FileDType dtype() const {
    for (const Spelling& s : spellings)
      if (s.descr == descr_) return s.dtype;
    throw damaged(file_, "its elements are '" + std::string(descr_.substr(0, 40)) +
                             "', which is not read; in Python, save array.astype('<f4'), or another of b1 and <i, <u, "
                             "<f, <c8");
  }
  bool fortran() const { return fortran_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }

 private:
  static constexpr std::string_view keys[] = {"descr", "fortran_order", "shape"};

  Failure refused(const std::string& wanted) const {
    return damaged(file_, "its header has " +
                              (text_.empty() ? "nothing more" : "'" + std::string(text_.substr(0, 20)) + "'") +
                              " where " + wanted + " is expected");
  }
  void skip_spaces() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  bool at(char c) {
    skip_spaces();
    return text_.starts_with(c);
  }
  void expect(char c) {
    if (!at(c)) throw refused(std::string(1, c));
    text_.remove_prefix(1);
    skip_spaces();
  }
  std::string_view quoted() {
    const char quote = at('"') ? '"' : '\'';
    expect(quote);
    const std::size_t end = text_.find(quote);
    if (end == std::string_view::npos) throw refused("a word in quotes");
    const std::string_view word = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return word;
  }
  bool truth() {
    skip_spaces();
    for (const std::string_view word : {"True", "False"})
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return word == "True";
      }
    throw refused("True or False");
  }
  void read_shape() {
    expect('(');
    while (!at(')')) {
      std::int64_t size = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (error != std::errc{} || size < 0 || shape_.size() == most_dimensions)
        throw refused("a dimension, or one fewer,");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      if (text_.starts_with('L')) text_.remove_prefix(1);  // as Python 2 wrote
      shape_.push_back(size);
      if (!at(')')) expect(',');
    }
    expect(')');
  }

  const std::string& file_;
  std::string_view text_;
  std::string_view descr_{};
  bool fortran_ = false, seen_[3] = {};
  std::vector<std::int64_t> shape_{};
};
/// An array that lies in a file. `file`: for sentences.
inline FileTensor read(const std::string& file, std::shared_ptr<const MappedFile> in,
                       std::span<const std::byte> bytes) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (all.size() < 10 || !all.starts_with(magic)) throw damaged(file, "it does not begin as .npy does");
  const int version = static_cast<unsigned char>(all[6]);
  if (version < 1 || version > 3 || all[7] != 0)
    throw damaged(file, "it is .npy of version " + std::to_string(version) + "." +
                            std::to_string(static_cast<unsigned char>(all[7])) + "; 1.0, 2.0 and 3.0 are read");
  const std::size_t begin = version == 1 ? 10 : 12;
  if (all.size() < begin) throw damaged(file, "it ends within the length of its header");
  const std::size_t length = version == 1 ? number_at<std::uint16_t>(bytes, 8) : number_at<std::uint32_t>(bytes, 8);
  if (length > all.size() - begin || length > most_header)
    throw damaged(file, "its header is said to have " + std::to_string(length) + " bytes, but " +
                            (length > all.size() - begin ? "the file ends before"
                                                         : std::to_string(most_header) + " are the most"));
  const Header header(file, all.substr(begin, length));
  const FileDType dtype = header.dtype();
  const auto elements = elements_of(header.shape());
  const auto size = elements ? bytes_of(dtype, *elements) : std::nullopt;
  const std::size_t there = all.size() - begin - length;
  if (!size) throw damaged(file, "it has a shape of more elements than can be counted");
  if (static_cast<std::uint64_t>(*size) != there)
    throw damaged(file, "its shape has " + std::to_string(*size) + " bytes, but behind its header are " +
                            std::to_string(there) + "; it is not all there, or has more: write or copy it again");
  if (header.fortran() && header.shape().size() > 1)
    throw damaged(file, "its array lies column by column; in Python, save numpy.ascontiguousarray(array)");
  return {{"", dtype, header.shape()}, std::move(in), bytes.subspan(begin + length)};
}
inline std::string_view descr_of(FileDType dtype) {
  for (const Spelling& s : spellings)
    if (s.dtype == dtype) return s.descr;
  return {};
}
/// A shape as Python has it: (), (3,), (2, 3).
inline std::string tuple_of(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (std::size_t d = 0; d < shape.size(); ++d)
    text += std::to_string(shape[d]) + (d + 1 < shape.size() ? ", " : shape.size() == 1 ? "," : "");
  return text + ")";
}
/// What stands before the elements, as NumPy writes it.
inline std::string written(FileDType dtype, const std::vector<std::int64_t>& shape) {
  std::string header = "{'descr': '" + std::string(descr_of(dtype)) + "', 'fortran_order': False, 'shape': ";
  header += tuple_of(shape) + ", }";
  // Room to grow: NumPy lets the first dimension be rewritten with up to 21 digits in place.
  if (!shape.empty()) header.append(21 - std::to_string(shape[0]).size(), ' ');
  header.append(64 - (11 + header.size()) % 64, ' ');
  header += '\n';
  return std::string(magic) + '\1' + '\0' + little_endian(static_cast<std::uint16_t>(header.size())) + header;
}
}  // namespace npy

/// A file that numpy.save wrote: its elements, mapped. Throws Failure: missing_input where there is none, bad_data
/// where it is damaged, has elements of big endian or of no number, or an array that lies column by column (Fortran's
/// order): numpy.ascontiguousarray brings that into order.
inline FileTensor read_npy(const std::string& file) {
  const auto in = std::make_shared<const MappedFile>(file);
  return npy::read(file, in, in->bytes());
}

/// Writes FILE as numpy.save does, byte for byte, whole or not at all. `elements`: what has data() and size(), row by
/// row. Throws Failure: io where it cannot be written, bad_data where `elements` are not as many as the shape's.
template <class Elements>
void write_npy(const std::string& file, const std::vector<std::int64_t>& shape, const Elements& elements) {
  using T = std::remove_cvref_t<decltype(*std::data(elements))>;
  constexpr FileDType dtype = file_dtype_of<T>;
  static_assert(dtype != FileDType::BF16, "parallel: .npy has no bfloat16; convert to float, or write safetensors");
  if (elements_of(shape) != static_cast<std::int64_t>(std::size(elements)))
    throw damaged(file, "the shape that is to be written is " + text_of(shape) + ", but " +
                            std::to_string(std::size(elements)) + " elements were given; give as many as it has");
  NewFile out(file, file);
  const std::string header = npy::written(dtype, shape);
  out.write(header.data(), header.size());
  out.write(std::data(elements), std::size(elements) * sizeof(T));
  out.put_in_place();
}

}  // namespace parallel::internals

namespace parallel {
using internals::read_npy;
using internals::write_npy;
}  // namespace parallel
