// What `plan<>` is where a program is refused: a plan whose every answer passes every assertion, so that one mistake
// stays one error.
#pragma once
#include <parallel/plan/plan.hpp>

namespace parallel::internals {

struct RefusedPlan : Plan {
  struct UnknownTraffic {
    Unknown sent{}, received{};
  };
  struct Answers : Communication {
    constexpr Unknown collectives(const auto&...) const { return {}; }
    constexpr Unknown calls(const auto&...) const { return {}; }
    constexpr Unknown messages(const auto&...) const { return {}; }
    constexpr Unknown elements(const auto&...) const { return {}; }
    constexpr Unknown largest_message(const auto&...) const { return {}; }
    constexpr Unknown sent(const auto&...) const { return {}; }
    constexpr UnknownTraffic link(const auto&...) const { return {}; }
    constexpr Finding is(const auto&...) const { return {}; }
  };
  Answers all{}, forward{}, backward{}, optimizer{};
  constexpr Unknown collectives(const auto&...) const { return {}; }
  constexpr Unknown calls(const auto&...) const { return {}; }
  constexpr Unknown sent(const auto&...) const { return {}; }
  constexpr UnknownTraffic link(const auto&...) const { return {}; }
  constexpr Unknown largest_message(const auto&...) const { return {}; }
  constexpr Finding is(const auto&...) const { return {}; }
  constexpr Unknown peak_memory() const { return {}; }
  constexpr Unknown saved_memory() const { return {}; }
  constexpr Unknown flops(const auto&...) const { return {}; }
  constexpr Unknown redundant(const auto&...) const { return {}; }
  /// `plan<Step>(mesh)`
  constexpr RefusedPlan operator()(const auto&...) const { return {}; }
};

}  // namespace parallel::internals
