// Tensors of files by their names, however many files they are in.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parallel/file/file_tensor.hpp>
#include <parallel/meta/nearest.hpp>

namespace parallel::internals {

class NamedTensors {
 public:
  const std::string& file() const { return file_; }
  std::size_t size() const { return tensors_.size(); }
  /// By their names.
  const FileTensor& operator[](std::size_t i) const { return tensors_[i]; }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Throws Failure(bad_data) where there is none of that name.
  const FileTensor& operator[](std::string_view name) const {
    const FileTensor* const found = find(name);
    if (found != nullptr) return *found;
    std::vector<std::string> known;
    for (const FileTensor& t : tensors_) known.push_back(t.name);
    throw damaged(file_, "it has no tensor " + std::string(name) + ", among its " + std::to_string(size()) +
                             nearest_of(name, std::move(known)));
  }
  const FileTensor& operator[](const char* name) const { return (*this)[std::string_view(name)]; }

 protected:
  explicit NamedTensors(std::string file) : file_(std::move(file)) {}
  void add(FileTensor tensor) { tensors_.push_back(std::move(tensor)); }
  /// All are there. Throws Failure(bad_data) where two have one name.
  void finish() {
    std::sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    const auto twice = std::adjacent_find(tensors_.begin(), tensors_.end(),
                                          [](const auto& a, const auto& b) { return a.name == b.name; });
    if (twice != tensors_.end()) throw damaged(file_, "it has two tensors '" + twice->name + "'");
  }

 private:
  const FileTensor* find(std::string_view name) const {
    const auto at = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                     [](const FileTensor& t, std::string_view n) { return t.name < n; });
    return at != tensors_.end() && at->name == name ? &*at : nullptr;
  }

  std::string file_;
  std::vector<FileTensor> tensors_{};
};

}  // namespace parallel::internals
