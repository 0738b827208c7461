#include "invariance.hpp"

TEST_CASE("a GPT computes the same on every mesh of 2, 4 and 8 ranks, in float, with two micro-batches") {
  invariance::check_gpt<float, 8, 2>();
}
