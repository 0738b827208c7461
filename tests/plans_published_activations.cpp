// What Korthikanti et al. (arXiv:2205.05198) print of the memory that GPTs take, from the live ranges of plans: their
// table 2 and its parts. As published, and what the library's own policy takes beside that, and of what.
#include <doctest/doctest.h>

#include "activations_published.hpp"

using namespace published;

namespace {

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
constexpr auto& whole = plan<Step<gpt22(Saved::everything, false, published_policy)>, alone>;
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
// Figure 1, GiB of 22B on the first GPU: tensor parallelism only, and sequence parallelism with the scores made again.
static_assert(static_cast<double>(as_published<Saved::everything, false, eight_ranks>) / gib == 59.25);
static_assert(static_cast<double>(as_published<Saved::selective, true, eight_ranks>) / gib == 9.5625);

}  // namespace

TEST_CASE("the plan made at start-up has as many bytes of activations") {
  constexpr Gpt n = gpt22(Saved::everything, false, published_policy),
                own = gpt22(Saved::everything, true, Policy::own);
  CHECK(activations(derive<Step<n>>(alone)).rest == as_published<Saved::everything, false, alone>);
  CHECK(activations(derive<Step<n>>(eight_ranks)).rest == as_published<Saved::everything, false, eight_ranks>);
  CHECK(activations(derive<Step<own>>(eight_ranks)).all() ==
        bytes22<Saved::everything, true, Policy::own, eight_ranks>.all());
}
