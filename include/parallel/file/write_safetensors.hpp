// Writing safetensors, tensor by tensor, byte for byte as Python's and Rust's libraries do. Needs nlohmann-json.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <parallel/file/file_tensor.hpp>
#include <parallel/file/new_file.hpp>

namespace parallel::internals {

/// Takes the next bytes of a tensor that is written.
class FileSink {
 public:
  FileSink(NewFile& file, FileDType dtype, std::int64_t left) : file_(file), dtype_(dtype), left_(left) {}
  /// Elements of the tensor's type, or std::bytes, row by row: a whole tensor, or a part and then the next. What has
  /// data() and size() will do.
  template <class Elements>
  void operator()(const Elements& elements) {
    using T = std::remove_cvref_t<decltype(*std::data(elements))>;
    if constexpr (!std::is_same_v<T, std::byte>) other_type_ |= !holds<T>(dtype_);
    const auto bytes = static_cast<std::int64_t>(std::size(elements) * sizeof(T));
    left_ -= bytes;
    if (left_ >= 0) file_.write(std::data(elements), static_cast<std::size_t>(bytes));
  }
  std::int64_t left() const { return left_; }  ///< bytes that the tensor still lacks
  bool other_type() const { return other_type_; }

 private:
  NewFile& file_;
  FileDType dtype_;
  std::int64_t left_;
  bool other_type_ = false;
};

inline Failure not_written(const std::string& file, const FileEntry& tensor, const std::string& why) {
  return damaged(file, "the tensor '" + tensor.name + "', which is to be written, " + why);
}

/// The header of a file of these tensors, sorted, in the format's own spelling; `file` is for sentences. `ends` becomes
/// where each tensor ends.
inline std::string safetensors_header(const std::string& file, std::span<const FileEntry> tensors,
                                      const std::map<std::string, std::string>& metadata,
                                      std::vector<std::int64_t>& ends) {
  const auto quoted = [&](const std::string& text) {
    try {
      return nlohmann::json(text).dump();
    } catch (const nlohmann::json::exception&) {
      throw damaged(file, "a name or a text that is to be written is no UTF-8");
    }
  };
  std::string header;
  const auto next = [&] { header += header.empty() ? '{' : ','; };
  if (!metadata.empty()) {
    next();
    header += "\"__metadata__\":";
    char before = '{';
    for (const auto& [key, text] : metadata) header += std::exchange(before, ',') + quoted(key) + ":" + quoted(text);
    header += '}';
  }
  for (const FileEntry& t : tensors) {
    const auto elements = elements_of(t.shape);
    const auto size = elements ? bytes_of(t.dtype, *elements) : std::nullopt;
    const std::int64_t begin = ends.empty() ? 0 : ends.back();
    std::int64_t end = 0;
    if (!size || __builtin_add_overflow(begin, *size, &end)) throw not_written(file, t, "has a shape that is none");
    if (t.name == "__metadata__") throw not_written(file, t, "has a name that safetensors keep for texts");
    ends.push_back(end);
    next();
    header += quoted(t.name) + ":{\"dtype\":\"" + std::string(name_of(t.dtype)) + "\",\"shape\":[";
    for (std::size_t d = 0; d < t.shape.size(); ++d) header += (d > 0 ? "," : "") + std::to_string(t.shape[d]);
    header += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
  }
  if (header.empty()) next();
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > 100'000'000) throw damaged(file, "its header would have more than 100000000 bytes");
  return header;
}

/// Writes FILE whole, or leaves it as it was. The tensors lie in an order of the format's own, largest elements first,
/// then by name; `write(entry, sink)` is called for each in that order and gives its elements to the sink, at once or
/// in parts, so that no tensor need be held. Throws Failure: io where it cannot be written, bad_data where names are
/// equal or no UTF-8, a shape is none, or `write` gave more or fewer bytes than the shape has.
template <class Write>
void write_safetensors(const std::string& file, std::vector<FileEntry> tensors, Write write,
                       const std::map<std::string, std::string>& metadata = {}) {
  std::sort(tensors.begin(), tensors.end(), [](const FileEntry& a, const FileEntry& b) {
    return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name;
  });
  std::vector<std::string_view> names;
  for (const FileEntry& t : tensors) names.push_back(t.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    throw damaged(file, "two tensors that are to be written are called '" + std::string(*twice) + "'");

  std::vector<std::int64_t> ends;
  const std::string header = safetensors_header(file, tensors, metadata, ends);
  NewFile out(file, file);
  const std::uint64_t length = header.size();
  out.write(&length, sizeof length);
  out.write(header.data(), header.size());
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < tensors.size(); begin = ends[i++]) {
    const FileEntry& tensor = tensors[i];
    const std::int64_t bytes = ends[i] - begin;
    FileSink sink(out, tensor.dtype, bytes);
    write(tensor, sink);
    if (sink.other_type())
      throw not_written(file, tensor, "is " + std::string(name_of(tensor.dtype)) + ", but was given another type");
    if (sink.left() != 0)
      throw not_written(file, tensor,
                        "has " + std::to_string(bytes) + " bytes by its shape, but " +
                            std::to_string(bytes - sink.left()) + " were given");
  }
  out.put_in_place();
}

}  // namespace parallel::internals

namespace parallel {
using internals::FileSink;
using internals::write_safetensors;
}  // namespace parallel
