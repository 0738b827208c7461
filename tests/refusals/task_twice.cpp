// The gradient of the weights is computed behind each backward, and again behind all.
// figures: rank<0>, step<12>, micro_batch<0>, chunk<0>
#include <parallel/schedule/check.hpp>

using namespace parallel;

constexpr Tasks order(int, int, int micro_batches, int) {
  Tasks tasks;
  for (int k = 0; k < micro_batches; ++k) {
    tasks.push_back({Work::forward, k});
    tasks.push_back({Work::backward, k});
#ifdef WRONG
    tasks.push_back({Work::weight, k});
  }
  for (int k = 0; k < micro_batches; ++k) tasks.push_back({Work::weight, k});
#else
  }
  for (int k = 0; k < micro_batches; ++k) tasks.push_back({Work::weight, k});
#endif
  return tasks;
}
constexpr Schedule mine{"mine", 1, true, false, order};
using checked = checked_schedule<mine, 2, 2>;
