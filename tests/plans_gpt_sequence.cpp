// The collectives of a GPT whose hidden state is split along the sequence, or Broadcast, on the axis of tensor
// parallelism.
#include <doctest/doctest.h>

#include "gpt_rows.hpp"

using namespace gpt;

namespace {
// Sequence parallelism: gathers and reduce-scatters instead, and the norms' gains and shifts.
constexpr auto& sequence_parallel = plan<Trained<small, SequenceParallel<small>>, mesh>;
static_assert(
    on(tensor, sequence_parallel.forward) ==
    Collectives{
        .all_reduce = 3, .reduced = 96, .all_gather = 5, .gathered = 2560, .reduce_scatter = 5, .scattered = 2560});
static_assert(
    on(tensor, sequence_parallel.backward) ==
    Collectives{
        .all_reduce = 10, .reduced = 160, .all_gather = 5, .gathered = 2560, .reduce_scatter = 5, .scattered = 2560});
static_assert(sequence_parallel.forward.sent(tensor) == 4 * (2560 + 96));  // as without it

// The hidden state Broadcast: the backward reductions move to the row outputs, the norms' gradients wait to be reduced.
constexpr auto& alike = plan<Trained<small, HiddenBroadcast<small>>, mesh>;
static_assert(on(tensor, alike.forward) == sums(5 + 3, 2560 + 96));
static_assert(on(tensor, alike.backward) == sums(5 + 10, 2560 + 160));

static_assert(reduces_once(sequence_parallel) && reduces_once(alike));
}  // namespace

TEST_CASE("the plans of both GPTs at start-up are the compiler's") {
  CHECK(text(derive<Trained<small, SequenceParallel<small>>>(mesh).get()) == text(sequence_parallel));
  CHECK(text(derive<Trained<small, HiddenBroadcast<small>>>(mesh).get()) == text(alike));
}
