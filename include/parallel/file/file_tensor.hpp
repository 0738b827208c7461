// A tensor of a file: what the file says of it, and its bytes where they lie.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parallel/file/file_dtype.hpp>
#include <parallel/file/mapped_file.hpp>

namespace parallel::internals {

inline std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string all = "[";
  for (std::size_t d = 0; d < shape.size(); ++d) all += (d > 0 ? ", " : "") + std::to_string(shape[d]);
  return all + "]";
}
/// What a file says of a tensor, whose elements lie row by row: the last dimension varies fastest.
struct FileEntry {
  std::string name{};
  FileDType dtype = FileDType::F32;
  std::vector<std::int64_t> shape{};  ///< none: a single number
  bool operator==(const FileEntry&) const = default;
};

/// Throws Failure(bad_data) where two of what is to be written into a file have one name. `what`: "tensors".
inline void check_names(const std::string& file, const std::vector<FileEntry>& all, const std::string& what) {
  std::vector<std::string_view> names;
  for (const FileEntry& t : all) names.push_back(t.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    throw damaged(file, "two " + what + " that are to be written are called '" + std::string(*twice) + "'");
}

/// Elements of a file, as a std::span. It keeps what it looks at: the file, or, where elements lie at addresses that
/// T does not allow, a copy.
template <class T>
class FileView {
 public:
  FileView(std::shared_ptr<const void> kept, std::span<const T> elements)
      : kept_(std::move(kept)), elements_(elements) {}
  const T* data() const { return elements_.data(); }
  std::size_t size() const { return elements_.size(); }
  const T& operator[](std::size_t i) const { return elements_[i]; }
  auto begin() const { return elements_.begin(); }
  auto end() const { return elements_.end(); }

 private:
  std::shared_ptr<const void> kept_;
  std::span<const T> elements_;
};

/// The file stays mapped as long as a tensor of it, or a view, lives.
struct FileTensor : FileEntry {
  std::shared_ptr<const MappedFile> in{};
  std::span<const std::byte> bytes{};

  std::int64_t elements() const { return elements_of(shape).value_or(0); }
  /// The elements, row by row. Throws Failure(bad_data) where the file has others than T's: nothing is converted.
  template <class T>
  FileView<T> as() const {
    if (!holds<T>(dtype))
      throw damaged(in->file(), (name.empty() ? "its" : "the tensor " + name + " has") + std::string(" elements") +
                                    (name.empty() ? " are " : " of ") + std::string(name_of(dtype)) + ", but " +
                                    std::string(name_of(file_dtype_of<T>)) +
                                    " was asked for; ask for what the file has, and convert");
    const std::size_t count = bytes.size() / sizeof(T);
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) == 0 || count == 0)
      return {in, {reinterpret_cast<const T*>(bytes.data()), count}};
    auto copy = std::make_shared<std::vector<T>>(count);
    std::memcpy(copy->data(), bytes.data(), bytes.size());
    const std::span<const T> elements(*copy);
    return {std::move(copy), elements};
  }
};

}  // namespace parallel::internals

namespace parallel {
using internals::FileEntry;
using internals::FileTensor;
using internals::FileView;
}  // namespace parallel
