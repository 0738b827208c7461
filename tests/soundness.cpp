// Brute force over the definition: for every operation, every placement of every operand and of the result on one axis
// of 2, 3 and 4 ranks, the operation's own kernel runs on the ranks' parts. What turns out sound must be in the
// operation's table, what does not must not be. For every sound row the gradients, computed by each rank alone, must
// mean the gradient of the whole operation, which is its derivative. And however operands lie, they enter so.
#include <doctest/doctest.h>

#include <parallel/parallel.hpp>
#include <parallel/run/verify_operation.hpp>

#include "operation_cases.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace cases;

TEST_CASE("every operation's table holds exactly the sound rows, and gradients are the derivatives") {
  int rows = 0, ways = 0, orders = 0, derivatives = 0;
  for (const int n : {2, 3, 4})
    for (const Case& c : of_operations(n)) {
      INFO(c.operation->name << " on " << n << " ranks");
      VerifyOptions options{.ints = c.ints, .reals = {c.first, c.second}, .ranks = {n}, .tolerance = tolerance(c)};
      options.smooth = c.operation != &operation::casting;
      options.find_missing = true;
      options.most_ways = 2000;
      VerifiedOperation done;
      try {
        done = verifying::Verification(*c.operation, tried(c), options).run();
      } catch (const std::exception& wrong) {
        FAIL_CHECK(std::string(wrong.what()));
      }
      for (const std::string& row : done.missing) FAIL_CHECK("the table has not " << row);
      rows += done.rows;
      ways += done.ways;
      orders += done.orders;
      derivatives += done.derivatives;
      CHECK(done.rows > 0);
    }
  INFO(rows << " rows, " << ways << " ways to enter, " << derivatives << " derivatives");
  CHECK(rows > 1000);
  CHECK(ways > 10'000);
  CHECK(orders > 1000);
  CHECK(derivatives > 10'000);
}
