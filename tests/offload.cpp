// What is Stored<host>: ten steps are those of the same program on the device alone, bit for bit, and the plan says what
// lies where and what is copied.
#include <parallel/device/cpu.hpp>

#include "ten_steps.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using namespace ten_steps;

namespace {

inline constexpr int rows = 8;

template <class T>
struct Block {
  Parameter<T, Shape<5>> gain{normal(1)};
  Parameter<T, Shape<5, 9>> up{normal(0.3)};
  Parameter<T, Shape<9>> bias{normal(0.3)};
  Parameter<T, Shape<9, 5>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const {
    return x + matmul(gelu(matmul(rms_norm(x, gain), up) + bias), down);
  }
};
/// `in` is used twice, `shift` is a vector outside the layers.
template <class T>
struct Odd {
  Parameter<T, Shape<5, 5>> in{normal(0.3)};
  Layers<3, Block<T>> blocks;
  Parameter<T, Shape<5>> shift{normal(0.3)};
  Parameter<T, Shape<5, 3>> out{normal(0.3)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(matmul(blocks(matmul(x, in)) + shift, in), out) - y));
  }
};
template <class T>
using Step = Training<Odd<T>, AdamW, Tensor<T, Shape<rows / data, 5>>, Tensor<T, Shape<rows / data, 3>>>;

/// A program stored by some words on the host, over data as well, and over data alone.
struct Variant {
  std::string name;
  Graph on_host, over_data_too, over_data;
};
template <template <class...> class Program, auto... word>
Variant variant(const std::string& name) {
  return {name, build<Program<Stored<host, word...>>>(), build<Program<Stored<data, word...>, Stored<host, word...>>>(),
          build<Program<Stored<data, word...>>>()};
}
template <template <class...> class Program>
std::vector<Variant> variants() {
  return {variant<Program, Zero::states>("states"), variant<Program, Zero::gradients>("gradients"),
          variant<Program>("parameters"), variant<Program, Gathered::per_pass>("per pass"),
          variant<Program, Gathered::per_step>("per step")};
}
template <class... S>
using Once = AllStored<Step<double>, S...>;
template <class... S>
using Thrice = AllStored<Accumulate<3, Step<double>>, S...>;
template <class... S>
using InBf16 = AllStored<Step<bfloat16>, S...>;
template <class... S>
using InBf16Thrice = AllStored<Accumulate<3, Step<bfloat16>>, S...>;
template <class... S>
using Scaled = AllStored<LossScaled<Accumulate<2, Step<float16>>>, S...>;

/// Sums are added in the same order wherever they are, but those of the norm. Where the host computes otherwise than
/// the device, numbers are near.
template <class T>
void check_same(const std::vector<double>& some, const std::vector<double>& others) {
  if (!under_test::Device::asynchronous) {
    CHECK(some == others);
    return;
  }
  for (std::size_t i = 0; i < others.size(); ++i)
    CHECK(some[i] == doctest::Approx(others[i]).epsilon(std::is_same_v<T, double> ? 1e-10 : 1e-2));
}
template <class T, template <class...> class Program>
void check_all() {
  std::vector<Mesh> meshes{{data = 1}, {data = 2}};
  if (!under_test::Device::asynchronous) meshes.push_back({data = 4});
  const std::vector<double> one = losses(build<Program<>>(), Mesh{}, 0.1);
  CHECK(one.front() > one.back());
  for (const Variant& v : variants<Program>())
    for (const Mesh& mesh : meshes) {
      INFO(v.name << " on " << text(mesh));
      const std::vector<double> on_device = losses(v.over_data, mesh);
      check_same<T>(losses(v.on_host, mesh), on_device);
      check_same<T>(losses(v.over_data_too, mesh), on_device);
      check_same<T>(losses(v.over_data_too, mesh, 0.1), losses(v.over_data, mesh, 0.1));
      if (mesh.ranks() == 1) check_same<T>(losses(v.on_host, mesh, 0.1), one);
    }
}
}  // namespace

TEST_CASE("stored on the host, every parameter trains as on the device") { check_all<double, Once>(); }
TEST_CASE("the same with micro-batches") {
  if (!under_test::Device::asynchronous) check_all<double, Thrice>();
}
TEST_CASE("the same in bf16, with micro-batches and without") {
  if (!under_test::Device::asynchronous) check_all<bfloat16, InBf16>();
  check_all<bfloat16, InBf16Thrice>();
}

TEST_CASE("the same in float16, by a scaled loss") {
  if (!under_test::Device::asynchronous) check_all<float16, Scaled>();
}

namespace {
/// A part's rounded sums, or a matrix's products, are those of the device.
template <class Optimizer, class T = double>
void check_optimizer() {
  using Plain = Training<Odd<T>, Optimizer, Tensor<T, Shape<rows / data, 5>>, Tensor<T, Shape<rows / data, 3>>>;
  const typename Optimizer::Hyperparameters numbers{};
  const Variant all[] = {
      {"states", build<AllStored<Plain, Stored<host, Zero::states>>>(),
       build<AllStored<Plain, Stored<data, Zero::states>, Stored<host, Zero::states>>>(),
       build<AllStored<Plain, Stored<data, Zero::states>>>()},
      {"parameters", build<AllStored<Plain, Stored<host>>>(), build<AllStored<Plain, Stored<data>, Stored<host>>>(),
       build<AllStored<Plain, Stored<data>>>()}};
  const Graph plain = build<Plain>();
  for (const Variant& v : all)
    for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}}) {
      INFO(v.name << " on " << text(mesh));
      const std::vector<double> whole = losses<Optimizer>(plain, mesh, numbers);
      check_same<T>(losses<Optimizer>(v.on_host, mesh, numbers), whole);
      // sums over a matrix add up by ranks where they share it
      if (std::is_same_v<Optimizer, Adafactor> || std::is_same_v<Optimizer, Muon>)
        check_near(losses<Optimizer>(v.over_data, mesh, numbers), whole);
      else
        check_same<T>(losses<Optimizer>(v.over_data, mesh, numbers), whole);
      check_same<T>(losses<Optimizer>(v.over_data_too, mesh, numbers), losses<Optimizer>(v.over_data, mesh, numbers));
    }
}
}  // namespace

TEST_CASE("by every optimizer") {
  check_optimizer<Sgd>();
  check_optimizer<Nesterov>();
  check_optimizer<Adam>();
  check_optimizer<Lion>();
  check_optimizer<Adafactor>();
  check_optimizer<Muon>();
  check_optimizer<StatesIn<bfloat16, AdamW>, float>();
}

namespace {
template <class Device>
std::vector<double> five_steps(bool captured) {
  const OwnedPlan plan = derive<InBf16<Stored<host>>>(Mesh{data = 1});
  std::vector<double> seen;
  run_threads(1, [&](Threads& world) {
    ParametersIn<MemoryOf<Device>> parameters(*plan, 0, 5);
    Trainer<Threads, Device> trainer(*plan, world, parameters, AdamW::Hyperparameters{}, 3);
    const auto x = program::numbers<double>(rows * 5, 1), y = program::numbers<double>(rows * 3, 2);
    trainer.executor().input(0, std::vector<bfloat16>(x.begin(), x.end()));
    trainer.executor().input(1, std::vector<bfloat16>(y.begin(), y.end()));
    if constexpr (Device::asynchronous)
      if (captured) trainer.executor().capture();
    for (int step = 0; step < 5; ++step) seen.push_back(trainer.step(1e-2).loss);
  });
  return seen;
}
}  // namespace

TEST_CASE("a step that a device captures, too") {
  const std::vector<double> steps = five_steps<under_test::Device>(false);
  CHECK(five_steps<under_test::Device>(true) == steps);
  CHECK(steps.front() > steps.back());
}

namespace {
template <class... Word>
struct Deep {
  Parameter<double, Shape<5, 5>> in{normal(0.3)};
  Layers<4, Block<double>, Word...> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(matmul(x, in)))); }
};
template <int micro_batches, class... Word>
using DeepStep = Accumulate<micro_batches, Training<Deep<Word...>, AdamW, Tensor<double, Shape<rows / data, 5>>>>;
template <int micro_batches>
void check_kept() {
  const Graph plain = build<DeepStep<micro_batches>>();
  for (const Graph& graph :
       {build<DeepStep<micro_batches, KeepOnHost>>(), build<DeepStep<micro_batches, KeepOnHost, Recompute<>>>(),
        build<DeepStep<micro_batches, Recompute<2, Repeat::collectives>, KeepOnHost>>(),
        build<AllStored<DeepStep<micro_batches, KeepOnHost>, Stored<data>>>(),
        build<AllStored<DeepStep<micro_batches, Recompute<&operation::gelu>, KeepOnHost>, Stored<host>>>()})
    for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}}) {
      const OwnedPlan plan = derive(graph, mesh, {}, {}), whole = derive(plain, mesh, {}, {});
      CHECK(plan->memory.of(Use::activations) < whole->memory.of(Use::activations) / 2);
      check_near(losses(graph, mesh), losses(plain, mesh));
    }
}
}  // namespace

TEST_CASE("what layers keep lies on the host") {
  check_kept<1>();
  check_kept<3>();
}

namespace {
/// The first row of a matrix has no gradient, and begins with zeros: numbers that a kernel must not take for others.
struct Dead {
  Parameter<double, Shape<5, 4>> w{zeros};
  Parameter<double, Shape<4>> b{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w) + b)); }
};
template <class Device, class... S>
std::vector<double> with_dead_row() {
  const OwnedPlan plan =
      derive<AllStored<Training<Dead, Muon, Tensor<double, Shape<rows / data, 5>>>, S...>>(Mesh{data = 1});
  std::vector<double> seen;
  run_threads(1, [&](Threads& world) {
    ParametersIn<MemoryOf<Device>> parameters(*plan, 0, 5);
    Trainer<Threads, Device> trainer(*plan, world, parameters, Muon::Hyperparameters{.learning_rate = 0.1}, 3);
    std::vector<double> x = program::numbers<double>(rows * 5, 1);
    for (std::size_t i = 0; i < x.size(); i += 5) x[i] = 0;
    trainer.executor().input(0, x);
    for (int step = 0; step < 5; ++step) seen.push_back(trainer.step().loss);
  });
  return seen;
}
}  // namespace

TEST_CASE("matrices that begin with zeros, on any device as on the CPU") {
  const std::vector<double> cpu = with_dead_row<CpuDouble>();
  check_near(with_dead_row<under_test::Device>(), cpu);
  check_near(with_dead_row<under_test::Device, Stored<host>>(), cpu);
}
