// Tensor parallelism in two, two and a half and three dimensions: what is sent and held is what the formulas of the
// literature say, and loss and gradients are those of one rank.
#include "docs/grids.hpp"

#include <doctest/doctest.h>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace grids;
using lockstep::Array;

namespace {

// One product
// -------------------------------------------------------------------------------------------------------------------

constexpr int m = 128, k = 64, n = 256;
constexpr double mk = m * k, kn = k * n, mn = m * n;
constexpr auto per_pass = Gathered::per_pass;

/// Elements that a rank sends by gathers and by scatters on an axis.
struct Moved {
  double gathered = 0, scattered = 0;
};
constexpr Moved moved(const Communication& phase, const Axis& axis) {
  return {phase.sent(all_gather(axis)) / 4, phase.sent(reduce_scatter(axis)) / 4};
}
constexpr bool operator==(const Moved& a, const Moved& b) {
  const auto near = [](double x, double y) { return x - y < 1e-6 && y - x < 1e-6; };
  return near(a.gathered, b.gathered) && near(a.scattered, b.scattered);
}
constexpr double all_reduced(double what, int ranks) { return 2.0 * (ranks - 1) / ranks * what; }
/// What is sent beside, in elements: the loss among all ranks, the norm of gradients, 8 bytes, among some.
constexpr double beside(int ranks, int parts) { return all_reduced(1, ranks) + all_reduced(2, parts); }

constexpr Mesh grid(int q, int d) { return d > 1 ? Mesh{depth = d, row = q, column = q} : Mesh{row = q, column = q}; }

/// On q x q ranks, d of which are one behind the other.
template <int q, int d>
struct TwoDimensions {
  static constexpr double x = (q - 1.0) / q * mk / d / q, a = (q - 1.0) / q * kn / q;
  static constexpr double over_depth = all_reduced(kn / (q * q), d), rest = beside(q * q * d, q*q) + over_depth;

  static constexpr auto& kept = plan<Alone2<Linear<float, k, n, per_pass>, m, k, n>, grid(q, d)>;
  static_assert(moved(kept.forward, column) == Moved{x, 0} && moved(kept.forward, row) == Moved{a, 0});
  static_assert(moved(kept.backward, column) == Moved{0, x} && moved(kept.backward, row) == Moved{0, a});
  static_assert(equals<kept.backward.sent(all_reduce(depth)) / 4, over_depth>);
  static_assert(equals<kept.sent() / 4, 2 * (x + a) + rest>);  // and nothing else

  static constexpr auto& x_kept = plan<Alone2<Linear<float, k, n>, m, k, n>, grid(q, d)>;
  static_assert(moved(x_kept.backward, column) == Moved{0, x} && moved(x_kept.backward, row) == Moved{a, a});
  static_assert(equals<x_kept.sent() / 4, 2 * x + 3 * a + rest>);

  static constexpr auto& again = plan<Alone2<GatheredAgain<Linear<float, k, n>>, m, k, n>, grid(q, d)>;
  static_assert(moved(again.forward, column) == Moved{x, 0} && moved(again.forward, row) == Moved{a, 0});
  static_assert(moved(again.backward, column) == Moved{x, x} && moved(again.backward, row) == Moved{a, a});
  static_assert(equals<again.sent() / 4, 3 * (x + a) + rest>);

  // with every move written
  static constexpr auto& written = plan<Alone2<Written<float, k, n>, m, k, n>, grid(q, d)>;
  static_assert(moved(written.forward, column) == Moved{x, 0} && moved(written.forward, row) == Moved{a, 0});
  static_assert(moved(written.backward, column) == Moved{0, x} && moved(written.backward, row) == Moved{0, a});
  static_assert(equals<written.sent() / 4, kept.sent() / 4>);

  static_assert(equals<kept.memory.of(Use::parameters) / 4, kn / (q * q)>);
  static_assert(equals<kept.memory.of(Use::inputs) / 4, (mk + mn) / (q * q * d)>);  // x, and the gradient of y
  static_assert(equals<kept.memory.of(Use::activations) / 4, mk / (q * d)>);
  static_assert(equals<again.memory.of(Use::activations), 0>);

  // In matrices, one of each, the literature's column: three times as much as forward, where each broadcast of SUMMA
  // counts as q - 1 hops, of which a ring is one q-th. It leaves out what depth adds up.
  static constexpr double published = d == 1 ? 6.0 * (q - 1) / q : 3.0 * (q - 1) * (d + 1) / (d * q);
  static_assert(equals<3 * (x / mk + a / kn), published / q>);
};
template struct TwoDimensions<2, 1>;
template struct TwoDimensions<4, 1>;
template struct TwoDimensions<8, 1>;
template struct TwoDimensions<2, 2>;
template struct TwoDimensions<2, 4>;
template struct TwoDimensions<4, 4>;

/// On q x q x q ranks.
template <int q>
struct ThreeDimensions {
  static constexpr Mesh mesh{row = q, column = q, depth = q};
  static constexpr double share = (q - 1.0) / (q * q * q), x = share * mk, a = share * kn, y = share * mn;
  static constexpr double rest = beside(q * q * q, q* q* q);

  static constexpr auto& kept = plan<Alone3<Linear3<float, k, n, depth, column, per_pass>, m, k, n>, mesh>;
  static_assert(moved(kept.forward, column) == Moved{x, 0} && moved(kept.forward, row) == Moved{a, 0});
  static_assert(moved(kept.forward, depth) == Moved{0, y} && moved(kept.backward, depth) == Moved{y, 0});
  static_assert(moved(kept.backward, column) == Moved{0, x} && moved(kept.backward, row) == Moved{0, a});
  static_assert(equals<kept.sent() / 4, 2 * (x + a + y) + rest>);  // and nothing else

  static constexpr auto& again = plan<Alone3<GatheredAgain<Linear3<float, k, n, depth, column>>, m, k, n>, mesh>;
  static_assert(moved(again.backward, column) == Moved{x, x} && moved(again.backward, row) == Moved{a, a});
  static_assert(moved(again.forward, depth) == Moved{0, y} && moved(again.backward, depth) == Moved{y, 0});
  static_assert(equals<again.sent() / 4, 3 * (x + a) + 2 * y + rest>);

  static_assert(equals<kept.memory.of(Use::parameters) / 4, kn / (q * q * q)>);
  static_assert(equals<kept.memory.of(Use::inputs) / 4, (mk + mn) / (q * q * q)>);
  static_assert(equals<kept.memory.of(Use::activations) / 4, mk / (q * q)>);
  static_assert(equals<again.memory.of(Use::activations), 0>);

  static_assert(equals<2 * (x / mk + a / kn + y / mn), 6.0 * (q - 1) / (q * q * q)>);  // as published
};
template struct ThreeDimensions<2>;
template struct ThreeDimensions<4>;

/// On p ranks: columns of the matrix, all of what it is multiplied with.
template <int p>
struct OneDimension {
  static constexpr auto& whole = plan<Alone1<Linear<float, k, n>, m, k, n>, Mesh{column = p}>;
  static_assert(equals<whole.backward.sent(all_reduce(column)) / 4, all_reduced(mk, p)>);
  static_assert(equals<whole.sent() / 4, all_reduced(mk, p) + beside(p, p)>);
  static_assert(equals<whole.memory.of(Use::parameters) / 4, kn / p>);
  static_assert(equals<whole.memory.of(Use::inputs) / 4, mk + mn / p>);
};
template struct OneDimension<4>;
template struct OneDimension<8>;
template struct OneDimension<16>;
template struct OneDimension<64>;

// Runs
// -------------------------------------------------------------------------------------------------------------------

void check_near(const std::vector<Array>& many, const std::vector<Array>& one) {
  REQUIRE(many.size() == one.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    INFO("output " << i);
    CHECK(lockstep::difference(many[i], one[i]) < 1e-10);
  }
}

template <class Layers, class X>
std::vector<Array> pair_on(const Mesh& mesh) {
  return program::outputs<TrainedAlone<Layers, double, X, X, KeepGradients>>(mesh, [](auto& executor) {
    executor.input(0, program::numbers<double>(16 * 8, 1));
    executor.input(1, program::numbers<double>(16 * 8, 2));
  });
}

constexpr Sizes small{.batch = 8, .context = 4, .width = 16, .heads = 8, .vocabulary = 32, .layers = 2};

template <Grid g>
std::vector<Array> transformer_on(const Mesh& mesh) {
  const OwnedPlan plan = derive<Trained<double, g, KeepGradients>>(mesh);
  return program::outputs(*plan, [](auto& executor, under_test::Parameters& parameters) {
    program::randomize<double>(executor.plan(), executor.rank(), parameters);
    executor.input(0, program::numbers<int>(small.batch * small.context, 1, static_cast<int>(small.vocabulary)));
    executor.input(1, program::numbers<int>(small.batch * small.context, 2, static_cast<int>(small.vocabulary)));
  });
}
template <Grid g>
void check_transformer(const std::vector<Array>& one, std::initializer_list<Mesh> meshes) {
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    check_near(transformer_on<g>(mesh), one);
  }
}

// with names, as nvcc 13 does not find a template that is given one of theirs
constexpr Grid small_one = one_dimension<small>, small_tokens_split = tokens_split<small>,
               small_two = two_dimensions<small>, small_three = three_dimensions<small>;

constexpr Mesh flat{row = 2, column = 2}, two_deep{depth = 2, row = 2, column = 2},
    cube{row = 2, column = 2, depth = 2};

}  // namespace

TEST_CASE("two products on every grid have loss and gradients of one rank") {
  using X1 = Shape<16, 8>;
  using X2 = Shape<16 / depth / row, 8 / column>;
  using X3 = Shape<16 / row / column, 8 / depth>;
  const std::vector<Array> one = pair_on<Pair<Linear<double, 8, 32>, Linear<double, 32, 8>>, X1>(Mesh{});
  REQUIRE(one.size() == 2 + 2 + 1);
  for (const Array& output : one) CHECK(std::abs(output.data[0]) > 1e-3);
  for (const Mesh& mesh : {Mesh{}, flat, two_deep, Mesh{row = 2, column = 4}}) {
    INFO(text(mesh));
    check_near(pair_on<Pair<Linear<double, 8, 32>, Linear<double, 32, 8>>, X2>(mesh), one);
    check_near(pair_on<Pair<Written<double, 8, 32>, Written<double, 32, 8>>, X2>(mesh), one);
    using Again = Pair<GatheredAgain<Linear<double, 8, 32>>, GatheredAgain<Linear<double, 32, 8, per_pass>>>;
    check_near(pair_on<Again, X2>(mesh), one);
  }
  for (const Mesh& mesh : {Mesh{}, cube, Mesh{row = 2, depth = 4}}) {
    INFO(text(mesh));
    using First = Linear3<double, 8, 32, depth, column>;
    using Second = Linear3<double, 32, 8, column, depth>;
    check_near(pair_on<Pair<First, Second>, X3>(mesh), one);
    check_near(pair_on<Pair<GatheredAgain<First>, GatheredAgain<Second, depth>>, X3>(mesh), one);
  }
}

TEST_CASE("a transformer on every grid has loss and gradients of one rank") {
  const std::vector<Array> one = transformer_on<small_one>(Mesh{});
  REQUIRE(one.size() == 2 + 2 + 12 + 2);
  CHECK(one[0].data[0] > 0.5);
  CHECK(one[1].data[0] > 1e-3);
  check_transformer<small_tokens_split>(one, {Mesh{column = 4}});
  check_transformer<small_two>(one, {Mesh{}, flat, two_deep, Mesh{row = 4, column = 2}, Mesh{row = 2, column = 4}});
  check_transformer<again(small_two)>(one, {flat, two_deep});
  check_transformer<small_three>(one, {Mesh{}, flat, cube, Mesh{column = 2, depth = 2}});
  check_transformer<again(small_three)>(one, {cube});
}
