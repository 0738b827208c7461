#include "invariance.hpp"

TEST_CASE("a GPT computes the same on every mesh of 2, 3 and 6 ranks, in double") {
  invariance::check_gpt<double, 6>();
}
