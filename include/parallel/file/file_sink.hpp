// Where the elements of a tensor go that is written to a file.
#pragma once
#include <functional>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

#include <parallel/file/file_dtype.hpp>
#include <parallel/file/new_file.hpp>

namespace parallel::internals {

/// Takes the next bytes of a tensor that is written.
class FileSink {
 public:
  /// `bytes`: how many the tensor has. `seen(bytes, count)` is told of all.
  FileSink(
      NewFile& file, FileDType dtype, std::int64_t bytes,
      std::function<void(const void*, std::size_t)> seen = [](const void*, std::size_t) {})
      : file_(file), dtype_(dtype), bytes_(bytes), left_(bytes), seen_(std::move(seen)) {}
  /// Elements of the tensor's type, or std::bytes, row by row: a whole tensor, or a part and then the next. What has
  /// data() and size() will do.
  template <class Elements>
  void operator()(const Elements& elements) {
    using T = std::remove_cvref_t<decltype(*std::data(elements))>;
    if constexpr (!std::is_same_v<T, std::byte>) other_type_ |= !holds<T>(dtype_);
    const auto bytes = static_cast<std::int64_t>(std::size(elements) * sizeof(T));
    left_ -= bytes;
    if (left_ < 0) return;
    file_.write(std::data(elements), static_cast<std::size_t>(bytes));
    seen_(std::data(elements), static_cast<std::size_t>(bytes));
  }
  /// Why what was given is not the tensor; nothing where it is.
  std::string wrong() const {
    if (other_type_) return "is " + std::string(name_of(dtype_)) + ", but elements of another type were given";
    if (left_ == 0) return "";
    return "has " + std::to_string(bytes_) + " bytes by its shape, but " + std::to_string(bytes_ - left_) +
           " were given";
  }

 private:
  NewFile& file_;
  FileDType dtype_;
  std::int64_t bytes_, left_;
  std::function<void(const void*, std::size_t)> seen_;
  bool other_type_ = false;
};

}  // namespace parallel::internals

namespace parallel {
using internals::FileSink;
}  // namespace parallel
