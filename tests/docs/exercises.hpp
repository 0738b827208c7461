// The program of the two exercises in docs/exercises.md, and the machines that they ask of: why Adam runs out of memory
// where SGD did not, and whether data parallelism on CPUs is a good idea.
#pragma once
#include <parallel/cost/published_machines.hpp>
#include <parallel/model/transformer.hpp>
#include <parallel/parallel.hpp>

namespace exercises {

using namespace parallel;
using namespace parallel::axes;

constexpr int layers = 12, channels = 768, heads = 12, context = 256, examples = 8;

struct Block {
  models::LayerNorm<channels, float> norm1, norm2;
  Parameter<float, Shape<channels, 3, heads, channels / heads>> qkv;
  Parameter<float, Shape<heads, channels / heads, channels>> projection;
  Parameter<float, Shape<channels, 4 * channels>> up;
  Parameter<float, Shape<4 * channels, channels>> down;
  constexpr auto operator()(Distributed auto x) const {
    const auto all = matmul(norm1(x), qkv);
    const auto y =
        x +
        matmul<2>(models::self_attention<context>(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all), 0.1), projection);
    return y + matmul(gelu(matmul(norm2(y), up)), down);
  }
};
/// As large as the layers of GPT-2; `Word`: of `Layers`.
template <class... Word>
struct Network {
  Layers<layers, Block, Word...> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
template <class Optimizer, class... Word>
using Step = Training<Network<Word...>, Optimizer, Tensor<float, Shape<examples / data, context, channels>>>;

constexpr auto& with_sgd = plan<Step<Sgd>, Mesh{}>;
constexpr auto& with_adam = plan<Step<AdamW>, Mesh{}>;
constexpr std::int64_t budget = 2'000'000'000;
static_assert(with_sgd.peak_memory() <= budget && with_adam.peak_memory() > budget);

/// A desktop of eight cores on one memory: AMD Ryzen 7 5800X, data sheet: 3.8 GHz, and two units a core that multiply and
/// add 8 floats; two channels of DDR4-3200, 51.2 GB/s for all cores. Of both 80 %. One core alone draws three quarters of
/// the memory's bandwidth (docs/benchmarks.md: fma_peak). A byte of a message moves 2 n bytes of memory among n ranks.
constexpr Machine desktop(const char* name, int cores_of_a_rank) {
  Machine m;
  m.name = name;
  m.write_allocates = true;
  for (int ranks = 1; ranks * cores_of_a_rank <= 8; ranks *= 2) {
    const double memory = 0.8 * 51.2e9, share = cores_of_a_rank == 1 && ranks == 1 ? 0.75 : 1.0 / ranks;
    Rates r;
    r.ranks = ranks;
    r.products[static_cast<int>(DType::f32)] = 0.8 * cores_of_a_rank * 2 * 2 * 8 * 3.8e9;
    r.memory_bandwidth = share * memory;
    r.link = {1e-6, ranks == 1 ? memory : memory * (ranks - 1) / (ranks * ranks)};
    m.rates.push_back(r);
  }
  return m;
}
/// Eight of them, a rank each, on a network.
constexpr Machine on_network(const char* name, const Link& link) {
  Machine m = desktop(name, 8);
  m.links.push_back({"data", link});
  m.overlaps = true;
  return m;
}
inline constexpr Machine one_rank = desktop("desktop, a rank has eight cores", 8);
inline constexpr Machine ranks_of_a_core = desktop("desktop, a rank has a core", 1);
/// 10 Gb/s Ethernet, of which 80 % are left, and 30 us a message: assumed.
inline constexpr Machine ethernet = on_network("desktops on 10 Gb/s Ethernet", {30e-6, 0.8 * 1.25e9});
/// The network of dgx-a100.
inline constexpr Machine infiniband = on_network("desktops on 200 Gb/s InfiniBand", machines::dgx_a100.links[0].link);

}  // namespace exercises
