// The last micro-batch is left out.
// figures: rank<0>, micro_batch<2>, chunk<0>
#include <parallel/schedule/check.hpp>

using namespace parallel;

constexpr Tasks order(int, int, int micro_batches, int) {
  Tasks tasks;
#ifdef WRONG
  for (int k = 0; k + 1 < micro_batches; ++k) {
#else
  for (int k = 0; k < micro_batches; ++k) {
#endif
    tasks.push_back({Work::forward, k});
    tasks.push_back({Work::backward, k});
  }
  return tasks;
}
constexpr Schedule mine{"mine", 1, false, false, order};
using checked = checked_schedule<mine, 2, 3>;
