// What a run is made of: what is out of place is one sentence instead of a compiler's search through overloads.
#pragma once
#include <type_traits>

#include <parallel/communicator/communicator.hpp>
#include <parallel/device/device.hpp>
#include <parallel/meta/nothing.hpp>
#include <parallel/plan/plan.hpp>

namespace parallel::internals {

/// What Executor, Trainer, Eager and Eagerly are of.
template <class World, class On>
concept Runs = Communicator<World> && Device<On>;
/// What they are of any other template arguments than theirs: `Made` is that class, so that each says it.
template <class Made>
struct Misnamed {
  Misnamed() = default;
  static_assert(
      sizeof(Misnamed*) == 0,
      "parallel: what runs is named by its communicator, then its device, Eagerly by its program before them; write "
      "Executor<Threads, Cpu>, Trainer<Threads, Cpu>, Eager<Threads, Cpu> or Eagerly<Step, Threads, Cpu>");
  template <class... Given>
  explicit Misnamed(const Given&...) {}
};

/// Whether these begin with a plan that outlives what is made of them, its communicator and parameters.
template <class World, class Parameters, class... Given>
constexpr bool run_of = false;
template <class World, class Parameters, class P, class W, class Q, class... More>
constexpr bool run_of<World, Parameters, P, W, Q, More...> = std::is_lvalue_reference_v<P>&&
    std::is_convertible_v<P, const Plan&>&& std::is_convertible_v<W, World&>&& std::is_convertible_v<Q, Parameters&>;

/// Whether a communicator is the fault of what a run is given, which this says.
template <class World, class... Given>
constexpr bool wrong_world() {
  constexpr bool constant = (std::is_same_v<std::remove_reference_t<Given>, const World> || ...);
  static_assert(!constant,
                "parallel: the communicator is const, but a run changes it; take it as it is handed over, "
                "run_threads(4, [&](Threads& world) { ... })");
  constexpr bool another =
      ((Communicator<std::remove_cvref_t<Given>> && !std::is_base_of_v<World, std::remove_cvref_t<Given>>) || ...);
  static_assert(!another,
                "parallel: the communicator is of another type than what runs is named by; name what it is made of, "
                "Trainer<Threads, Cpu> of Threads, Trainer<Checked<Threads>, Cpu> of Checked<Threads>");
  return constant || another;
}

}  // namespace parallel::internals
