// A walk through several tensors together, row by row: how operands that repeat and results that add up are met.
#pragma once
#include <parallel/device/kernel.hpp>

namespace parallel::internals::cpu {

using Index = std::int64_t;

template <int tensors>
struct Steps {
  Index of[std::size_t{tensors}]{};
  Index operator[](int i) const { return of[i]; }
};

/// Dimensions, outermost first, each with its extent and the number of elements by which every tensor advances along it
/// (0: it repeats). Dimensions along which all of them advance evenly are one, so that the innermost is as long as can
/// be.
template <int tensors>
class Walk {
 public:
  void add(Index extent, const Steps<tensors>& steps) {
    if (extent == 1) return;
    bool even = rank_ > 0;
    for (int t = 0; even && t < tensors; ++t) even = steps_[rank_ - 1].of[t] == steps.of[t] * extent;
    if (!even) extents_[rank_++] = 1;
    extents_[rank_ - 1] *= extent;
    steps_[rank_ - 1] = steps;
  }

  /// Where the innermost dimension is not contiguous in every tensor, rows become single elements.
  void make_rows_contiguous() {
    bool contiguous = true;
    for (int t = 0; t < tensors; ++t) contiguous = contiguous && step(t) == 1;
    if (contiguous) return;
    extents_[rank_] = 1;
    for (int t = 0; t < tensors; ++t) steps_[rank_].of[t] = 1;
    ++rank_;
  }

  int rank() const { return rank_; }
  /// The extent of the innermost dimension, or of one that encloses it.
  Index extent(int enclosing = 0) const { return enclosing < rank_ ? extents_[rank_ - 1 - enclosing] : 1; }
  Index step(int tensor, int enclosing = 0) const {
    return enclosing < rank_ ? steps_[rank_ - 1 - enclosing].of[tensor] : 1;
  }
  /// The extent of the outermost dimension, and by how many elements a tensor advances along it.
  Index outermost() const { return rank_ > 0 ? extents_[0] : 1; }
  Index outermost_step(int tensor) const { return rank_ > 0 ? steps_[0].of[tensor] : 0; }
  /// The walk through indices [begin, end) of the outermost dimension.
  Walk part(Index begin, Index end) const {
    Walk some = *this;
    if (rank_ == 0) return some;
    some.extents_[0] = end - begin;
    for (int t = 0; t < tensors; ++t) some.first_.of[t] += begin * steps_[0].of[t];
    return some;
  }

  /// Stands at one row after the other: `for (auto at = walk.rows(); at; ++at)`, where at[t] is how far tensor t has
  /// advanced.
  class Cursor {
   public:
    Cursor(const Walk& walk, int inner) : walk_(walk), outer_(walk.rank_ - inner), at_(walk.first_) {
      for (int d = 0; d < walk.rank_; ++d) more_ = more_ && walk.extents_[d] > 0;
    }
    explicit operator bool() const { return more_; }
    Index operator[](int tensor) const { return at_.of[tensor]; }
    Cursor& operator++() {
      for (int d = outer_ - 1; d >= 0; --d) {
        for (int t = 0; t < tensors; ++t) at_.of[t] += walk_.steps_[d].of[t];
        if (++index_[d] < walk_.extents_[d]) return *this;
        for (int t = 0; t < tensors; ++t) at_.of[t] -= walk_.steps_[d].of[t] * walk_.extents_[d];
        index_[d] = 0;
      }
      more_ = false;
      return *this;
    }

   private:
    const Walk& walk_;
    int outer_;
    bool more_ = true;
    Index index_[max_rank + 1]{};
    Steps<tensors> at_;
  };
  /// Through every index but the innermost.
  Cursor rows() const { return {*this, 1}; }
  /// Through every index but the two innermost.
  Cursor planes() const { return {*this, 2}; }

 private:
  int rank_ = 0;
  Index extents_[max_rank + 1]{};
  Steps<tensors> steps_[max_rank + 1]{};
  Steps<tensors> first_{};  ///< where it begins in every tensor
};

/// By how many elements a part advances along each of its dimensions.
inline Steps<max_rank> strides(const View& view) {
  Steps<max_rank> result;
  Index n = 1;
  for (int d = view.rank - 1; d >= 0; n *= view.size[d--]) result.of[d] = n;
  return result;
}

/// By how many elements a part advances along each dimension of `whole`, to which it is repeated as in NumPy: aligned
/// at the last dimension.
inline Steps<max_rank> repeated(const View& view, const View& whole) {
  Steps<max_rank> result;
  const Steps<max_rank> own = strides(view);
  for (int d = whole.rank - 1, from = view.rank - 1; d >= 0 && from >= 0; --d, --from)
    result.of[d] = view.size[from] == 1 ? 0 : own[from];
  return result;
}

/// By how many elements a statistic advances along each dimension of `whole`: it has all but the dimensions `gone`
/// (none named: all are gone).
inline Steps<max_rank> reduced(const View& whole, const Ints& gone) {
  Steps<max_rank> result;
  Index n = 1;
  for (int d = whole.rank - 1; d >= 0; --d) {
    if (gone.empty() || gone.contains(d)) continue;
    result.of[d] = n;
    n *= whole.size[d];
  }
  return result;
}

/// Where a part's elements lie among all of the full tensor: by how many they advance along each dimension, and which
/// is the first.
struct InWhole {
  Steps<max_rank> steps{};
  Index first = 0;
  explicit InWhole(const View& part) {
    Index n = 1;
    for (int d = part.rank - 1; d >= 0; n *= part.whole[d--]) {
      steps.of[d] = n;
      first += part.offset[d] * n;
    }
  }
};

/// Through tensors that advance along the dimensions of `view` by so many elements each.
template <std::size_t tensors>
auto through(const View& view, const Steps<max_rank> (&steps)[tensors]) {
  Walk<static_cast<int>(tensors)> walk;
  for (int d = 0; d < view.rank; ++d) {
    Steps<static_cast<int>(tensors)> along;
    for (std::size_t t = 0; t < tensors; ++t) along.of[t] = steps[t][d];
    walk.add(view.size[d], along);
  }
  return walk;
}
/// Through a tensor and, with it, one that advances along its dimensions by `steps`.
inline Walk<2> together(const View& view, const Steps<max_rank>& steps) {
  return through(view, {strides(view), steps});
}

}  // namespace parallel::internals::cpu
