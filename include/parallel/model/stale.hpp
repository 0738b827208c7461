// Gradients of older parameters than those that they update, by a number of steps that is said: what ranks pull of a
// server, or gather, is there a step ahead, so that nobody waits for it.
#pragma once
#include <parallel/model/optimizer.hpp>

namespace parallel {

/// An optimizer that updates the parameters of step t by gradients at those of step t - s, in the first steps at those
/// that the training began with: `Stale<1, AdamW>`. With update(w, g) the optimizer's, and w_0 the initial parameters,
///
///     w_(t+1) = update(w_t, gradient(w_(max(t - s, 0)), inputs of step t))
///
/// The model's parameters are those of s steps before; the states `PATH.newest` and, between, `PATH.newer_1` to s - 1
/// are the later ones. They have the parameter's element type, and lie as it is updated. s steps at a learning rate of 0
/// bring the newest into the parameters.
template <int s, class Optimizer>
struct Stale : Optimizer {
  static_assert(internals::Updates<Optimizer>,
                "parallel: Stale takes an optimizer, which has update(Update&); write Stale<1, AdamW>");
  static_assert(s >= 0 && s <= 9, "parallel: Stale is by 0 to 9 steps, each a copy of the parameters; write Stale<1, AdamW>");
  static constexpr int staleness = s;
  static constexpr void update(Update& u) {
    const DType states = u.states_in(DType::f32);  // versions lose nothing
    Update::Value older = u.at_rest();
    for (int i = 1; i <= s; ++i) {
      Update::Value newer = u.state(i == s ? "newest" : std::string_view(between + 8 * (i - 1), 7));
      if (i == 1) newer = u.early(newer);
      older = u.replace(operation::handed_down, {older}, {newer}, {"step"}, {false})[0];
      older = u.replace(operation::handed_down, {newer}, {older}, {"step"}, {true})[0];
    }
    u.states_in(states);
    if (s > 0) u.parameter(older);
    Optimizer::update(u);
  }

 private:
  static constexpr const char* between = "newer_1 newer_2 newer_3 newer_4 newer_5 newer_6 newer_7 newer_8";
};

}  // namespace parallel
