// Which elements of one tensor go where in another: the way of slices, overlaps, transposes, whatever device moves
// them.
#pragma once
#include <algorithm>

#include <parallel/device/cpu/walk.hpp>

namespace parallel::internals::cpu {

/// Some elements of two tensors: a walk through both, and at which element of each it begins.
struct Box {
  Walk<2> walk{};
  Index from = 0, to = 0;
};

/// ints: dimension, begin, end.
inline Box sliced(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  const Steps<max_rank> from = strides(x);
  return {through(out, {from, strides(out)}), call.ints[1] * from[static_cast<int>(call.ints[0])], 0};
}
/// x as it lies in a result that begins before it by so many elements.
inline Box placed(const View& x, const View& out, Index begin) {
  return {through(x, {strides(x), strides(out)}), 0, begin};
}
/// Calls copy(operand, box) for operands that stand one behind the other along dimension ints[0].
template <class Copy>
void each_concatenated(const Call& call, Copy copy) {
  const View& out = call.results[0];
  const int dim = static_cast<int>(call.ints[0]);
  Index begin = 0;
  for (const View& x : call.operands) {
    copy(x, placed(x, out, begin));
    begin += x.size[dim] * strides(out)[dim];
  }
}
/// What two parts of one full tensor have in common.
struct Common {
  Box box{};
  bool covers = true;  ///< it is all of the second
  bool empty = false;
};
inline Common in_common(const View& from, const View& to) {
  Common all;
  View both = to;
  const Steps<max_rank> from_strides = strides(from), to_strides = strides(to);
  for (int d = 0; d < to.rank; ++d) {
    const Index begin = std::max(from.offset[d], to.offset[d]),
                end = std::min(from.offset[d] + from.size[d], to.offset[d] + to.size[d]);
    both.size[d] = std::max<Index>(end - begin, 0);
    all.box.from += (begin - from.offset[d]) * from_strides[d];
    all.box.to += (begin - to.offset[d]) * to_strides[d];
    all.covers = all.covers && both.size[d] == to.size[d];
  }
  all.empty = both.elements() == 0;
  all.box.walk = through(both, {from_strides, to_strides});
  return all;
}
/// ints: which dimension of x each dimension of the result is. The innermost dimension lies side by side in the result,
/// and the one around it in x; where they are one, both lie so in it.
inline Walk<2> transposed(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  const Steps<max_rank> strides_of_x = strides(x), to = strides(out);
  Steps<max_rank> from;
  int last = -1, beside = -1;  // the dimensions whose elements lie side by side in the result, and in x
  for (int d = 0; d < out.rank; ++d) {
    from.of[d] = strides_of_x[static_cast<int>(call.ints[d])];
    if (out.size[d] > 1) last = d;
    if (out.size[d] > 1 && from[d] == 1) beside = d;
  }
  Walk<2> walk;
  const auto add = [&](int d) { walk.add(out.size[d], {from[d], to[d]}); };
  for (int d = 0; d < out.rank; ++d)
    if (d != beside && d != last) add(d);
  if (beside != last) add(beside);
  if (last >= 0) add(last);
  return walk;
}

}  // namespace parallel::internals::cpu
