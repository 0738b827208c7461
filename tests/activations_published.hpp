// What the layers of a GPT keep for the backward pass on the first rank, from the live ranges of a plan. A statistic that
// a norm keeps of each row, and a softmax that is made again, is no part of published figures: it is what is f32.
#pragma once
#include <parallel/question/moment.hpp>

#include "gpt_published.hpp"

namespace published {

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
template <Gpt n, const Mesh& mesh, const Schedule& schedule = schedules::one_forward_one_backward>
constexpr Bytes of_layers = activations(plan<Pipelined<schedule, Step<n>>, mesh>);
inline constexpr double gib = 1 << 30;

}  // namespace published
