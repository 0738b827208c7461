// Measures the machine that this runs on as prices see it: with the library's own kernels and threads, on 1, 2, ...
// ranks at once.
#pragma once
#include <parallel/cost/machine.hpp>
#include <parallel/device/cpu/kernels.hpp>
#include <parallel/operation/scale.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/executor.hpp>
#include <parallel/run/parameters.hpp>

#include "probes.hpp"

namespace bench {

namespace probes {
/// The three products of a layer with `rows` rows, m channels in and n out: forward, gradient of the input, gradient of
/// the weight.
inline void layer(std::vector<Probe>& all, const std::string& name, DType dtype, std::int64_t rows, std::int64_t m,
                  std::int64_t n) {
  const double flops = 2 * static_cast<double>(rows * m * n);
  using Extents = KernelRun::Extents;
  const auto add = [&](const char* which, const Extents& a, const Extents& b, const Extents& c, int left, int right) {
    using Tensors = KernelRun::Tensors;
    auto run = std::make_shared<KernelRun>(CpuDouble{}, operation::matmul, dtype, Tensors{a, b}, Tensors{c},
                                           operation::Product(1, left, right, 0));
    all.push_back({name + which + std::to_string(m) + "x" + std::to_string(n), flops, [run](Threads&) { (*run)(); }});
  };
  add("forward ", {rows, m}, {m, n}, {rows, n}, 0, 0);
  add("input ", {rows, n}, {m, n}, {rows, m}, 0, 1);
  add("weight ", {rows, m}, {rows, n}, {m, n}, 1, 0);
}

/// Scores that causal attention computes, of some queries at a time up to the keys of the last.
inline double computed_scores(std::int64_t batch, std::int64_t context, std::int64_t heads) {
  const std::int64_t some = std::min<std::int64_t>(context, account::cpu::queries_alike);
  return 0.5 * static_cast<double>(batch * heads * context * (context + some));
}
inline void attention(std::vector<Probe>& all, std::int64_t batch, std::int64_t context, std::int64_t heads,
                      std::int64_t size) {
  const KernelRun::Extents q{batch, context, heads, size}, statistic{batch, context, heads};
  const double scale = 1 / std::sqrt(static_cast<double>(size)), work = computed_scores(batch, context, heads);
  using Tensors = KernelRun::Tensors;
  const auto run = [&](Kernel kernel, const Tensors& operands, const Tensors& results) {
    return std::make_shared<KernelRun>(kernel, DType::f32, operands, results, Ints{1}, scale);
  };
  auto forward = run(cpu::attention<float>, {q, q, q}, {q, statistic});
  auto backward = run(cpu::attention_gradient<float>, {q, q, q, q, statistic, q}, {q, q, q});
  const std::string name = "attention of " + std::to_string(size) + " ";
  all.push_back({name + "forward", work, [forward](Threads&) { (*forward)(); }});
  all.push_back({name + "backward", work, [backward](Threads&) { (*backward)(); }});
}

/// c = a + b and b = a a, of `bytes` in all that each touches; with what a write reads before, they move 4 / 3 and 3 /
/// 2 of that.
inline void streams(std::vector<Probe>& all, const std::string& name, std::int64_t bytes) {
  const KernelRun::Extents n{bytes / 12}, half{bytes / 8};
  auto add = std::make_shared<KernelRun>(cpu::binary<float, cpu::Add>, DType::f32, KernelRun::Tensors{n, n},
                                         KernelRun::Tensors{n});
  auto square = std::make_shared<KernelRun>(cpu::unary<float, cpu::Square>, DType::f32, KernelRun::Tensors{half},
                                            KernelRun::Tensors{half});
  all.push_back({name + "add", 4 * static_cast<double>(bytes) / 3, [add](Threads&) { (*add)(); }});
  all.push_back({name + "square", 3 * static_cast<double>(bytes) / 2, [square](Threads&) { (*square)(); }});
}

inline void functions(std::vector<Probe>& all, std::int64_t elements) {
  const KernelRun::Extents n{elements};
  auto forward = std::make_shared<KernelRun>(cpu::unary<float, cpu::Gelu<float>>, DType::f32, KernelRun::Tensors{n},
                                             KernelRun::Tensors{n});
  auto backward = std::make_shared<KernelRun>(cpu::gradient<float, cpu::GeluDerivative<float>>, DType::f32,
                                              KernelRun::Tensors{n, n}, KernelRun::Tensors{n});
  all.push_back({"functions gelu", static_cast<double>(elements), [forward](Threads&) { (*forward)(); }});
  all.push_back({"functions gelu_gradient", static_cast<double>(elements), [backward](Threads&) { (*backward)(); }});
}

/// Every call takes the next part of 16 MiB, so that messages are not found in the caches.
inline void all_reduce(std::vector<Probe>& all, const std::string& name, int ranks, std::int64_t bytes) {
  constexpr std::int64_t room = 16 << 20;
  struct Buffers {
    HostMemory in{room}, out{room};
    std::int64_t at = 0;
  };
  auto buffers = std::make_shared<Buffers>();
  const auto run = [buffers, bytes](Threads& world) {
    Exchange e;
    e.in = buffers->in.data() + buffers->at;
    e.out = buffers->out.data() + buffers->at;
    e.count = bytes / 4;
    exchange(world, e);
    buffers->at = (buffers->at + aligned(bytes)) % room;
  };
  all.push_back(
      {name + std::to_string(bytes), sent(Collective::all_reduce, static_cast<double>(bytes), ranks), run, true, 2e-4});
}
}  // namespace probes

/// The bytes that a kernel's operands and results may have to be as fast as in the cache, and both bandwidths.
inline constexpr std::int64_t working_sets[] = {1 << 18, 1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 26};
inline std::string working_set(std::int64_t bytes) { return "stream " + std::to_string(bytes) + " "; }

/// What rates are measured by, on each of so many ranks.
inline std::vector<Probe> probes_of_rates(int ranks, bool all_types) {
  std::vector<Probe> all;
  probes::layer(all, "f32 ", DType::f32, 256, 384, 1536);
  probes::layer(all, "f32 ", DType::f32, 256, 768, 768);
  probes::layer(all, "f32 ", DType::f32, 256, 256, 1024);
  if (all_types) probes::layer(all, "f64 ", DType::f64, 256, 384, 1536);
  if (all_types) probes::layer(all, "bf16 ", DType::bf16, 256, 384, 1536);
  if (all_types) probes::layer(all, "f16 ", DType::f16, 256, 384, 1536);
  probes::attention(all, 8, 128, 4, 64);
  probes::attention(all, 8, 128, 4, 16);
  probes::functions(all, 1 << 16);
  for (const std::int64_t bytes : working_sets) probes::streams(all, working_set(bytes), bytes);
  probes::all_reduce(all, "word ", ranks, 4);
  for (const std::int64_t bytes : {1 << 20, 1 << 22}) probes::all_reduce(all, "message ", ranks, bytes);
  return all;
}
inline Rates rates_of(const Probes& found, int ranks, bool all_types) {
  Rates r;
  r.ranks = ranks;
  const auto f32 = static_cast<int>(DType::f32);
  r.products[f32] = found.rate("f32 ");
  if (all_types) r.products[static_cast<int>(DType::f64)] = found.rate("f64 ");
  if (all_types) r.products[static_cast<int>(DType::bf16)] = found.rate("bf16 ");
  if (all_types) r.products[static_cast<int>(DType::f16)] = found.rate("f16 ");
  // A score costs 4 FLOP for each element of its head forward and 10 backward, and something beside them: two sizes of
  // heads tell them apart. mean of both directions
  const double wide = 1 / found.rate("attention of 64 "), narrow = 1 / found.rate("attention of 16 ");
  const double product = (wide - narrow) / (64 - 16), beside = wide - 64 * product;
  if (product > 0) r.attention[f32] = 7 / product;
  if (product > 0 && beside > 0) r.scores[f32] = 1 / beside;
  r.functions[f32] = found.rate("functions ");
  r.memory_bandwidth = found.rate(working_set(1 << 26));
  r.cache_bandwidth = found.rate(working_set(1 << 22));
  // the largest working set that is nearer to the cache's bandwidth than to the memory's
  for (const std::int64_t bytes : working_sets)
    if (found.rate(working_set(bytes)) * 2 > r.cache_bandwidth + r.memory_bandwidth)
      r.cache_bytes = static_cast<double>(bytes);
  if (ranks > 1) {
    r.link.latency = found.median("word 4") / (2 * (ranks - 1));
    r.link.bandwidth = found.rate("message ");
  }
  return r;
}
inline Rates measure_rates(int ranks, int rounds, bool all_types) {
  Probes found(ranks, rounds);
  found.run([&](Threads&) { return probes_of_rates(ranks, all_types); });
  return rates_of(found, ranks, all_types);
}

/// A chain of operations so small that they take no time but their launch.
template <int n, class X>
constexpr auto tiny_chain(const X& x) {
  if constexpr (n == 0)
    return x;
  else
    return tiny_chain<n - 1>(2.0 * x);
}
struct Tiny {
  static constexpr int length = 64;
  constexpr auto operator()(Distributed auto x) const { return tiny_chain<length>(x); }
};
/// Seconds per operation of the executor with kernels that have four numbers to compute.
inline double measure_launch(int rounds) {
  const OwnedPlan plan = derive<Evaluation<Tiny, Tensor<float, Shape<4>>>>(Mesh{});
  std::vector<double> times;
  run_threads(1, [&](Threads& world) {
    Parameters parameters(plan, 0, 1);
    Executor<Threads, Cpu> executor(plan, world, parameters);
    executor.input(0);  // zeros
    for (int round = -1; round < rounds; ++round) {
      const double time = seconds([&] {
        for (int i = 0; i < 1000; ++i) executor.run();
      });
      if (round >= 0) times.push_back(time / 1000 / Tiny::length);
    }
  });
  return spread(times).median;
}

/// The whole description: rates of 1, 2, 4, ... ranks up to `ranks`, and of `ranks`.
inline Machine measure_machine(int ranks, int rounds, bool all_types = true) {
  Machine m;
  m.launch = measure_launch(rounds);
  m.attention_block = static_cast<int>(account::cpu::queries_alike);
  m.write_allocates = true;
  for (int n = 1; n < ranks; n *= 2) m.rates.push_back(measure_rates(n, rounds, all_types));
  m.rates.push_back(measure_rates(ranks, rounds, all_types));
  return m;
}

}  // namespace bench
