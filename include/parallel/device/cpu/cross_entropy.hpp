// The parts of cross entropy that softmax does not have: the target's logit, the loss, and the gradient. A rank may hold some of the
// vocabulary.
#pragma once
#include <limits>
#include <parallel/device/cpu/norm.hpp>

namespace parallel::cpu {

/// Where a row's target stands in the rank's part of the vocabulary, or -1.
inline Index target_in(const View& logits, int target) {
  const int last = logits.rank - 1;
  const Index own = target - logits.offset[last];
  return own >= 0 && own < logits.size[last] ? own : -1;
}
/// (logits, target): the target's logit where the rank holds it, else 0; no number where the whole vocabulary has no such target.
template <class T>
void pick(const Call& call) {
  const View& logits = call.operands[0];
  const Rows rows(logits);
  for (Index r = 0; r < rows.count; ++r) {
    const int target = call.operands[1].as<const int>()[r];
    const Index own = target_in(logits, target);
    const T absent = target >= 0 && target < logits.whole[logits.rank - 1] ? T{0} : std::numeric_limits<T>::quiet_NaN();
    call.results[0].as<T>()[r] = own < 0 ? absent : logits.as<const T>()[r * rows.length + own];
  }
}
/// (logits, target, max, sum, picked): log(sum) + max - picked
template <class T>
[[gnu::flatten]] void negative_log_likelihood(const Call& call) {
  by_lanes(
      call.results[0].elements(),
      [](T* loss, const T* largest, const T* sum, const T* picked) { lanes(loss) = lanes(sum).log() + (lanes(largest) - lanes(picked)); },
      call.results[0].as<T>(), call.operands[2].as<const T>(), call.operands[3].as<const T>(), call.operands[4].as<const T>());
}
/// (logits, target, max, sum, g): g (softmax - 1 at the target)
template <class T>
[[gnu::flatten]] void cross_entropy_gradient(const Call& call) {
  const View& logits = call.operands[0];
  const Rows rows(logits);
  const Index n = rows.length;
  for (Index r = 0; r < rows.count; ++r) {
    const T largest = call.operands[2].as<const T>()[r], sum = call.operands[3].as<const T>()[r], g = call.operands[4].as<const T>()[r];
    T* out = call.results[0].as<T>() + r * n;
    by_lanes(
        n, [=, share = g / sum](T* to, const T* x) { lanes(to) = exponential(lanes(x) - largest) * share; }, out,
        logits.as<const T>() + r * n);
    const Index own = target_in(logits, call.operands[1].as<const int>()[r]);
    if (own >= 0) out[own] -= g;
  }
}

}  // namespace parallel::cpu
