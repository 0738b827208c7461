// The last stage, too, goes back with a micro-batch before it goes forward with it.
// figures: rank<0>, step<0>, micro_batch<0>, chunk<0>
#include <parallel/schedule/check.hpp>

using namespace parallel;

constexpr Tasks order(int, int, int micro_batches, int) {
  Tasks tasks;
  for (int k = 0; k < micro_batches; ++k) {
#ifdef WRONG
    tasks.push_back({Work::backward, k});
    tasks.push_back({Work::forward, k});
#else
    tasks.push_back({Work::forward, k});
    tasks.push_back({Work::backward, k});
#endif
  }
  return tasks;
}
constexpr Schedule mine{"mine", 1, false, false, order};
using checked = checked_schedule<mine, 1, 3>;
