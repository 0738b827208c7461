// Products in panels: they send what a product sends of which nothing that was gathered is kept, hold a panel at a time,
// gather the next under the current product, and give the numbers of one rank.
#include <doctest/doctest.h>

#include <parallel/device/cpu/device.hpp>
#include <parallel/question/moment.hpp>
#include <parallel/run/eager.hpp>

#include "docs/grids.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace grids;
using lockstep::Array;

namespace {

constexpr int m = 128, k = 64, n = 256;

constexpr Mesh grid(int q, int d) { return d > 1 ? Mesh{depth = d, row = q, column = q} : Mesh{row = q, column = q}; }

/// The largest message of a phase's collectives of a kind, in bytes.
constexpr std::int64_t largest(const Communication& phase, Collective kind) {
  std::int64_t most = 0;
  phase.each([&](const Node& node, std::int64_t) {
    if (node.transition.collective == kind && phase.message(node) > most) most = phase.message(node);
  });
  return most;
}
/// Whether at most so many gathers are done or under way and not used yet while a product is computed, and whether some
/// are under way in all but the last.
struct Ahead {
  int most = 0;
  int products = 0, alone = 0;  ///< and of these with nothing under way
};
constexpr Ahead ahead_in(const Plan& plan, Phase phase) {
  Ahead a;
  int gathers = 0, under_way = 0;
  for (const Event& e : plan.events) {
    const Node& node = plan.graph.node(e.node);
    if (node.phase != phase) continue;
    if (e.kind == EventKind::start) ++under_way;
    if (e.kind == EventKind::wait) --under_way;
    if (e.kind == EventKind::start && node.transition.collective == Collective::all_gather) ++gathers;
    if (e.kind != EventKind::compute || node.operation != &operation::matmul) continue;
    a.products += 1;
    a.alone += under_way == 0;
    const int used = phase == Phase::forward ? 2 * a.products : 2 * ((a.products + 1) / 2);
    if (gathers - used > a.most) a.most = gathers - used;
  }
  return a;
}

template <class Layer>
struct Summed {
  Layer layer;
  constexpr auto operator()(Distributed auto x) const { return sum(layer(x)); }
};

/// On q x q ranks, d of which are one behind the other.
template <int q, int d, int panels>
struct InSoMany {
  static constexpr auto& once = plan<Alone2<GatheredAgain<Linear<float, k, n>>, m, k, n>, grid(q, d)>;
  static constexpr auto& in_panels = plan<Alone2<InPanels<float, k, n, panels>, m, k, n>, grid(q, d)>;
  static constexpr bool same(const Communication& a, const Communication& b, const Axis& axis) {
    return a.sent(all_gather(axis)) == b.sent(all_gather(axis)) &&
           a.sent(reduce_scatter(axis)) == b.sent(reduce_scatter(axis));
  }
  static_assert(same(once.forward, in_panels.forward, row) && same(once.forward, in_panels.forward, column));
  static_assert(same(once.backward, in_panels.backward, row) && same(once.backward, in_panels.backward, column));
  static_assert(equals<in_panels.sent(), once.sent()>);  // and nothing else
  static_assert(largest(in_panels.forward, Collective::all_gather) * panels ==
                largest(once.forward, Collective::all_gather));
  static_assert(largest(in_panels.backward, Collective::reduce_scatter) * panels ==
                largest(once.backward, Collective::reduce_scatter));
  static_assert(in_panels.memory.of(Use::activations) == 0);

  static constexpr Ahead forward = ahead_in(in_panels, Phase::forward), backward = ahead_in(in_panels, Phase::backward);
  static_assert(forward.products == panels && forward.most == 2 && forward.alone == 1);
  static_assert(backward.products == 2 * panels && backward.most == 2 && backward.alone == 0);
};
template struct InSoMany<2, 1, 4>;
template struct InSoMany<4, 1, 2>;
template struct InSoMany<2, 2, 8>;
template struct InSoMany<2, 1, 16>;

/// Gathered at once a rank has two blocks of X and two of A beside its own, in panels of eight two quarters of that.
constexpr Mesh four{row = 2, column = 2};
constexpr int edge = 1024;
constexpr auto& at_once = plan<Alone2<GatheredAgain<Linear<float, edge, edge>>, edge, edge, edge>, four>;
constexpr auto& in_eight = plan<Alone2<InPanels<float, edge, edge, 8>, edge, edge, edge>, four>;
constexpr std::int64_t block = 4 * edge / 2 * edge / 2;  // bytes
static_assert(at_once.peak_memory() - in_eight.peak_memory() > 2 * block);

// Runs
// -------------------------------------------------------------------------------------------------------------------

template <class Layers, class X, class Y = X>
std::vector<Array> pair_on(const Mesh& mesh) {
  return program::outputs<TrainedAlone<Layers, double, X, Y, KeepGradients>>(mesh, [](auto& executor) {
    executor.input(0, program::numbers<double>(16 * 16, 1));
    executor.input(1, program::numbers<double>(16 * 16, 2));
  });
}
void check_near(const std::vector<Array>& many, const std::vector<Array>& one) {
  REQUIRE(many.size() == one.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    INFO("output " << i);
    CHECK(lockstep::difference(many[i], one[i]) < 1e-10);
  }
}
/// Of k some ranks on `depth` add up a part each, and the others gather it by panels.
template <std::int64_t k_, std::int64_t n_, int panels>
struct PendingOverDepth {
  Parameter<double, Shape<k_ / depth / row, n_ / column>> a{normal(1)};
  constexpr auto operator()(Distributed auto x) const {
    return to<On<depth, Invariant>>(matmul_in_panels<panels>(x, a));
  }
};
/// More dimensions on either side.
struct Cube {
  Parameter<double, Shape<16 / row, 4 / column, 6>> a{normal(1)};
  constexpr auto operator()(Distributed auto x, Distributed auto gradient) const {
    return sum(matmul_in_panels<4>(x, a) * gradient);
  }
};
template <class Model, class X, class Y>
std::vector<Array> cube_on(const Mesh& mesh) {
  return program::outputs<Training<Model, KeepGradients, Wanted<double, X>, Tensor<double, Y>>>(
      mesh, [](auto& executor) {
        executor.input(0, program::numbers<double>(8 * 3 * 16, 1));
        executor.input(1, program::numbers<double>(8 * 3 * 4 * 6, 2));
      });
}
struct WholeCube {
  Parameter<double, Shape<16, 4, 6>> a{normal(1)};
  constexpr auto operator()(Distributed auto x, Distributed auto gradient) const {
    return sum(matmul(x, a) * gradient);
  }
};

}  // namespace

TEST_CASE("products in panels have loss and gradients of one rank") {
  using X1 = Shape<16, 16>;
  using X2 = Shape<16 / depth / row, 16 / column>;
  const std::vector<Array> one = pair_on<Pair<Linear<double, 16, 32>, Linear<double, 32, 16>>, X1>(Mesh{});
  REQUIRE(one.size() == 2 + 2 + 1);
  for (const Array& output : one) CHECK(std::abs(output.data[0]) > 1e-3);
  for (const Mesh& mesh : {Mesh{}, Mesh{row = 2, column = 2}, Mesh{depth = 2, row = 2, column = 2},
                           Mesh{row = 2, column = 4}, Mesh{row = 4, column = 2}, Mesh{column = 4}, Mesh{row = 8}}) {
    INFO(text(mesh));
    check_near(pair_on<Pair<InPanels<double, 16, 32, 1>, InPanels<double, 32, 16, 1>>, X2>(mesh), one);
    check_near(pair_on<Pair<InPanels<double, 16, 32, 2>, InPanels<double, 32, 16, 4>>, X2>(mesh), one);
  }
  for (const Mesh& mesh : {Mesh{}, Mesh{row = 2, column = 2, depth = 2}, Mesh{row = 2, depth = 2}, Mesh{depth = 4}}) {
    INFO(text(mesh));
    using Layers = Pair<PendingOverDepth<16, 32, 2>, Linear<double, 32, 16>>;
    check_near(pair_on<Layers, Shape<16 / row, 16 / depth>, Shape<16 / row, 16 / column>>(mesh), one);
  }
}

TEST_CASE("a rank has room for two panels, forward and of what is scattered backward") {
  const auto check = []<int panels>(std::integral_constant<int, panels>) {
    using X = Wanted<float, Shape<edge / row, edge / column>>;
    const auto whole = build<Training<Summed<InPanels<float, edge, edge, panels>>, KeepGradients, X>>();
    for (const int q : {4, 8}) {
      INFO(panels << " panels on " << q << " x " << q);
      const OwnedPlan plan = derive(Graph(whole), Mesh{row = q, column = q}, {}, {});
      // of X, A, and both gradients' terms two panels and one in work, each of which is q blocks in so many parts
      const double own = 4.0 * edge / q * edge / q, panel = own * q / panels;
      CHECK(static_cast<double>(fullest(*plan, Phase::forward).bytes()) < 5 * own + 6 * panel);
      CHECK(static_cast<double>(fullest(*plan, Phase::backward).bytes()) < 7 * own + 10 * panel);
    }
  };
  check(std::integral_constant<int, 4>());
  check(std::integral_constant<int, 8>());
  check(std::integral_constant<int, 16>());
}

TEST_CASE("tensors of more dimensions are multiplied in panels") {
  const std::vector<Array> one = cube_on<WholeCube, Shape<8, 3, 16>, Shape<8, 3, 4, 6>>(Mesh{});
  for (const Mesh& mesh : {Mesh{}, Mesh{row = 2, column = 2}, Mesh{row = 4, column = 2}}) {
    INFO(text(mesh));
    check_near(cube_on<Cube, Shape<8 / row, 3, 16 / column>, Shape<8 / row, 3, 4 / column, 6>>(mesh), one);
  }
}

TEST_CASE("products in panels are there at once, eagerly") {
  run_threads(4, [](Threads& world) {
    Eager<Threads, CpuDouble> eager(Mesh{row = 2, column = 2}, world);
    const auto numbers = [](double first) {
      std::vector<double> all;
      for (int i = 0; i < 64; ++i) all.push_back(first - 0.25 * i);
      return all;
    };
    const auto x = eager.template wanted<double, Shape<8 / row, 8 / column>>(numbers(3));
    const auto w = eager.template wanted<double, Shape<8 / row, 8 / column>>(numbers(5));
    const auto product = matmul_in_panels<4>(x, w);
    const auto expected = matmul(to<On<column, Broadcast>>(x), to<On<row, Broadcast>>(w));
    const auto near = [](const std::vector<double>& a, const std::vector<double>& b) {
      REQUIRE(a.size() == b.size());
      for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-10);
    };
    near(eager.whole(product), eager.whole(expected));
    const auto [dx, dw] = eager.gradient(sum(square(product)), x, w);
    const auto [ex, ew] = eager.gradient(sum(square(expected)), x, w);
    near(eager.whole(dx), eager.whole(ex));
    near(eager.whole(dw), eager.whole(ew));
    CHECK(std::abs(eager.whole(dw)[5]) > 1);
  });
}
