// The account of what a device takes beside a plan's tensors: kernels stay within the scratch that it states for them,
// blocks are rounded as it says, and what a run takes is what its plan says.
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <thread>

#include <doctest/doctest.h>

#include <parallel/account/gpu.hpp>
#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu/device.hpp>
#include <parallel/model/averaged.hpp>
#include <parallel/model/stale.hpp>
#include <parallel/run/executor.hpp>
#include <parallel/run/parameters.hpp>

#include "every_program.hpp"
#include "news.hpp"
#include "optimizer_steps.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using news::of_news;
using news::taken_by;

namespace {

account::Extents extents_of(const Operation& operation, const Call& call) {
  account::Extents e{.operation = operation.name, .ints = call.ints};
  const auto part = [](const View& v) {
    account::Part p{.dtype = v.dtype};
    for (int d = 0; d < v.rank; ++d) p.size.push_back(v.size[d]);
    return p;
  };
  for (const View& v : call.operands) e.operands.push_back(part(v));
  for (const View& v : call.results) e.results.push_back(part(v));
  return e;
}

/// At most what is stated, and more than half of it, or so little less that it does not matter.
void check_within(std::string_view name, std::int64_t taken, std::int64_t stated) {
  constexpr std::int64_t little = 4096;
  INFO(name << " takes " << taken << " bytes, the account says " << stated);
  CHECK(taken <= stated);
  CHECK(stated <= 2 * taken + (taken > 0 ? little : 0));
}

/// A tensor of its own.
struct Tensors {
  std::deque<std::unique_ptr<std::byte[]>> memory{};
  View operator()(std::initializer_list<std::int64_t> sizes, DType dtype = DType::f32) {
    View v;
    v.dtype = dtype;
    for (const std::int64_t n : sizes) {
      v.size[v.rank] = v.whole[v.rank] = n;
      ++v.rank;
    }
    v.data =
        memory
            .emplace_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(v.elements() * bytes_of(dtype) + 64)))
            .get();
    return v;
  }
};
void check(const Operation& operation, Call call) {
  const std::int64_t stated = account::on_cpu.scratch(extents_of(operation, call)).bytes();
  const Kernel kernel = CpuDouble{}.kernel(operation, call);
  REQUIRE((kernel != nullptr));
  check_within(operation.name, taken_by([&] { kernel(call); }), stated);
}
/// What the account says of calls that are computed at once.
std::int64_t stated_of(std::span<const Call> calls) {
  account::Scratch most;
  for (const Call& call : calls) most.grow(account::on_cpu.scratch(extents_of(*call.operation, call)));
  return most.bytes();
}
std::string names_of(std::span<const Call> calls) {
  std::string names;
  for (const Call& call : calls) names += (names.empty() ? "" : "+") + std::string(call.operation->name);
  return names;
}

/// A product and a bias, x w + b.
void check_sum(const View& x, const View& w, const View& b, const View& sum) {
  std::vector<Call> calls{{.operation = &operation::matmul, .operands = {x, w}, .results = {sum}, .ints = {1, 0, 0, 0}},
                          {.operation = &operation::add, .operands = {sum, b}, .results = {sum}}};
  const FusedKernel kernel = CpuDouble{}.fused(calls);
  REQUIRE(bool(kernel));
  check_within("matmul+add", taken_by([&] { kernel.compute(calls); }), stated_of(calls));
}

/// The CPU, with kernels that are measured: each on a thread of its own, or all together.
enum class How { apart, together };
thread_local std::int64_t of_kernels = 0;  // what those that are measured together keep
std::mutex lock;
std::set<std::string, std::less<>> measured;
template <How how>
class Measured : public CpuDouble {
 public:
  static void make_ready(const account::Scratch&) {}  // so that it shows what each kernel takes
  Kernel kernel(const Operation& operation, Call& call) const {
    const Kernel found = CpuDouble::kernel(operation, call);
    if (found == nullptr) return nullptr;
    call.context = &contexts_->emplace_back(Context{found,
                                                    {},
                                                    call.context,
                                                    std::string(operation.name),
                                                    account::on_cpu.scratch(extents_of(operation, call)).bytes()});
    return [](const Call& c) {
      const auto& kept = *static_cast<const Context*>(c.context);
      Call inner = c;
      inner.context = kept.context;
      measure(kept, [&] { kept.kernel(inner); });
    };
  }
  FusedKernel fused(std::span<Call> calls) const {
    const FusedKernel found = CpuDouble::fused(calls);
    if (!found) return {};
    calls[0].context =
        &contexts_->emplace_back(Context{nullptr, found, calls[0].context, names_of(calls), stated_of(calls)});
    const std::lock_guard hold(lock);
    for (const Call& call : calls) measured.emplace(call.operation->name);
    return {[](std::span<const Call> all) {
      const auto& kept = *static_cast<const Context*>(all[0].context);
      std::array<Call, longest_fusion> inner;
      std::copy(all.begin(), all.end(), inner.begin());
      inner[0].context = kept.context;
      measure(kept, [&] { kept.fused.compute(std::span(inner).first(all.size())); });
    }};
  }

 private:
  struct Context {
    Kernel kernel;
    FusedKernel fused;
    void* context;
    std::string name;
    std::int64_t stated;
  };
  template <class F>
  static void measure(const Context& kept, F compute) {
    if constexpr (how == How::together) {
      const std::int64_t before = of_news.now;
      compute();
      of_kernels += of_news.now - before;
      return;
    }
    const std::int64_t taken = taken_by(compute);
    const std::lock_guard hold(lock);
    measured.insert(kept.name);
    check_within(kept.name, taken, kept.stated);
  }
  std::shared_ptr<std::deque<Context>> contexts_ = std::make_shared<std::deque<Context>>();
};

/// The same, with what a plan reserves.
struct Reserved : Measured<How::together> {
  static void make_ready(const account::Scratch& scratch) { cpu::reserve(scratch); }
};

/// Runs a program's plan twice on every rank of a mesh; `after(executor)` on each of them.
template <class Device, class After>
void run(const Graph& graph, const Mesh& mesh, After after) {
  run_threads(mesh.ranks(), [&](Threads& world) {
    const int stage_here = graph.stages == nullptr ? 0 : mesh.coordinate(world.rank(), graph.stages);
    const OwnedPlan plan = derive(graph, mesh.on_stage(stage_here), {}, {});
    Parameters parameters(plan, world.rank(), 1);
    Executor<Threads, Device> executor(plan, world, parameters);
    int i = 0;
    for (const Member& m : plan->graph.members)
      if (m.role == Role::input) {
        const View v = executor.input(i++);
        if (v.data != nullptr && v.dtype != DType::i32)
          std::fill_n(v.as<std::byte>(), v.elements() * bytes_of(v.dtype), std::byte{0x3f});
      }
    for (const char* name : {"seed", "step", "temperature", "learning_rate"})
      if (executor.reads(name)) executor.scalar(name, 1);
    after(plan, executor);
  });
}

using X = Tensor<float, Shape<8 / data, 4, 16 / tensor>>;
using Classes = Tensor<int, Shape<8 / data, 4>>;
/// What no model calls, on rows that are split and on whole ones.
struct Seldom {
  Parameter<float, Shape<16 / tensor>> gain{ones}, shift{zeros};
  Parameter<float, Shape<16, 16>> w{normal(0.3)};
  constexpr auto operator()(Distributed auto x, Distributed auto classes) const {
    const auto own = x * shift;
    const auto normal_rows = layer_norm(own, gain, shift) - rms_norm(own, gain);
    const auto y = normal_rows + dropout(gelu(normal_rows + shift) + shift, 0.1);
    const auto positive = exp(tanh(y)) + sqrt(square(sigmoid(y)) + 1.0) / (relu(y) + 1.0);
    const auto chosen = where(reshape<8, 4, 1>(classes), log(positive), gelu_erf(y));
    const auto whole = to<Shape<8 / data, 4, 16>>(chosen * softmax<2>(chosen) + max<0>(chosen) * mean<0>(chosen));
    const auto turned = transpose<0, 2, 1>(whole) - concatenate<1>(slice<1, 0, 3>(transpose<0, 2, 1>(whole)),
                                                                   slice<1, 3, 16>(transpose<0, 2, 1>(whole)));
    const auto logits = matmul(transpose<0, 2, 1>(turned) + whole, cast<float>(cast<bfloat16>(w)));
    return mean_cross_entropy<16, 3>(logits, classes - classes, 0.1) +
           mean(max(softmax<2>(logits + cast<float>(reshape<8, 4, 1>(classes) + iota<Shape<16>>()))));
  }
};
/// Functions of elements, positions and losses beyond those of transformers.
struct Elements {
  Parameter<float, Shape<16 / tensor>> gain{ones};
  constexpr auto operator()(Distributed auto x, Distributed auto classes) const {
    const auto y = x * gain;
    const auto all = softplus(y) + sin(y) + cos(y) + abs(y) + sign(y) + clamp(y, -1.0, 1.0) + maximum(y, x) +
                     minimum(y, x) + pow(abs(y) + 1.0, 2.5) + pow(abs(y) + 1.0, y) + huber_loss(y, x) +
                     binary_cross_entropy(y, x) + log_softmax<2>(y);
    const auto masked = where(equal(y, x), all, where(less(y, x), y, where(less_equal(y, 0.5), all, y))) +
                        where(greater(y, x), all, where(greater_equal(y, x), y, where(not_equal(y, x), all, y)));
    const auto ints = cumulative_sum<1>(maximum(classes, classes + classes)) - minimum(classes, classes);
    const auto several = equal(classes, ints) + not_equal(classes, ints) + less(classes, ints) +
                         less_equal(classes, ints) + greater(classes, ints) + greater_equal(classes, ints);
    const auto whole = to<Shape<8 / data, 4, 16>>(y);
    const auto best = top_k<2, 3>(whole);
    const auto places = argmax<2>(y) + argmin<2>(y) + argmax<2>(whole);
    return mean(masked) + mean(min<2>(y)) + mean(max<2>(whole)) + mean(min<2>(whole)) + mean(cumulative_sum<1>(y)) +
           mean(best.values) + mean(cast<float>(best.positions)) + mean(cast<float>(places + several)) +
           mean(cast<float>(argmin<1>(classes) + argmax<1>(classes))) + mean(log_softmax<2>(whole));
  }
};
using Pictures = Tensor<float, Shape<4 / data, 3, 8, 8>>;
using Chosen = Tensor<int, Shape<4 / data, 4, 2>>;
struct Windowed {
  Parameter<float, Shape<4 / tensor, 3, 3, 3>> kernel{normal(0.3)};
  Parameter<float, Shape<4 / tensor, 2, 3, 3>> back{normal(0.3)};
  Parameter<float, Shape<4 / tensor>> gain{ones}, shift{zeros};
  constexpr auto operator()(Distributed auto x, Distributed auto places) const {
    const auto y = batch_norm(convolution<1, 1>(x, kernel), gain, shift);
    const auto pooled = max_pool<2>(y) + average_pool<2>(y);
    const auto rows = reshape<4, 4, 16>(to<Shape<4 / data, 4, 4, 4>>(pooled));
    return mean(square(transposed_convolution<2, 1>(y, back))) + mean(gather<2>(rows, places)) +
           mean(scatter_add<2>(rows, places, slice<2, 0, 2>(rows)));
  }
};
/// Stages that update without waiting for each other.
struct Apart {
  struct Block {
    Parameter<float, Shape<16, 16>> w{normal(0.3)};
    constexpr auto operator()(Distributed auto x) const { return x + tanh(matmul(x, w)); }
  };
  Layers<4 / stage, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};

/// Every axis that the program names, with two ranks.
Mesh split_mesh(const Graph& graph) {
  AxisList axes;
  for (const Value& v : graph.values) v.type.layout.collect(axes);
  Mesh mesh;
  for (const Axis* axis : axes)
    if (axis != &parallel::axes::host) mesh.axes[mesh.count++] = {axis, 2};
  return mesh;
}

}  // namespace

TEST_CASE("products stay within what the account says") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const auto& sides : {std::array<std::int64_t, 3>{1, 1, 1},
                              {1, 3000, 7},
                              {3, 200, 1500},
                              {64, 512, 2048},
                              {2500, 97, 385},
                              {520, 97, 1601},
                              {8, 140'000, 800},
                              {4200, 193, 9},
                              {0, 5, 5},
                              {5, 5, 0}})
      for (const int transposed : {0, 1}) {
        const std::int64_t m = sides[0], n = sides[1], k = sides[2];
        Tensors t;
        INFO(name_of(dtype) << " " << m << " x " << n << " x " << k);
        check(operation::matmul, Call{.operands = {transposed ? t({k, m}, dtype) : t({m, k}, dtype), t({k, n}, dtype)},
                                      .results = {t({m, n}, dtype)},
                                      .ints = {1, transposed, 0, 0}});
        if (!is_half(dtype) && !transposed)
          check_sum(t({m, k}, dtype), t({k, n}, dtype), t({n}, dtype), t({m, n}, dtype));
      }
}

TEST_CASE("convolutions stay within what the account says") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (const auto& sides :
         {std::array<std::int64_t, 4>{1, 1, 1, 1}, {3, 16, 8, 12}, {130, 70, 3, 40}, {2, 3, 5, 9}}) {
      const std::int64_t channels = sides[0], out = sides[1], window = sides[2], extent = sides[3],
                         places = extent - window + 1;
      Tensors t;
      INFO(name_of(dtype) << " " << channels << " channels, " << out << " out, windows of " << window);
      const View x = t({2, channels, extent, extent}, dtype), w = t({out, channels, window, window}, dtype),
                 y = t({2, out, places, places}, dtype);
      check(operation::convolution, Call{.operands = {x, w}, .results = {y}, .ints = {1, 1, 0, 0}});
      check(operation::transposed_convolution,
            Call{.operands = {y, w}, .results = {t({2, channels, extent, extent}, dtype)}, .ints = {1, 1, 0, 0, 0, 0}});
      check(operation::convolution_weight, Call{.operands = {x, y},
                                                .results = {t({out, channels, window, window}, dtype)},
                                                .ints = {1, 1, 0, 0, window, window}});
    }
}

TEST_CASE("attention stays within what the account says") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t causal : {0, 1})
      for (const auto& extents : {std::array<std::int64_t, 3>{1, 1, 4},
                                  {1, 700, 64},
                                  {70, 70, 16},
                                  {130, 200, 32},
                                  {40, 5000, 8},
                                  {5, 9, 400}}) {
        const std::int64_t queries = extents[0], keys = extents[1], size = extents[2];
        Tensors t;
        INFO(name_of(dtype) << " " << queries << " queries, " << keys << " keys of " << size);
        const View q = t({2, queries, 2, size}, dtype), k = t({2, keys, 1, size}, dtype),
                   v = t({2, keys, 1, size}, dtype);
        const View result = t({2, queries, 2, size}, dtype), statistic = t({2, queries, 2}, dtype);
        Call call{.operands = {q, k, v}, .results = {result, statistic}, .ints = {causal, 0, 0}, .reals = {0.5, 0}};
        check(operation::attention, call);
        for (const View& more : {result, statistic, t({2, queries, 2, size}, dtype)}) call.operands.push_back(more);
        call.results = {t({2, queries, 2, size}, dtype), t({2, keys, 1, size}, dtype), t({2, keys, 1, size}, dtype)};
        check(operation::attention_derivative, call);
      }
}

TEST_CASE("every kernel of programs stays within what the account says") {
  const auto check_kernels = []<class Program>(const char* name) {
    const Graph graph = build<Program>();
    if (std::string_view(name) == "gpt, asynchronous") return;  // is refused: its stages share a parameter
    for (const Mesh& mesh : {Mesh{}, split_mesh(graph)}) {
      INFO(std::string(name) << " on " << text(mesh));
      run<Measured<How::apart>>(graph, mesh, [](const OwnedPlan&, auto& executor) { executor.run(); });
    }
  };
  every::program(check_kernels);
  check_kernels.operator()<Training<Seldom, AdamW, X, Classes>>("seldom");
  check_kernels.operator()<Training<Elements, AdamW, X, Classes>>("elements");
  check_kernels.operator()<Training<Windowed, AdamW, Pictures, Chosen>>("windows");
  check_kernels.
  operator()<Pipelined<schedules::pipedream, Accumulate<4, Training<Apart, Sgd, Tensor<float, Shape<8, 16>>>>>>(
      "asynchronous");
  check_kernels.operator()<LossScaled<Training<Apart, KeepGradients, Tensor<float, Shape<8, 16>>>>>("a scaled loss");
  optimizer_steps::each([&]<class Optimizer>(Optimizer) {
    check_kernels.template operator()<Training<Apart, Optimizer, Tensor<float, Shape<8, 16>>>>("an optimizer");
  });
  check_kernels.operator()<Training<Seldom, Adafactor, X, Classes>>("adafactor");
  check_kernels.operator()<Training<Seldom, Muon, X, Classes>>("muon");
  check_kernels.operator()<Training<Apart, MuonMatchingAdamW, Tensor<float, Shape<8, 16>>>>("muon like adamw");
  check_kernels.operator()<Training<Seldom, Averaged<AdamW>, X, Classes>>("averages");
  check_kernels.operator()<Training<Seldom, Stale<1, Sgd>, X, Classes>>("older parameters");
  check_kernels.operator()<Training<Seldom, StatesIn<bfloat16, Adafactor>, X, Classes>>("adafactor in bf16");
  check_kernels.operator()<Training<Seldom, StatesIn<bfloat16, AdamW>, X, Classes>>("adamw in bf16");
  // What plans seldom have compute: copies of what others hold.
  for (const DType dtype : {DType::f32, DType::i32, DType::bf16, DType::f16})
    for (const Operation* o : {&operation::copy, &operation::reshape, &operation::maximum_of, &operation::beside}) {
      if (dtype == DType::i32 && o == &operation::maximum_of) continue;
      Tensors t;
      check(*o, Call{.operands = {t({3, 500}, dtype)}, .results = {t({3, 500}, dtype)}});
      measured.emplace(o->name);
    }
  for (const DType dtype : {DType::f32, DType::i32}) {
    Tensors t;
    check(operation::reorder, Call{.operands = {t({3, 500}, dtype)}, .results = {t({3, 500}, dtype)}, .ints = {1}});
  }
  measured.emplace(operation::reorder.name);
  Tensors t;
  check(operation::rounded, Call{.operands = {t({100}), t({100})}, .results = {t({100})}});
  measured.emplace(operation::rounded.name);
  std::string missing;
  const auto look = [&](std::span<const KernelRow> table) {
    for (const KernelRow& row : table)
      if (!measured.contains(row.operation->name)) missing += " " + std::string(row.operation->name);
  };
  for (const FusedRow& row : cpu::Table<float>::fused()) {
    std::vector<Call> calls;
    for (const Operation* o : row.operations) calls.push_back({.operation = o});
    if (calls.empty()) calls = {{.operation = &operation::silu}, {.operation = &operation::multiply}};  // by element
    if (!measured.contains(names_of(calls))) missing += " " + names_of(calls);
  }
  look(cpu::Table<float>::kernels());
  look(cpu::Table<int>::kernels());
  look(cpu::Table<cpu::Scalars>::kernels());
  CHECK(missing == "");
}

TEST_CASE("where scratch is reserved by the plan, no kernel asks for memory") {
  const Graph graph = build<every::NestedStep<every::Statements::nested>>();
  run<Reserved>(graph, Mesh{data = 2, tensor = 2}, [](const OwnedPlan&, auto& executor) {
    of_kernels = 0;
    const std::int64_t before = of_news.now;
    of_news.most = before;
    executor.run();
    CHECK(of_kernels == 0);
    CHECK(of_news.most - before < 100);
  });
}

TEST_CASE("a rank's scratch after two steps is what the plan says") {
  int with_scratch = 0;
  every::program([&]<class Program>(const char* name) {
    if (std::string_view(name) == "gpt, asynchronous") return;
    const Graph graph = build<Program>();
    for (const Mesh& mesh : {Mesh{}, split_mesh(graph)})
      run<Measured<How::together>>(graph, mesh, [&](const OwnedPlan& plan, auto& executor) {
        of_kernels = 0;
        executor.run();
        executor.run();
        const std::int64_t taken = of_kernels;
        const std::lock_guard hold(lock);
        INFO(std::string(name) << " on " << text(mesh));
        check_within("the program", taken, plan->beside().scratch);
        with_scratch += taken > 0 ? 1 : 0;
      });
  });
  CHECK(with_scratch > 20);
}

// Blocks of less than 4 MiB are whole cache lines, larger ones whole huge pages; a GPU has one workspace.
struct Wide {
  Parameter<float, Shape<1024, 1025>> w{normal(0.02)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& wide = plan<Training<Wide, Momentum, Tensor<float, Shape<2, 1024>>>, Mesh{}>;
static_assert(wide.memory.of(Use::parameters) == 4 * 1024 * 1025 &&
              wide.memory.of(Use::optimizer_state) == 4 * 1024 * 1025);
static_assert(wide.beside().rounding == 3 * (6 * 1024 * 1024) - 2 * 4 * 1024 * 1025 - wide.memory.arena);
static_assert(wide.beside(account::on_gpu).rounding == 0 && wide.beside(account::on_gpu).scratch == 32 * 1024 * 1024);
static_assert(wide.process_memory() == wide.peak_memory() + wide.beside().rounding + wide.beside().scratch);
static_assert(account::block_on_cpu((4 << 20) - 1) == 4 << 20 && account::block_on_cpu((4 << 20) + 1) == 6 << 20 &&
              account::block_on_cpu(1) == 64 && account::block_on_cpu(0) == 0);
