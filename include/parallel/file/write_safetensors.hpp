// Writing safetensors, tensor by tensor, byte for byte as Python's and Rust's libraries do. Needs nlohmann-json.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <parallel/file/file_sink.hpp>
#include <parallel/file/file_tensor.hpp>
#include <parallel/file/new_file.hpp>

namespace parallel::internals {

/// What a file of safetensors begins with, and where its tensors lie: in an order of the format's own, largest elements
/// first, then by name.
class SafetensorsHeader {
 public:
  /// Throws Failure(bad_data) where names are equal or no UTF-8, or a shape is none. `file`: for sentences.
  SafetensorsHeader(const std::string& file, std::vector<FileEntry> all,
                    const std::map<std::string, std::string>& metadata)
      : file_(file), tensors_(std::move(all)) {
    std::sort(tensors_.begin(), tensors_.end(), [](const FileEntry& a, const FileEntry& b) {
      return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name;
    });
    for (const FileEntry& t : tensors_)
      if (t.name == "__metadata__") throw refused(t, "has a name that safetensors keep for texts");
    check_names(file_, tensors_, "tensors");
    std::string header;
    const auto next = [&] { header += header.empty() ? '{' : ','; };
    if (!metadata.empty()) {
      next();
      header += "\"__metadata__\":";
      char before = '{';
      for (const auto& [key, text] : metadata) header += std::exchange(before, ',') + quoted(key) + ":" + quoted(text);
      header += '}';
    }
    std::int64_t end = 0;
    for (const FileEntry& t : tensors_) {
      const auto elements = elements_of(t.shape);
      const auto size = elements ? bytes_of(t.dtype, *elements) : std::nullopt;
      begins_.push_back(end);
      if (!size || __builtin_add_overflow(begins_.back(), *size, &end)) throw refused(t, "has a shape that is none");
      next();
      header += quoted(t.name) + ":{\"dtype\":\"" + std::string(name_of(t.dtype)) + "\",\"shape\":[";
      for (std::size_t d = 0; d < t.shape.size(); ++d) {
        if (d > 0) header += ',';
        header += std::to_string(t.shape[d]);
      }
      header += "],\"data_offsets\":[" + std::to_string(begins_.back()) + "," + std::to_string(end) + "]}";
    }
    begins_.push_back(end);
    if (header.empty()) header = "{";
    header += '}';
    header.resize((header.size() + 7) / 8 * 8, ' ');
    if (header.size() > 100'000'000) throw damaged(file_, "its header would have more than 100000000 bytes");
    bytes_ = little_endian(std::uint64_t{header.size()}) + header;
  }

  /// The file's bytes before its tensors.
  const std::string& bytes() const { return bytes_; }
  const std::vector<FileEntry>& tensors() const { return tensors_; }
  /// Where a tensor begins in the file; behind the last, where that ends.
  std::int64_t begin(std::size_t i) const { return static_cast<std::int64_t>(bytes_.size()) + begins_[i]; }
  std::int64_t bytes_of_tensor(std::size_t i) const { return begins_[i + 1] - begins_[i]; }
  Failure refused(const FileEntry& t, const std::string& why) const {
    return damaged(file_, "the tensor '" + t.name + "', which is to be written, " + why);
  }

 private:
  std::string quoted(const std::string& text) const {
    try {
      return nlohmann::json(text).dump();
    } catch (const nlohmann::json::exception&) {
      throw damaged(file_, "a name or a text that is to be written is no UTF-8");
    }
  }

  std::string file_, bytes_{};
  std::vector<FileEntry> tensors_;
  std::vector<std::int64_t> begins_{};
};

/// Writes FILE whole, or leaves it as it was. `write(entry, sink)` is called for each tensor in the order of the file
/// and gives its elements to the sink, at once or in parts, so that no tensor need be held. Throws Failure: io where it
/// cannot be written, bad_data where names are equal or no UTF-8, a shape is none, or `write` gave more or fewer bytes
/// than the shape has.
template <class Write>
void write_safetensors(const std::string& file, std::vector<FileEntry> tensors, Write write,
                       const std::map<std::string, std::string>& metadata = {}) {
  const SafetensorsHeader header(file, std::move(tensors), metadata);
  NewFile out(file, file);
  out.write(header.bytes().data(), header.bytes().size());
  for (std::size_t i = 0; i < header.tensors().size(); ++i) {
    const FileEntry& t = header.tensors()[i];
    FileSink sink(out, t.dtype, header.bytes_of_tensor(i));
    write(t, sink);
    if (const std::string why = sink.wrong(); !why.empty()) throw header.refused(t, why);
  }
  out.put_in_place();
}

}  // namespace parallel::internals

namespace parallel {
using internals::write_safetensors;
}  // namespace parallel
