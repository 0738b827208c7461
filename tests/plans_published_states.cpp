// Model states as ZeRO's paper prints them (Rajbhandari et al., 2020, table 1 and figure 1): 16 bytes for a parameter in
// mixed precision with Adam, and what each stage leaves of them, read off plans.
#include <doctest/doctest.h>

#include <parallel/parallel.hpp>
#include <parallel/question/moment.hpp>

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

/// Two products by one matrix of rows times columns parameters.
template <int layers, int rows, int columns>
struct Network {
  struct Layer {
    Parameter<bfloat16, Shape<rows, columns>> w;
    constexpr auto operator()(Distributed auto x) const { return x + matmul(matmul(x, w), transpose(w)); }
  };
  Layers<layers, Layer> layers_of_it;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers_of_it(x))); }
};
/// Gradients are added in bf16, as there.
template <class Model, int rows, int micro_batches>
using Mixed = SumsIn<Accumulate<micro_batches, Training<Model, AdamW, Wanted<bfloat16, Shape<64 / data, rows>>>>,
                     Reduced<bfloat16>, Accumulated<bfloat16>>;
// 7.5 and 128 thousand millions of parameters
template <int micro_batches>
using Small = Mixed<Network<30, 10'000, 25'000>, 10'000, micro_batches>;
template <int micro_batches>
using Large = Mixed<Network<128, 25'000, 40'000>, 25'000, micro_batches>;
// Two micro-batches, where stage 1 has all gradients, as the paper counts; one for the other stages.
template <template <int> class Model>
using Stage1 = AllStored<Model<2>, Stored<data, Zero::states>>;
template <template <int> class Model>
using Stage2 = AllStored<Model<1>, Stored<data, Zero::gradients>>;
template <template <int> class Model>
using Stage3 = AllStored<Model<1>, Stored<data>>;

/// Layers that are gathered for a use and then gone, which the paper does not count.
constexpr bool under_way(const Plan& p, const Allocation& a) {
  if (a.use != Use::parameters_in_use) return false;
  const Node& maker = p.graph.maker(a.owner);
  return gathers_parameter(p.graph, maker) && p.graph.region(maker.region).kind == RegionKind::layers;
}
/// Bytes of parameters, their copies in bf16, gradients and optimizer states that a rank has when it has most of all.
constexpr std::int64_t states_of(const Plan& p) {
  const Moment most = fullest(p);
  std::int64_t bytes = most.of(Use::parameters) + most.of(Use::optimizer_state) + most.of(Use::parameters_in_use) +
                       most.of(Use::gradients);
  for (const Allocation& a : allocations(p))
    if (a.first <= most.event && most.event <= a.last && under_way(p, a)) bytes -= a.bytes;
  return bytes;
}
template <class Program, int ranks>
constexpr std::int64_t states = states_of(plan<Program, Mesh{data = ranks}>);
constexpr std::int64_t thousandth = 1'000'000;  // of a GB
/// The paper's figure; memory is given out in pieces of 64 bytes, here at most six.
constexpr bool is(std::int64_t bytes, std::int64_t paper) { return bytes >= paper && bytes < paper + 6 * 64; }

static_assert(is(states<Small<2>, 1>, 120'000 * thousandth));
static_assert(is(states<Stage1<Small>, 4>, 52'500 * thousandth));
static_assert(is(states<Stage1<Small>, 16>, 35'625 * thousandth));
static_assert(is(states<Stage1<Small>, 64>, 31'406'250'000));
static_assert(is(states<Stage2<Small>, 4>, 41'250 * thousandth));
static_assert(is(states<Stage2<Small>, 16>, 21'562'500'000));
static_assert(is(states<Stage2<Small>, 64>, 16'640'625'000));
static_assert(is(states<Stage3<Small>, 4>, 30'000 * thousandth));
static_assert(is(states<Stage3<Small>, 16>, 7'500 * thousandth));
static_assert(is(states<Stage3<Small>, 64>, 1'875 * thousandth));
static_assert(is(states<Stage1<Large>, 4>, 896'000 * thousandth));
static_assert(is(states<Stage2<Large>, 16>, 368'000 * thousandth));
static_assert(is(states<Stage3<Large>, 64>, 32'000 * thousandth));

// ZeRO-Offload (Ren et al., 2021, table 1): of 16 bytes for a parameter 4 stay on the GPU where the host has the
// optimizer's states and step, and 2 where it has the gradients too; 4 are copied in a step. (Its fourth row has gradients
// on the host and the step on the GPU, where they would come back.)
using Step = AllStored<Small<2>, Stored<host, Zero::states>>;
using StepAndGradients = AllStored<Small<1>, Stored<host, Zero::gradients>>;
static_assert(is(states<Step, 1>, 30'000 * thousandth));
static_assert(is(states<StepAndGradients, 1>, 15'000 * thousandth));
template <class Program>
constexpr double copied = plan<Program, Mesh{data = 1}>.sent(host);
constexpr double numbers = 8 * (1 + 6 + 2 + 1);  // norm, scalars of AdamW and the norm's limit, factor, commit
static_assert(copied<Step> <= 30e9 + numbers && copied<Step> >= 30e9);
static_assert(copied<StepAndGradients> <= 30e9 + numbers && copied<StepAndGradients> >= 30e9);

}  // namespace

TEST_CASE("every row of the table, at start-up") {
  const auto of = [](const Graph& graph, int ranks) {
    return static_cast<double>(states_of(*derive(graph, Mesh{data = ranks}, {}, {}))) / 1e9;
  };
  const struct {
    double parameters;
    Graph stages[3];
  } models[] = {{7.5, {build<Stage1<Small>>(), build<Stage2<Small>>(), build<Stage3<Small>>()}},
                {128, {build<Stage1<Large>>(), build<Stage2<Large>>(), build<Stage3<Large>>()}}};
  for (const auto& m : models)
    for (const double n : {4.0, 16.0, 64.0}) {
      CAPTURE(m.parameters);
      CAPTURE(n);
      CHECK(of(m.stages[0], static_cast<int>(n)) == doctest::Approx((4 + 12 / n) * m.parameters).epsilon(1e-6));
      CHECK(of(m.stages[1], static_cast<int>(n)) == doctest::Approx((2 + 14 / n) * m.parameters).epsilon(1e-6));
      CHECK(of(m.stages[2], static_cast<int>(n)) == doctest::Approx(16 / n * m.parameters).epsilon(1e-6));
    }
}
