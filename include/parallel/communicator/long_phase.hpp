// What takes longer than the deadline allows, by its name.
#pragma once
#include <algorithm>
#include <chrono>

namespace parallel::internals {

/// Of one rank: while it is in the phase, it waits so long for others. `name` outlives the run, as a literal does.
struct LongPhase {
  const char* name = nullptr;  ///< none: the deadline holds
  std::chrono::milliseconds limit{0};
};

/// How long a rank waits for others.
inline std::chrono::milliseconds patience(std::chrono::milliseconds deadline, const LongPhase& phase) {
  return std::max(deadline, phase.limit);
}

}  // namespace parallel::internals
