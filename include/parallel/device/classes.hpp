// Which classes a rank's columns of logits are.
#pragma once
#include <algorithm>

#include <parallel/device/kernel.hpp>
#include <parallel/operation/cross_entropy.hpp>

namespace parallel::internals {

/// What lies behind the classes is padding.
struct ClassColumns {
  std::int64_t classes, ignored;
  std::int64_t first;  ///< the rank's first class
  std::int64_t own;    ///< how many of its columns are classes

  ClassColumns(const View& logits, std::int64_t count, std::int64_t ignored_target = no_target)
      : classes(count),
        ignored(ignored_target),
        first(logits.offset[logits.rank - 1]),
        own(std::clamp<std::int64_t>(count - first, 0, logits.size[logits.rank - 1])) {}
  /// Of a call whose attributes are operation::Classes.
  static ClassColumns of(const Call& call) {
    const operation::Classes all(call.ints);
    return {call.operands[0], all.count, all.ignored};
  }
  /// Where a target stands among the rank's own classes, or -1.
  constexpr std::int64_t column(int target) const {
    return target >= first && target < first + own ? target - first : -1;
  }
  constexpr bool is_class(int target) const { return target >= 0 && target < classes; }
};

}  // namespace parallel::internals
