// Graphs with loops: what is needed, the order of events, and where values lie, on the plans of GPTs and of smaller
// programs.
#include "regions.hpp"

#include <doctest/doctest.h>

#include "gpt_model.hpp"

using namespace gpt;
using namespace parallel::internals;

namespace {
constexpr Sizes small{};
const Mesh meshes[] = {Mesh{data = 2, tensor = 2}, Mesh{data = 1, tensor = 2}, Mesh{data = 4, tensor = 1},
                       Mesh{data = 1, tensor = 1}};

template <class Program>
void check(const Mesh& mesh) {
  const OwnedPlan plan = derive<Program>(mesh);
  CAPTURE(text(mesh));
  for (const std::string& fault : regions::Order(*plan).faults) FAIL_CHECK(fault);
  const regions::Memory memory(*plan);
  for (const std::string& fault : memory.faults) FAIL_CHECK(fault);
  CHECK(memory.steps > 10);
  CHECK(plan->memory.arena % alignment == 0);
}
template <class Program>
void check() {
  for (const Mesh& mesh : meshes) check<Program>(mesh);
}
}  // namespace

TEST_CASE("order and memory: a GPT, its hidden state whole, Broadcast, or split along the sequence") {
  check<Trained<small>>();
  check<Trained<small, HiddenBroadcast<small>>>();
  check<Trained<small, SequenceParallel<small>>>();
  check<Trained<small, Plain<small>, WholeVocabulary<small>>>();
}
TEST_CASE("order and memory: a GPT in micro-batches, and without training") {
  check<Accumulate<3, Trained<small>>>();
  check<Accumulate<3, Trained<small, SequenceParallel<small>>>>();
  check<Evaluation<Gpt<small>, Tokens<small>, Tokens<small>>>();
}

TEST_CASE("a plan does not grow with depth") {
  constexpr Sizes four{.layers = 4}, many{.layers = 96};
  const OwnedPlan shallow = derive<Trained<four>>(meshes[0]), deep = derive<Trained<many>>(meshes[0]);
  CHECK(shallow->graph.nodes.size() == deep->graph.nodes.size());
  CHECK(shallow->graph.values.size() == deep->graph.values.size());
  REQUIRE(shallow->events.size() == deep->events.size());
  for (std::size_t e = 0; e < deep->events.size(); ++e)
    CHECK((shallow->events[e].kind == deep->events[e].kind && shallow->events[e].node == deep->events[e].node &&
           shallow->events[e].nodes == deep->events[e].nodes));
  for (const std::string& fault : regions::Memory(*deep).faults) FAIL_CHECK(fault);
}
