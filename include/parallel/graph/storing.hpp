// How a parameter lies when it is not in use: the words of ZeRO (Rajbhandari et al., 2020).
#pragma once
#include <parallel/algebra/type.hpp>

namespace parallel {

/// What the ranks of an axis share out of a `Stored` parameter, each of them also what stands before it.
enum class Zero : std::uint8_t {
  states =
      1,  ///< the optimizer's states, and the f32 parameter behind one that is used in half of it; gradients once per step
  gradients,   ///< its gradient, of each micro-batch as soon as it is there
  parameters,  ///< the parameter itself, which is gathered where it is used
};
/// How long a gathered parameter lives.
enum class Gathered : std::uint8_t {
  per_use,   ///< until it has been used; the backward pass gathers it again
  per_pass,  ///< from its use forward to its use backward
  per_step,  ///< for all micro-batches of a step
};

namespace internals {
/// How one parameter lies, apart from how it enters an operation.
struct Storing {
  Layout whole{};  ///< as it would if nothing were `Stored`
  Layout split{};  ///< as what is shared out of it lies
  Zero stage = Zero::parameters;
  Gathered gathered = Gathered::per_use;
  AxisList axes{};  ///< of which something is said

  constexpr bool any() const { return !(whole == split); }
  /// Whether ranks share it out, not only the host has it.
  constexpr bool shared_out() const { return !(whole == on_host(split, false)); }
  /// What is used in another element type than it is kept in, or elsewhere, is kept for the optimizer alone.
  constexpr bool lies_split(bool used_as_kept) const {
    return any() && (stage == Zero::parameters || !used_as_kept || on_host(split));
  }
  /// Whether it is gathered once for all micro-batches; else each gathers it, and layers one by one.
  constexpr bool for_the_step() const { return stage != Zero::parameters || gathered == Gathered::per_step; }
  /// Whether each micro-batch, and layer, reduces its gradient.
  constexpr bool reduces_at_once() const { return any() && stage != Zero::states; }
};

/// An annotation `Stored`, as a value.
struct StoredOn {
  const Axis* axis = nullptr;
  Placement placement{};
  Zero stage = Zero::parameters;
  Gathered gathered = Gathered::per_use;
  bool fits = true;  ///< its words go together

  constexpr bool alike(Zero of_stage, Gathered how_long) const { return stage == of_stage && gathered == how_long; }
  constexpr void of(Storing& s) const {
    s.axes.push_back(axis);
    s.split = s.split.with(axis, placement);
    s.stage = stage;
    s.gathered = gathered;
  }
};
/// A word of `AllStored`, as a value.
template <class Word>
constexpr StoredOn stored_on() {
  StoredOn said{.fits = false};
  if constexpr (requires { said = Word::value; }) said = Word::value;
  return said;
}
}  // namespace internals

}  // namespace parallel
