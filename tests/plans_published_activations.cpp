// What Korthikanti et al. (arXiv:2205.05198) print of the memory that activations take, from the live ranges of plans: their
// table 2, and figure 1 to every decimal. With masks stored, as their program does it; and how much less the library's
// own takes, and of what. A statistic that a norm keeps of each row, and a softmax that is made again, is no part of
// their figures: it is what is f32.
#include <doctest/doctest.h>

#include <parallel/question/moment.hpp>

#include "gpt_published.hpp"

using namespace published;

namespace {

/// Bytes of activations of all layers on the first rank: what is of a type, and all the rest.
struct Bytes {
  std::int64_t rest = 0, statistics = 0;
};
constexpr Bytes activations(const Plan& plan) {
  Bytes bytes;
  for (const Allocation& a : allocations(plan)) {
    if (a.use != Use::activations) continue;
    const Value& value = plan.graph.value(a.owner);
    const Region& region = plan.graph.region(value.region);
    if (region.kind != RegionKind::layers) continue;
    // of what layers carry also what the last one returns has its place
    const std::int64_t own = plan.graph.maker(a.owner).is(Structural::carry) ? a.bytes / (region.count + 1) : 0;
    (value.type.dtype == DType::f32 ? bytes.statistics : bytes.rest) += a.bytes - own;
  }
  return bytes;
}
template <Gpt n>
using Program = Step<n>;
template <Gpt n, const Mesh& mesh, const Schedule& schedule = schedules::one_forward_one_backward>
constexpr Bytes of_layers = activations(plan<Pipelined<schedule, Program<n>>, mesh>);

constexpr Mesh alone{};
constexpr Mesh eight_ranks{tensor = 8};
constexpr std::int64_t a = 64, s = 2048, h = 6144, b = 4, L = 48, t = 8, sbh = s * b * h;

template <Saved saved, bool slices, Masks masks, const Mesh& mesh>
constexpr Bytes bytes22 = of_layers<gpt22(saved, slices, masks), mesh>;

// Table 2: as published, no parallelism, tensor, with sequence, both with the scores made again, whole layers again.
static_assert(bytes22<Saved::everything, false, Masks::stored, alone>.rest == L * (34 * sbh + 5 * a * s * s * b));
static_assert(bytes22<Saved::everything, false, Masks::stored, eight_ranks>.rest ==
              L * (10 * sbh + 24 * sbh / t + 5 * a * s * s * b / t));
static_assert(bytes22<Saved::selective, false, Masks::stored, eight_ranks>.rest == L * (10 * sbh + 24 * sbh / t));
static_assert(bytes22<Saved::selective, true, Masks::stored, eight_ranks>.rest == L * (34 * sbh / t));
static_assert(bytes22<Saved::as_published, false, Masks::stored, eight_ranks>.rest == L * (2 * sbh));
static_assert(bytes22<Saved::as_published, true, Masks::stored, eight_ranks>.rest == L * (2 * sbh / t));

// The same of the library's own: less by the masks, a byte for each element that is dropped; two on the hidden state, one
// on the scores.
static_assert(bytes22<Saved::everything, false, Masks::drawn, alone>.rest ==
              bytes22<Saved::everything, false, Masks::stored, alone>.rest - L * (2 * sbh + a * s * s * b));
static_assert(bytes22<Saved::everything, false, Masks::drawn, eight_ranks>.rest ==
              bytes22<Saved::everything, false, Masks::stored, eight_ranks>.rest - L * (2 * sbh + a * s * s * b / t));
static_assert(bytes22<Saved::selective, true, Masks::drawn, eight_ranks>.rest ==
              bytes22<Saved::selective, true, Masks::stored, eight_ranks>.rest - L * 2 * sbh / t);
// And more by statistics: mean and variance of two norms' rows, largest and sum of each row of scores made again.
static_assert(bytes22<Saved::everything, false, Masks::drawn, alone>.statistics == L * 2 * 2 * 4 * s * b);
static_assert(bytes22<Saved::selective, true, Masks::drawn, eight_ranks>.statistics ==
              L * (2 * 2 * 4 * s * b / t + 2 * 4 * a * s * b / t));
static_assert(bytes22<Saved::inputs, false, Masks::drawn, eight_ranks>.statistics == 0);

// Figure 1, GiB on the first GPU: tensor parallelism only, and sequence parallelism with the scores made again.
constexpr double gib = 1 << 30;
constexpr Mesh stages{stage = 8, tensor = 8};
template <Saved saved, bool slices>
constexpr double gib175 =
    static_cast<double>(of_layers<gpt175(saved, slices, Masks::stored), stages, schedules::interleaved<3>>.rest) / gib;
static_assert(static_cast<double>(bytes22<Saved::everything, false, Masks::stored, eight_ranks>.rest) / gib == 59.25);
static_assert(static_cast<double>(bytes22<Saved::selective, true, Masks::stored, eight_ranks>.rest) / gib == 9.5625);
static_assert(gib175<Saved::everything, false> == 66.84375);
static_assert(gib175<Saved::selective, true> == 12.3515625);

}  // namespace

TEST_CASE("the library's own policies take at most what is published, statistics and all") {
  const auto all = [](const Bytes& bytes) { return bytes.rest + bytes.statistics; };
  CHECK(all(bytes22<Saved::everything, false, Masks::drawn, alone>) <=
        all(bytes22<Saved::everything, false, Masks::stored, alone>));
  CHECK(all(bytes22<Saved::everything, false, Masks::drawn, eight_ranks>) <=
        L * (10 * sbh + 24 * sbh / t + 5 * a * s * s * b / t));
  CHECK(all(bytes22<Saved::selective, true, Masks::drawn, eight_ranks>) <= L * 34 * sbh / t);
  CHECK(all(bytes22<Saved::inputs, false, Masks::drawn, eight_ranks>) <= L * 2 * sbh);
}
