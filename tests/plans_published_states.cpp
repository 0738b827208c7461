// Model states as ZeRO's paper prints them (Rajbhandari et al., 2020, table 1 and figure 1): 16 bytes for a parameter in
// mixed precision with Adam, and what each stage leaves of them, read off the live ranges of GPTs' plans; what other
// policies take for a parameter, and what ZeRO-Offload leaves on the device.
#include <doctest/doctest.h>

#include <parallel/parallel.hpp>
#include <parallel/question/moment.hpp>

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

/// A GPT's layers without biases and norms: 4 h^2 + 2 h widened parameters each, which sizes of models are counted by.
template <int layers, int h, int widened, class T>
struct Gpt {
  struct Block {
    static constexpr int heads = h / 125;
    Parameter<T, Shape<h, 3, heads, 125>> qkv;
    Parameter<T, Shape<heads, 125, h>> projection;
    Parameter<T, Shape<h, widened>> up;
    Parameter<T, Shape<widened, h>> down;
    constexpr auto operator()(Distributed auto x) const {
      const auto all = matmul(x, qkv);
      const auto y = x + matmul<2>(attention(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all)), projection);
      return y + matmul(gelu(matmul(y, up)), down);
    }
  };
  Layers<layers, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
template <int micro_batches, int layers, int h, int widened, class T = bfloat16>
using Step =
    Accumulate<micro_batches, Training<Gpt<layers, h, widened, T>, AdamW, Wanted<T, Shape<1024 / data, 4, h>>>>;
/// Gradients are added in bf16, as there.
template <class Program>
using Rounded = SumsIn<Program, Reduced<bfloat16>, Accumulated<bfloat16>>;
// 1.5, 7.5, 128 and 1000 thousand millions of parameters
template <int micro_batches>
using Gpt2 = Rounded<Step<micro_batches, 20, 2'500, 10'000>>;
template <int micro_batches>
using Small = Rounded<Step<micro_batches, 25, 5'000, 20'000>>;
template <int micro_batches>
using Large = Rounded<Step<micro_batches, 20, 20'000, 120'000>>;
template <int micro_batches>
using Trillion = Rounded<Step<micro_batches, 100, 25'000, 150'000>>;
// Two micro-batches, where stage 1 has all gradients, as the paper counts; one for the other stages.
template <template <int> class Model>
using Stage1 = AllStored<Model<2>, Stored<data, Zero::states>>;
template <template <int> class Model>
using Stage2 = AllStored<Model<1>, Stored<data, Zero::gradients>>;
template <template <int> class Model>
using Stage3 = AllStored<Model<1>, Stored<data>>;

/// Layers that are gathered for a use and then gone, which the paper does not count.
constexpr bool under_way(const Plan& p, const Allocation& a) {
  const Node& maker = p.graph.maker(a.owner);
  return gathers_parameter(p.graph, maker) && p.graph.region(maker.region).kind == RegionKind::layers;
}
/// The most bytes of parameters, their copies in bf16, gradients and optimizer states that a rank has at one time.
constexpr std::int64_t states_of(const Plan& p) {
  Vector<std::int64_t> at;
  at.resize(static_cast<int>(p.events.size()) + 1, p.memory.of(Use::parameters) + p.memory.of(Use::optimizer_state));
  for (const Allocation& a : allocations(p))
    if (a.use == Use::gradients || (a.use == Use::parameters_in_use && !under_way(p, a)))
      for (int e = a.first; e <= a.last; ++e) at[e] += a.bytes;
  std::int64_t most = 0;
  for (const std::int64_t bytes : at) most = bytes > most ? bytes : most;
  return most;
}
template <class Program, int ranks>
constexpr std::int64_t states = states_of(plan<Program, Mesh{data = ranks}>);

constexpr std::int64_t pieces = 4 * 6 * 64;  // each of at most six parts of four matrices is filled up to 64 bytes
/// A figure of the paper, in GB, or as many bytes for each of so many parameters, in thousand millions.
constexpr bool is(std::int64_t bytes, double paper, std::int64_t padding = pieces) {
  const std::int64_t printed = static_cast<std::int64_t>(paper * 1e9);
  return bytes >= printed && bytes < printed + padding;
}
/// A row of the table: what stages 1, 2 and 3 leave on each of so many ranks.
template <template <int> class Model, int ranks>
constexpr bool row(double stage1, double stage2, double stage3) {
  return is(states<Stage1<Model>, ranks>, stage1) && is(states<Stage2<Model>, ranks>, stage2) &&
         is(states<Stage3<Model>, ranks>, stage3);
}
static_assert(is(states<Small<2>, 1>, 120) && is(states<Large<2>, 1>, 2048));
static_assert(row<Small, 1>(120, 120, 120));
static_assert(row<Small, 4>(52.5, 41.25, 30));
static_assert(row<Small, 16>(35.625, 21.5625, 7.5));
static_assert(row<Small, 64>(31.40625, 16.640625, 1.875));
static_assert(row<Large, 1>(2048, 2048, 2048));
static_assert(row<Large, 4>(896, 704, 512));
static_assert(row<Large, 16>(608, 368, 128));
static_assert(row<Large, 64>(536, 284, 32));

// "Adam's states of 1.5 thousand million parameters", f32 parameters among them, alone and on 8 ranks.
template <class Program, int ranks>
constexpr std::int64_t optimizer_memory = plan<Program, Mesh{data = ranks}>.memory.of(Use::parameters) +
                                          plan<Program, Mesh{data = ranks}>.memory.of(Use::optimizer_state);
static_assert(is(optimizer_memory<Gpt2<2>, 1>, 18) && is(optimizer_memory<Stage1<Gpt2>, 8>, 2.25));

// Bytes for a parameter under the policies that Megatron-Core's documents name, alone and with the optimizer on d ranks.
// 18 -> 6 + 12 / d: bf16, added in f32; what is summed without any word.
using Bf16 = Step<2, 20, 2'500, 10'000>;
using Bf16OnRanks = AllStored<Bf16, Stored<data, Zero::states>>;
static_assert(is(states<Bf16, 1>, 1.5 * 18));
static_assert(is(states<Bf16OnRanks, 4>, 1.5 * (6 + 12. / 4)) && is(states<Bf16OnRanks, 64>, 1.5 * (6 + 12. / 64)));
// 16 -> 8 + 8 / d: all in f32. The part of a gradient that a rank takes over lies beside the sum that it is of, which
// the published count has in one place: a third of the parameters at a time, those of one matrix.
using F32 = Step<2, 20, 2'500, 10'000, float>;
using F32OnRanks = AllStored<F32, Stored<data, Zero::states>>;
static_assert(is(states<F32, 1>, 1.5 * 16));
static_assert(is(states<F32OnRanks, 4>, 1.5 * (8 + 8. / 4) + 0.5 * 4 / 4));
static_assert(is(states<F32OnRanks, 64>, 1.5 * (8 + 8. / 64) + 0.5 * 4 / 64));
// 20 -> 4 + 16 / d has each gradient twice, in half and in f32 for the optimizer. No word asks for that: reduced in f32,
// it is so of one matrix at a time, and by then what was used in bf16 is gone. So 16 -> 4 + 12 / d remains.
using Widened = SumsIn<Bf16, Accumulated<bfloat16>>;
static_assert(states<Widened, 1> < 17 * 1'500'000'000LL);
static_assert(is(states<AllStored<Widened, Stored<data, Zero::states>>, 4>, 1.5 * (4 + 12. / 4)));

// ZeRO-Offload (Ren et al., 2021, table 1): of 16 bytes for a parameter 4 stay on the GPU where the host has the
// optimizer's states and step, and 2 where it has the gradients too; 4 are copied in a step. Its row of 14 cannot be
// said: it has gradients on the host and the step on the GPU, where they would come back; here who has the states makes
// the step.
using OnHost = AllStored<Small<2>, Stored<host, Zero::states>>;
using GradientsToo = AllStored<Small<1>, Stored<host, Zero::gradients>>;
static_assert(is(states<OnHost, 1>, 7.5 * 4) && is(states<GradientsToo, 1>, 7.5 * 2));
template <class Program>
constexpr double copied = plan<Program, Mesh{data = 1}>.sent(host);
constexpr double numbers = 8 * (4 + 6 + 2 + 1);  // norms, scalars of AdamW and the norm's limit, factor, commit
static_assert(copied<OnHost> <= 30e9 + numbers && copied<OnHost> >= 30e9);
static_assert(copied<GradientsToo> <= 30e9 + numbers && copied<GradientsToo> >= 30e9);

}  // namespace

TEST_CASE("the rows of more ranks and of a trillion parameters, at start-up") {
  struct Row {
    int ranks;
    double stages[3];
  };
  const auto check = [](const std::vector<Graph>& stages, std::int64_t layers, const std::vector<Row>& rows) {
    for (const Row& row : rows)
      for (std::size_t s = 0; s < 3; ++s) {
        CAPTURE(row.ranks);
        CAPTURE(s);
        // beside the pieces a number of each layer of a matrix that the ranks do not divide
        CHECK(
            is(states_of(derive(stages[s], Mesh{data = row.ranks}, {}, {})), row.stages[s], pieces + 4 * 16 * layers));
      }
  };
  check({build<Stage1<Small>>(), build<Stage2<Small>>(), build<Stage3<Small>>()}, 25,
        {{256, {30.3515625, 15.41015625, 0.46875}}, {1024, {30.087890625, 15.1025390625, 0.1171875}}});
  check({build<Stage1<Large>>(), build<Stage2<Large>>(), build<Stage3<Large>>()}, 20,
        {{256, {518, 263, 8}}, {1024, {513.5, 257.75, 2}}});
  check({build<Stage1<Trillion>>(), build<Stage2<Trillion>>(), build<Stage3<Trillion>>()}, 100,
        {{1, {16000, 16000, 16000}},
         {4, {7000, 5500, 4000}},
         {16, {4750, 2875, 1000}},
         {64, {4187.5, 2218.75, 250}},
         {256, {4046.875, 2054.6875, 62.5}},
         {1024, {4011.71875, 2013.671875, 15.625}}});
}
