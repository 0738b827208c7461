// The first micro-batch of each two is updated by; the last one of three is left.
// figures: rank<0>, chunk<0>
#include <parallel/schedule/check.hpp>

using namespace parallel;

constexpr Tasks order(int, int, int micro_batches, int) {
  Tasks tasks;
  for (int k = 0; k < micro_batches; ++k) {
    tasks.push_back({Work::forward, k});
    tasks.push_back({Work::backward, k});
#ifdef WRONG
    if (k % 2 == 1) tasks.push_back({Work::update, k});
#else
    if (k % 2 == 1 || k + 1 == micro_batches) tasks.push_back({Work::update, k});
#endif
  }
  return tasks;
}
constexpr Schedule mine{"mine", 1, false, true, order};
using checked = checked_schedule<mine, 2, 3>;
