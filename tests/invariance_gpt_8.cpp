#include "invariance.hpp"

TEST_CASE("a GPT computes the same on every mesh of 2, 4 and 8 ranks, in double") {
  invariance::check_gpt<double, 8>();
}
