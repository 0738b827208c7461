// What Korthikanti et al. (arXiv:2205.05198) print of the memory that GPTs take, from the live ranges of plans: their
// table 2 and its parts, figure 1 to every decimal, how many micro-batches are in flight. As published, and what the
// library's own policy takes beside that, and of what. A statistic that a norm keeps of each row, and a softmax that is
// made again, is no part of their figures: it is what is f32.
#include <doctest/doctest.h>

#include <parallel/question/moment.hpp>

#include "gpt_published.hpp"

using namespace published;

namespace {

/// Calls f(value, node that made it, bytes) for the activations of all layers on the first rank.
template <class F>
constexpr void each_activation(const Plan& plan, F f) {
  for (const Allocation& a : allocations(plan)) {
    if (a.use != Use::activations) continue;
    const Value& value = plan.graph.value(a.owner);
    const Region& region = plan.graph.region(value.region);
    if (region.kind != RegionKind::layers) continue;
    // of what layers carry also what the last one returns has its place
    const Node& maker = plan.graph.maker(a.owner);
    f(value, maker, a.bytes - (maker.is(Structural::carry) ? a.bytes / (region.count + 1) : 0));
  }
}
/// What is of a type, and all the rest.
struct Bytes {
  std::int64_t rest = 0, statistics = 0;
  constexpr std::int64_t all() const { return rest + statistics; }
};
constexpr Bytes activations(const Plan& plan) {
  Bytes bytes;
  each_activation(plan, [&](const Value& value, const Node&, std::int64_t n) {
    (value.type.dtype == DType::f32 ? bytes.statistics : bytes.rest) += n;
  });
  return bytes;
}
/// Those of the layers' type that an operation made of one member of a block.
constexpr std::int64_t made(const Plan& plan, std::string_view member, std::string_view operation) {
  std::int64_t bytes = 0;
  each_activation(plan, [&](const Value& value, const Node& node, std::int64_t n) {
    if (value.type.dtype != DType::f32 && node.operation->name == operation &&
        plan.graph.path(int{value.member}).ends_with(member))
      bytes += n;
  });
  return bytes;
}
template <Gpt n>
using Program = Step<n>;
template <Gpt n, const Mesh& mesh, const Schedule& schedule = schedules::one_forward_one_backward>
constexpr Bytes of_layers = activations(plan<Pipelined<schedule, Program<n>>, mesh>);

constexpr Mesh alone{};
constexpr Mesh eight_ranks{tensor = 8};
constexpr std::int64_t a = 64, s = 2048, h = 6144, b = 4, L = 48, t = 8, sbh = s * b * h, scores = a * s * s * b;
constexpr Policy published_policy = Policy::saved_as_published;

template <Saved saved, bool slices, Policy policy, const Mesh& mesh>
constexpr Bytes bytes22 = of_layers<gpt22(saved, slices, policy), mesh>;
template <Saved saved, bool slices, const Mesh& mesh>
constexpr std::int64_t as_published = bytes22<saved, slices, published_policy, mesh>.rest;

// Table 2: no parallelism, tensor, with sequence; either with the scores made again; whole layers again.
static_assert(as_published<Saved::everything, false, alone> == L * (34 * sbh + 5 * scores));
static_assert(as_published<Saved::everything, false, eight_ranks> == L * (10 * sbh + 24 * sbh / t + 5 * scores / t));
static_assert(as_published<Saved::everything, true, eight_ranks> == L * (34 * sbh + 5 * scores) / t);
static_assert(as_published<Saved::selective, false, eight_ranks> == L * (10 * sbh + 24 * sbh / t));
static_assert(as_published<Saved::selective, true, eight_ranks> == L * 34 * sbh / t);
static_assert(as_published<Saved::recomputed_as_published, false, eight_ranks> == L * 2 * sbh);
static_assert(as_published<Saved::recomputed_as_published, true, eight_ranks> == L * 2 * sbh / t);

// Its parts. Attention 11 sbh + 5 a s^2 b: the input of the three products; queries, and what the projection is of;
// keys; values; a mask; softmax; its dropout, one byte of three the mask.
constexpr auto& whole = plan<Program<gpt22(Saved::everything, false, published_policy)>, alone>;
static_assert(made(whole, "norm1.gain", "norm_rows") == L * 2 * sbh);
static_assert(made(whole, "query_bias", "transpose") == L * (2 + 2) * sbh);
static_assert(made(whole, "key_bias", "transpose") == L * 2 * sbh);
static_assert(made(whole, "value_bias", "transpose") == L * 2 * sbh);
static_assert(made(whole, "projection_bias", "stored_dropout") == L * sbh);
static_assert(made(whole, "query_bias", "normalized_exponential") == L * 2 * scores);
static_assert(made(whole, "query_bias", "stored_dropout") == L * (2 + 1) * scores);
// The perceptron 19 sbh: its input, what gelu is of and gives, a mask. Two norms, 2 sbh each: what they are of.
static_assert(made(whole, "norm2.gain", "norm_rows") == L * 2 * sbh);
static_assert(made(whole, "up_bias", "add") == L * 8 * sbh && made(whole, "up_bias", "gelu") == L * 8 * sbh);
static_assert(made(whole, "down_bias", "stored_dropout") == L * sbh);
static_assert(made(whole, "place", "carry") == L * 2 * sbh && made(whole, "place", "add") == L * 2 * sbh);

// The library's own policy has no masks, a byte for each element that is dropped, two on the hidden state, one on the
// scores; and no scores, 4 a s^2 b.
constexpr std::int64_t no_scores = L * 5 * scores;
static_assert(bytes22<Saved::everything, false, Policy::own, alone>.rest ==
              as_published<Saved::everything, false, alone> - L * 2 * sbh - no_scores);
static_assert(bytes22<Saved::everything, false, Policy::own, eight_ranks>.rest ==
              as_published<Saved::everything, false, eight_ranks> - L * 2 * sbh - no_scores / t);
static_assert(bytes22<Saved::selective, true, Policy::own, eight_ranks>.rest ==
              as_published<Saved::selective, true, eight_ranks> - L * 2 * sbh / t);
// With sequence parallelism it keeps what was gathered for two products, where the published policy keeps a slice.
static_assert(bytes22<Saved::everything, true, Policy::own, eight_ranks>.rest ==
              as_published<Saved::everything, true, eight_ranks> - L * 2 * sbh / t - no_scores / t +
                  L * 2 * (2 * sbh - 2 * sbh / t));
// And it has statistics: mean and variance of two norms' rows, one number of each row of scores.
static_assert(bytes22<Saved::everything, false, Policy::own, alone>.statistics ==
              L * (2 * 2 * 4 * s * b + 4 * a * s * b));
static_assert(bytes22<Saved::everything, true, Policy::own, eight_ranks>.statistics ==
              L * (2 * 2 * 4 * s * b + 4 * a * s * b) / t);
static_assert(bytes22<Saved::inputs, false, Policy::own, eight_ranks>.statistics == 0);
// All in all it takes at most what is published.
template <Saved saved, bool slices, const Mesh& mesh, Saved published = saved>
constexpr bool at_most = bytes22<saved, slices, Policy::own, mesh>.all() <= as_published<published, slices, mesh>;
static_assert(at_most<Saved::everything, false, alone>);
static_assert(at_most<Saved::everything, false, eight_ranks> && at_most<Saved::everything, true, eight_ranks>);
static_assert(at_most<Saved::selective, true, eight_ranks>);
static_assert(at_most<Saved::inputs, false, eight_ranks, Saved::recomputed_as_published>);

// Figure 1, GiB on the first GPU: tensor parallelism only, and sequence parallelism with the scores made again.
constexpr double gib = 1 << 30;
// Of 16 micro-batches, as many as are ever in flight; of the paper's 64 below.
constexpr Mesh stages{stage = 8, tensor = 8};
constexpr Gpt with_micro_batches(int m, Gpt n) {
  n.micro_batches = m;
  return n;
}
template <Saved saved, bool slices>
constexpr double gib175 =
    static_cast<double>(
        of_layers<with_micro_batches(16, gpt175(saved, slices, published_policy)), stages, schedules::interleaved<3>>.rest) /
    gib;
static_assert(static_cast<double>(as_published<Saved::everything, false, eight_ranks>) / gib == 59.25);
static_assert(static_cast<double>(as_published<Saved::selective, true, eight_ranks>) / gib == 9.5625);
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
constexpr Gpt many_micro_batches = gpt175(Saved::selective, true, published_policy),
              some_micro_batches = with_micro_batches(16, many_micro_batches),
              few_micro_batches = with_micro_batches(4, many_micro_batches);
template <Gpt n, int r, const Schedule& schedule = schedules::one_forward_one_backward>
constexpr std::int64_t bytes_in_flight = of_layers<n, seen_from<r>, schedule>.rest;
constexpr std::int64_t layer175 = 34 * 2048 * 12288 / t;
static_assert(bytes_in_flight<some_micro_batches, 5> == 3 * 12 * layer175);
static_assert(bytes_in_flight<few_micro_batches, 0> == 4 * 12 * layer175);
static_assert(bytes_in_flight<few_micro_batches, 7, schedules::gpipe> == 4 * 12 * layer175);
static_assert(of_layers<some_micro_batches, stages, schedules::interleaved<3>>.rest == (14 + 16 + 1) * 4 * layer175);

}  // namespace

TEST_CASE("of the paper's 64 micro-batches, at start-up") {
  const auto gib175_of = [](const Graph& graph) {
    return static_cast<double>(activations(*derive(graph, stages, {}, {})).rest) / gib;
  };
  CHECK(gib175_of(built<gpt175(Saved::everything, false, published_policy)>(schedules::interleaved<3>)) == 66.84375);
  CHECK(gib175_of(built<many_micro_batches>(schedules::interleaved<3>)) == 12.3515625);
  const Graph states_in_f32 =
      with_schedule(build<InF32<gpt175(Saved::everything, false)>>(), schedules::interleaved<3>);
  CHECK(static_cast<double>(states(*derive(states_in_f32, stages, {}, {}))) / gib == 45.5625);
}
TEST_CASE("in flight on every rank, at start-up") {
  const auto layers = [](const Graph& graph, int rank) {
    return static_cast<double>(activations(*derive(graph, stages.on_stage(rank), {}, {})).rest) / layer175;
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
