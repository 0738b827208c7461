// Gradients at older parameters than those that they update, by a number of steps that is said: what ranks pull of a
// server, or gather, is there a step ahead, so that nobody waits for it.
#pragma once
#include <parallel/model/optimizer.hpp>

namespace parallel {

/// An optimizer that updates the parameters of a step by gradients at those of s steps before: `Stale<1, AdamW>`. With
/// update(w, g) the optimizer's, and w_0 what the training begins with,
///
///     w_(t+1) = update(w_t, gradient(w_(max(t - s, 0)), inputs of step t))
///
/// The model's parameters are the oldest of these. The newest are states, `PATH.newest`, and so are those between,
/// `PATH.newer_1` and so on; they have the parameter's element type, and lie as it is updated. s steps at a learning
/// rate of 0 bring the newest into the parameters.
template <int s, class Optimizer>
struct Stale : Optimizer {
  static constexpr int staleness = internals::Updates<Optimizer> && s >= 0 && s <= 9 && !requires {
    Optimizer::staleness;
  }
  ? s : -1;
  static constexpr void update(Update& u) {
    const DType states = u.states_in(DType::f32);  // of halves they would not be what they were
    Update::Value older = u.at_rest();
    for (int i = 1; i <= staleness; ++i) {
      const char between[]{'n', 'e', 'w', 'e', 'r', '_', static_cast<char>('0' + i)};
      Update::Value newer = u.state(i == staleness ? "newest" : std::string_view(between, sizeof between));
      if (i == 1) newer = u.early(newer);
      older = u.replace(operation::handed_down, {older}, {newer}, {"step"}, {false})[0];
      older = u.replace(operation::handed_down, {newer}, {older}, {"step"}, {true})[0];
    }
    u.states_in(states);
    if (staleness > 0) u.parameter(older);
    if constexpr (staleness >= 0) Optimizer::update(u);
  }
};

}  // namespace parallel
