// That a plan is there while it runs.
#pragma once
#include <memory>

#include <parallel/plan/derive.hpp>
#include <parallel/run/misuse.hpp>

namespace parallel::internals {

/// Throws Misuse where nothing is left of a plan's memory.
inline std::shared_ptr<const Plan> check_there(const Plan& plan) {
  std::shared_ptr<const Plan> memory = keep(plan);
  if (plan.derived != 0 && memory == nullptr)
    throw Misuse(
        "the plan is a copy of one that was derived and is there no more; keep what derive gives, const auto plan = "
        "derive<Step>(mesh)");
  return memory;
}
/// The same plan for as long as it is held. Throws Misuse where nothing is left of it.
inline std::shared_ptr<const Plan> kept(const Plan& plan) {
  struct WithMemory {
    std::shared_ptr<const Plan> memory;
    Plan plan;
  };
  const auto held = std::make_shared<const WithMemory>(WithMemory{check_there(plan), plan});
  return {held, &held->plan};
}

}  // namespace parallel::internals
