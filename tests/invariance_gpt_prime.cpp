#include "invariance.hpp"

TEST_CASE("a GPT computes the same on 5 ranks, in double") { invariance::check_gpt<double, 5>(); }
TEST_CASE("a GPT computes the same on 7 ranks, in double") { invariance::check_gpt<double, 7>(); }
