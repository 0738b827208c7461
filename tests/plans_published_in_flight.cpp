// What Korthikanti et al. (arXiv:2205.05198) print of the memory of a GPT on stages, from the live ranges of plans: their
// figure 1 to every decimal, states, how many micro-batches are in flight.
#include <doctest/doctest.h>

#include "activations_published.hpp"

using namespace published;

namespace {

// Figure 1, GiB of 175B on the first GPU: tensor parallelism only, and sequence parallelism with the scores made again.
// Of 16 micro-batches, as many as are ever in flight; of the paper's 64 below.
constexpr Mesh eight_ranks{tensor = 8}, stages{stage = 8, tensor = 8};
constexpr Gpt with_micro_batches(int m, Gpt n) {
  n.micro_batches = m;
  return n;
}
template <Saved saved, bool slices>
constexpr double gib175 =
    static_cast<double>(
        of_layers<with_micro_batches(16, gpt175(saved, slices, Policy::saved_as_published)), stages, schedules::interleaved<3>>.rest) /
    gib;
static_assert(gib175<Saved::everything, false> == 66.84375);
static_assert(gib175<Saved::selective, true> == 12.3515625);

/// The most bytes that the matrices of layers have at one time: as parameters, in bf16, as gradients, and of states.
constexpr std::int64_t states(const Plan& plan) {
  const GraphView& g = plan.graph;
  const auto of_matrix = [&](int m) {
    if (m >= 0 && g.member(m).of >= 0) m = g.member(m).of;
    return m >= 0 && g.member(m).layers > 0 && g.member(m).type.layout.elements() > 100'000 * g.member(m).layers;
  };
  Vector<std::int64_t> at;
  at.resize(static_cast<int>(plan.events.size()) + 1, 0);
  const auto hold = [&](int first, int last, std::int64_t bytes) {
    for (int e = first; e <= last; ++e) at[e] += bytes;
  };
  for (int m = 0; m < static_cast<int>(g.members.size()); ++m)
    if (of_matrix(m)) hold(0, at.size() - 1, local_bytes(g.member(m).type, plan.mesh));
  for (const Allocation& x : allocations(plan))
    if ((x.use == Use::gradients || x.use == Use::parameters_in_use) && of_matrix(charged_member(g, x)))
      hold(x.first, x.last, x.bytes);
  std::int64_t most = 0;
  for (const std::int64_t bytes : at) most = bytes > most ? bytes : most;
  return most;
}
// 18 bytes for each element, as gradients are f32 without a word.
template <Gpt n>
using InF32 = Accumulate<n.micro_batches, Training<Model<n>, AdamW, Tokens<n>, Tokens<n>>>;
template <class P, const Mesh& mesh>
constexpr double gib_of_states = static_cast<double>(states(plan<P, mesh>)) / gib;
static_assert(gib_of_states<InF32<gpt22(Saved::everything, false)>, eight_ranks> == 45.5625);
static_assert(
    gib_of_states<Pipelined<schedules::interleaved<3>, InF32<with_micro_batches(8, gpt175(Saved::everything, false))>>,
                  stages> == 45.5625);

// In flight on rank r of p: with 1F1B min(m, p - r) micro-batches, with GPipe m, interleaved 2 (p - r - 1) + (v - 1) p
// + 1 chunks, each of L / (p v) layers. Of all ranks, and of 64 micro-batches with GPipe, below.
template <int r>
constexpr Mesh seen_from{stages.on_stage(r)};
constexpr Gpt many_micro_batches = gpt175(Saved::selective, true, Policy::saved_as_published),
              some_micro_batches = with_micro_batches(16, many_micro_batches),
              few_micro_batches = with_micro_batches(4, many_micro_batches);
template <Gpt n, int r, const Schedule& schedule = schedules::one_forward_one_backward>
constexpr std::int64_t bytes_in_flight = of_layers<n, seen_from<r>, schedule>.rest;
constexpr std::int64_t layer175 = 34 * 2048 * 12288 / 8;
static_assert(bytes_in_flight<some_micro_batches, 5> == 3 * 12 * layer175);
static_assert(bytes_in_flight<few_micro_batches, 0> == 4 * 12 * layer175);
static_assert(bytes_in_flight<few_micro_batches, 7, schedules::gpipe> == 4 * 12 * layer175);
static_assert(of_layers<some_micro_batches, stages, schedules::interleaved<3>>.rest == (14 + 16 + 1) * 4 * layer175);

}  // namespace

TEST_CASE("of the paper's 64 micro-batches, at start-up") {
  const auto gib175_of = [](const Graph& graph) {
    return static_cast<double>(activations(derive(graph, stages, {}, {})).rest) / gib;
  };
  CHECK(gib175_of(built<gpt175(Saved::everything, false, Policy::saved_as_published)>(schedules::interleaved<3>)) ==
        66.84375);
  CHECK(gib175_of(built<many_micro_batches>(schedules::interleaved<3>)) == 12.3515625);
  const Graph states_in_f32 =
      with_schedule(build<InF32<gpt175(Saved::everything, false)>>(), schedules::interleaved<3>);
  CHECK(static_cast<double>(states(derive(states_in_f32, stages, {}, {}))) / gib == 45.5625);
}
TEST_CASE("in flight on every rank, at start-up") {
  const auto layers = [](const Graph& graph, int rank) {
    return static_cast<double>(activations(derive(graph, stages.on_stage(rank), {}, {})).rest) / layer175;
  };
  const Graph many = built<many_micro_batches>(), few = built<few_micro_batches>(),
              all = built<many_micro_batches>(schedules::gpipe),
              chunks = built<many_micro_batches>(schedules::interleaved<3>);
  for (int r = 0; r < 8; ++r) {
    CAPTURE(r);
    CHECK(layers(many, r) == (8 - r) * 12);
    CHECK(layers(few, r) == (r < 4 ? 4 : 8 - r) * 12);
    CHECK(layers(all, r) == 64 * 12);
    CHECK(layers(chunks, r) == (2 * (7 - r) + 16 + 1) * 4);
  }
}
