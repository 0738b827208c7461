// A GPT deeper, in micro-batches, without training, on one rank: its plan beside that of the same GPT trained on a
// whole batch.
#include <doctest/doctest.h>

#include "gpt_rows.hpp"

using namespace gpt;
using namespace parallel::internals;

namespace {
const OwnedPlan& plain() {
  static const OwnedPlan plan = derive<Trained<small>>(mesh);
  return plan;
}
}  // namespace

TEST_CASE("one more layer is two more reductions each way, and no more nodes") {
  constexpr Sizes deeper{.layers = 3};
  const OwnedPlan three = derive<Trained<deeper>>(mesh);
  CHECK(on(tensor, three->forward) == sums(7 + 3, 7 * 512 + 96));
  CHECK(on(tensor, three->backward) == sums(7, 7 * 512));
  CHECK(three->graph.nodes.size() == plain()->graph.nodes.size());
}

TEST_CASE("micro-batches: collectives of the hidden state once per micro-batch, of gradients once per step") {
  const OwnedPlan four = derive<Accumulate<4, Trained<small>>>(mesh);
  CHECK(on(tensor, four->forward) == sums(4 * 8, 4 * (2560 + 96)));
  CHECK(on(tensor, four->backward) == sums(4 * 5, 4 * 2560));
  CHECK(on(data, four->backward) == on(data, plain()->backward));
  CHECK(on(data, four->forward) == sums(1, 1));
  // 14 calls for the 28 gradients: each of two layers calls for its four matrices and the bias of queries, keys and
  // values, which is one, too; vectors are reduced together.
  CHECK(four->backward.calls(tensor) == 4 * plain()->backward.calls(tensor));
  CHECK(four->backward.calls(data) == 14);
  CHECK(plain()->backward.calls(data) == 14);
  CHECK(four->optimizer.calls() == plain()->optimizer.calls());
}

TEST_CASE("evaluation has the forward plan of training, without its dropout") {
  using Evaluated = Evaluation<Gpt<small>, Tokens<small>, Tokens<small>>;
  const OwnedPlan evaluated = derive<Evaluated>(mesh);
  CHECK(on(tensor, evaluated->forward) == on(tensor, plain()->forward));
  CHECK(evaluated->backward.calls() == 0);
  CHECK(evaluated->optimizer.calls() == 0);
  CHECK(evaluated->graph.scalars.empty());
  for (const Event& e : evaluated->events)
    each_node(evaluated->graph, e, [&](int n) { CHECK(evaluated->graph.node(n).operation != &operation::dropout); });
}

TEST_CASE("a mesh of one rank sends nothing") {
  const OwnedPlan alone = derive<Trained<small>>(Mesh{data = 1, tensor = 1});
  CHECK(alone->calls() == 0);
  CHECK(alone->flops() > 3.5 * plain()->flops());  // two ranks of tensor and two of data share the work
}
