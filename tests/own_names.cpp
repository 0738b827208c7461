// A program whose own names are those of the library's internals, beside `using namespace parallel`.
#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

namespace cuda {
constexpr int kernels = 1;
}  // namespace cuda
namespace object {
constexpr int version = 2;
}  // namespace object
namespace meta {
constexpr int members = 3;
}  // namespace meta
struct Node {
  int value = 4;
};
struct Value {
  Node node{};
};
struct Graph {
  Node root{};
};
template <class T>
struct Vector {
  T first{};
};
template <class T, int n>
struct List {
  T first{};
};
struct Event {};
struct Slot {};
struct MemoryBlock {};
struct Groups {};
struct Position {};
struct Source {};
struct Index {
  int number = 5;
};
constexpr int pack(int n) { return n; }
constexpr int local(int n) { return n; }
constexpr int needed = 6;

using namespace parallel;
using namespace parallel::axes;

struct Line {
  Parameter<float, Shape<4, 2>> weight{normal(0.5)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(x, weight) - y));
  }
};
using Step = Training<Line, AdamW, Tensor<float, Shape<8 / data, 4>>, Tensor<float, Shape<8 / data, 2>>>;
static_assert(run_as_constant<Line, Tensor<float, Shape<8 / data, 4>>, Tensor<float, Shape<8 / data, 2>>>());
static_assert(plan<Step, Mesh{data = 2}>.calls(data) > 0);

// Operations that the library has not under these names.
template <class... X>
constexpr auto hstack(const X&... x) {
  return concatenate<1>(x...);
}
template <int dim>
constexpr auto squeeze(const auto& x) {
  return take<dim, 0>(x);
}
constexpr auto clip(Distributed auto x, double bound) { return clamp(x, -bound, bound); }
// And under those that it has.
template <int power>
constexpr auto square(Distributed auto x) {
  return pow(x, power);
}
template <int dims>
constexpr auto rotary(Distributed auto x) {
  return x * static_cast<double>(dims);
}
template <class... Options>
constexpr auto log(Distributed auto x, Options... options) {
  return x * static_cast<double>(sizeof...(options));
}
struct Named {
  Parameter<float, Shape<4, 2>> weight{normal(0.5)};
  constexpr auto operator()(Distributed auto x) const { return mean(log(rotary<64>(square<3>(matmul(x, weight))), 1)); }
};
static_assert(run_as_constant<Named, Tensor<float, Shape<8 / data, 4>>>());
struct Wide {
  Parameter<float, Shape<4, 2>> weight{normal(0.5)};
  constexpr auto operator()(Distributed auto x) const {
    return mean(squeeze<1>(clip(hstack(matmul(x, weight), x), 1)));
  }
};
static_assert(run_as_constant<Wide, Tensor<float, Shape<8 / data, 4>>>());

TEST_CASE("a program has names of its own beside all of the library's public ones") {
  const Graph graph{};
  const Vector<Value> values{};
  const List<Index, 2> indices{};
  CHECK(graph.root.value + values.first.node.value + indices.first.number + pack(1) + local(2) + needed == 22);
  CHECK(cuda::kernels + object::version + meta::members == 6);
  run_threads(2, [](Threads& world) {
    const OwnedPlan planned = derive<Step>(Mesh{data = 2}, world.rank());
    Parameters parameters(planned, world.rank(), 1);
    Trainer<Threads, Cpu> trainer(planned, world, parameters, {}, 1);
    trainer.executor().input(0, std::vector<float>(32, 1));
    trainer.executor().input(1, std::vector<float>(16, 1));
    const double first = trainer.step(0.1).loss;
    CHECK(trainer.step(0.1).loss < first);
  });
}
