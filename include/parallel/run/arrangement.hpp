// How a tensor of a program lies in tensors of a file: the dimensions of both by names, as einops writes them
// (Rogozhnikov, 2022).
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <parallel/run/misuse.hpp>

namespace parallel::internals {

/// "in heads size -> (heads size) in": left the program's dimensions, right those of the file; what stands in brackets
/// is one dimension, the last name varying fastest. A name that the right lacks counts the tensors of the file among
/// which the program's is cut: queries, keys and values apart. `v:50257` on the right says that the file has so many of
/// v; the rest of the program's is padding. A number is a dimension of that size: "(2 half)". No pattern: they are
/// alike.
class Arrangement {
 public:
  /// `shape`: of the program's tensor, one layer of it. `layers`: how many, 0: there are none. `numbered`: each is in a
  /// tensor of its own, or they are the file's first dimension. `tensors`: among how many a layer is cut. Throws
  /// Misuse.
  Arrangement(const std::string& pattern, const std::vector<std::int64_t>& shape, std::int64_t layers, bool numbered,
              std::int64_t tensors)
      : pattern_(pattern) {
    if (layers > 0) axes_.push_back({"layer", layers, layers, 0, numbered ? tensors : 0});
    std::vector<std::vector<std::string>> left, right;
    if (const std::size_t arrow = pattern.find("->"); !pattern.empty()) {
      if (arrow == std::string::npos) throw refused("has no ->");
      left = groups(std::string_view(pattern).substr(0, arrow));
      right = groups(std::string_view(pattern).substr(arrow + 2));
    } else {
      for (std::size_t d = 0; d < shape.size(); ++d) left.push_back({"d" + std::to_string(d)});
      right = left;
    }
    if (left.size() != shape.size())
      throw refused("has " + std::to_string(left.size()) + " dimensions on its left, but the tensor " +
                    std::to_string(shape.size()));
    for (std::size_t d = 0; d < shape.size(); ++d) add(left[d], shape[d]);
    read_file(right, layers > 0 && !numbered);
    std::int64_t cut = 1;  // the names that the right lacks, the last varying fastest
    for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis)
      if (!axis->in_file && axis->tensor == 0) {
        axis->tensor = cut;
        cut *= axis->size;
      }
    if (cut != tensors)
      throw refused("cuts the tensor in " + std::to_string(cut) + ", but is for " + std::to_string(tensors) +
                    " of the file");
    join();
  }
  /// Of each tensor of the file.
  const std::vector<std::int64_t>& file_shape() const { return file_shape_; }
  /// f(position, tensor, index in that, step, count) for the program's elements [first, first + count): from `position`
  /// on `count` elements lie `step` apart in the file's tensor of that number, counted layer by layer; the index is -1
  /// where the file has none of them.
  template <class F>
  void each_run(std::int64_t first, std::int64_t count, F f) const {
    for (const std::int64_t end = first + count; first < end;) {
      std::int64_t rest = first, tensor = 0, index = 0, run = 1;
      bool there = true;
      for (std::size_t k = axes_.size(); k-- > 0;) {
        const Axis& axis = axes_[k];
        const std::int64_t at = rest % axis.size;
        rest /= axis.size;
        tensor += at * axis.tensor;
        index += at * axis.step;
        there = there && at < axis.there;
        if (k + 1 == axes_.size() && axis.tensor == 0) run = (at < axis.there ? axis.there : axis.size) - at;
      }
      run = std::min(run, end - first);
      f(first, tensor, there ? index : -1, axes_.empty() ? 1 : axes_.back().step, run);
      first += run;
    }
  }

 private:
  struct Axis {
    std::string name;
    std::int64_t size, there;   ///< in the program, and how much of it in the file
    std::int64_t step, tensor;  ///< from one to the next: elements of a tensor of the file, or tensors
    bool in_file = false;
  };

  Misuse refused(const std::string& why) const { return Misuse("the pattern '" + pattern_ + "' " + why); }
  static bool number(std::string_view word, std::int64_t& value) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc{} && end == word.data() + word.size() && value > 0;
  }
  std::vector<std::vector<std::string>> groups(std::string_view text) const {
    std::vector<std::vector<std::string>> all;
    bool open = false, word = false;
    for (const char c : text) {
      if (c == '(' || c == ')') {
        if (open == (c == '(')) throw refused("has brackets that do not match");
        if (c == '(') all.emplace_back();
        open = c == '(';
        word = false;
      } else if (c == ' ') {
        word = false;
      } else {
        if (!word && !open) all.emplace_back();
        if (!word) all.back().emplace_back();
        all.back().back() += c;
        word = true;
      }
    }
    if (open) throw refused("has brackets that do not match");
    return all;
  }
  Axis* find(std::string_view name) {
    const auto at = std::find_if(axes_.begin(), axes_.end(), [&](const Axis& a) { return a.name == name; });
    return at == axes_.end() ? nullptr : &*at;
  }
  /// One dimension of the program.
  void add(const std::vector<std::string>& names, std::int64_t size) {
    std::int64_t known = 1, value = 0;
    int open = 0;
    for (const std::string& name : names) {
      if (!number(name, value))
        ++open;
      else if (value <= size / known)
        known *= value;
      else
        known = size + 1;  // too many; the product itself may be more than can be counted
    }
    if (open > 1 || known > size || size % known != 0 || (open == 0 && known != size))
      throw refused("does not say how a dimension of " + std::to_string(size) + " is made of its names");
    for (const std::string& name : names) {
      if (find(name) != nullptr) throw refused("has '" + name + "' twice");
      const std::int64_t own = number(name, value) ? value : size / known;
      axes_.push_back({name, own, own, 0, 0});
    }
  }
  void read_file(const std::vector<std::vector<std::string>>& right, bool layers_lead) {
    std::int64_t step = 1;
    const auto take = [&](Axis& axis, std::int64_t there) {
      if (axis.in_file) throw refused("has '" + axis.name + "' twice on its right");
      axis.in_file = true;
      axis.there = there;
      axis.step = step;
      step *= there;
      return there;
    };
    for (auto group = right.rbegin(); group != right.rend(); ++group) {
      std::int64_t size = 1;
      for (auto word = group->rbegin(); word != group->rend(); ++word) {
        const std::size_t colon = word->find(':');
        Axis* const axis = find(std::string_view(*word).substr(0, colon));
        if (axis == nullptr) throw refused("has '" + *word + "' on its right alone");
        std::int64_t there = axis->size;
        if (colon != std::string::npos &&
            (!number(std::string_view(*word).substr(colon + 1), there) || there > axis->size))
          throw refused("says '" + *word + "', but the program has " + std::to_string(axis->size));
        size *= take(*axis, there);
      }
      file_shape_.insert(file_shape_.begin(), size);
    }
    if (layers_lead) file_shape_.insert(file_shape_.begin(), take(axes_.front(), axes_.front().size));
  }
  /// Neighbours that lie evenly in both are one.
  void join() {
    for (std::size_t k = axes_.size(); k-- > 1;) {
      Axis &outer = axes_[k - 1], &inner = axes_[k];
      const bool whole = inner.there == inner.size && inner.tensor == 0 && outer.tensor == 0;
      if (!whole || outer.step != inner.step * inner.size) continue;
      outer.size *= inner.size;
      outer.there *= inner.size;
      outer.step = inner.step;
      axes_.erase(axes_.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }

  std::string pattern_;
  std::vector<Axis> axes_{};
  std::vector<std::int64_t> file_shape_{};
};

}  // namespace parallel::internals
