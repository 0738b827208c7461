// Prices and simulated steps against numbers computed by hand, on machines made up so that these are small.
#include <doctest/doctest.h>

#include <parallel/cost/published_machines.hpp>
#include <parallel/cost/simulate.hpp>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr bool near(double value, double expected) {
  return value - expected < 1e-9 * expected && expected - value < 1e-9 * expected;
}

/// 1 FLOP and 1 byte a second, 1 s to launch; a ring's step takes 10 s, and 1 byte of it another; `sequence` is ten
/// times as fast.
constexpr Machine slow(bool overlaps) {
  Machine m;
  m.name = "slow";
  Rates r;
  r.products[static_cast<int>(DType::f32)] = 1;
  r.memory_bandwidth = 1;
  r.link = {10, 1};
  m.rates.push_back(r);
  m.links.push_back({"sequence", {1, 10}});
  m.launch = 1;
  m.overlaps = overlaps;
  return m;
}

/// x w v, whose product with v is a pending sum on `tensor`.
struct Products {
  Parameter<float, Shape<8, 4 / tensor>> w;
  Parameter<float, Shape<4 / tensor, 8>> v;
  constexpr auto operator()(Distributed auto x) const { return matmul(matmul(x, w), v); }
};
using Run = Evaluation<Products, Tensor<float, Shape<16, 8>>>;
constexpr auto& one = plan<Run, Mesh{tensor = 1}>;
constexpr auto& two = plan<Run, Mesh{tensor = 2}>;

// [16, 8] times [8, 4]: 2 * 16 * 8 * 4 = 1024 FLOP, more than 4 (128 + 32 + 64) = 896 bytes. The other way: as many.
static_assert(near(simulate(one, slow(true)).seconds, 2 * (1 + 1024)));
static_assert(simulate(one, slow(true)).slices.size() == 2);

// Halves: 512 FLOP against 4 (128 + 16 + 32) = 704 bytes. Then an all-reduce of 512 bytes: two steps of 10 s, and 512
// bytes sent.
static_assert(near(simulate(two, slow(true)).seconds, 2 * (1 + 704) + 2 * 10 + 512));
static_assert(near(simulate(two, slow(false)).seconds, 2 * (1 + 704) + 2 * 10 + 512));

// Kernels that touch no more than the cache holds run at its bandwidth; then arithmetic takes longer.
constexpr Machine cached = [] {
  Machine m = slow(true);
  m.rates[0].cache_bytes = 704;
  m.rates[0].cache_bandwidth = 4;
  return m;
}();
static_assert(near(simulate(two, cached).seconds, 2 * (1 + 512) + 2 * 10 + 512));
static_assert(near(simulate(one, cached).seconds, 2 * (1 + 1024)));

// Where caches read what is overwritten, results count twice.
constexpr Machine allocating = [] {
  Machine m = slow(true);
  m.write_allocates = true;
  return m;
}();
static_assert(near(simulate(two, allocating).seconds,
                   1 + 4 * (128 + 16 + 2 * 32) + 1 + 4 * (32 + 16 + 2 * 128) + 2 * 10 + 512));

// The gradient of w starts its reduction while others are computed; the rank waits for both where the step ends.
struct Sum {
  Parameter<float, Shape<64>> a, b;
  constexpr auto operator()(Distributed auto x) const { return sum(x * a + x * x * b); }
};
constexpr auto& summed = plan<Training<Sum, Sgd, Tensor<float, Shape<8 / data, 64>>>, Mesh{data = 2}>;

struct Block {
  Parameter<float, Shape<8, 8 / tensor>> w;
  Parameter<float, Shape<8 / tensor, 8>> v;
  constexpr auto operator()(Distributed auto x) const { return to<Shape<16, 8>>(matmul(matmul(x, w), v)); }
};
struct Deep {
  Layers<5, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return blocks(x); }
};
struct Attend {
  constexpr auto operator()(Distributed auto q, Distributed auto k, Distributed auto v) const {
    return attention(q, k, v);
  }
};

int count(const Plan& plan, EventKind kind) {
  int n = 0;
  each_event(plan, [&](const Event& e) { n += e.kind == kind; });
  return n;
}

}  // namespace

TEST_CASE("a collective costs its steps and what it sends") {
  const Node* node = nullptr;
  two.all.each([&](const Node& n, std::int64_t) { node = &n; });
  REQUIRE(node != nullptr);
  CHECK(collective_seconds(two, *node, slow(true)) == doctest::Approx(2 * 10 + 512));
  CHECK(known(Collective::all_reduce).steps(4) == 6);
  CHECK(known(Collective::all_gather).steps(4) == 3);
  CHECK(known(Collective::send).steps(4) == 1);
  CHECK(known(Collective::receive).steps(4) == 1);
}

TEST_CASE("a ring over several axes is as slow as the slowest link") {
  const Machine m = slow(true);
  CHECK(m.link({&sequence}, 4) == Link{1, 10});
  CHECK(m.link({&data}, 4) == Link{10, 1});
  CHECK(m.link({&data, &sequence}, 4) == Link{10, 1});
}

TEST_CASE("rates are those of the next larger number of busy ranks") {
  Machine m;
  for (const int ranks : {1, 2, 4}) {
    m.rates.push_back({});
    m.rates[m.rates.size() - 1].ranks = ranks;
  }
  CHECK(m.with(1).ranks == 1);
  CHECK(m.with(3).ranks == 4);
  CHECK(m.with(64).ranks == 4);
  CHECK_THROWS_AS(Machine{}.with(1), std::invalid_argument);
}

TEST_CASE("where nothing overlaps a step is the sum of its slices, else it is shorter, and each track is in order") {
  const Simulation apart = simulate(summed, slow(false)), beside = simulate(summed, slow(true));
  for (const Simulation* s : {&apart, &beside}) {
    CHECK(s->slices.size() == count(summed, EventKind::compute) + count(summed, EventKind::start));
    Vector<double> ends;
    ends.resize(1 + s->tracks.size(), 0);
    double last = 0;
    for (const Slice& slice : s->slices) {
      CHECK(slice.end > slice.begin);
      if (s == &beside) CHECK(slice.begin >= ends[slice.track]);
      ends[slice.track] = slice.end;
      last = slice.end > last ? slice.end : last;
    }
    CHECK(s->seconds == doctest::Approx(last));
  }
  REQUIRE(apart.tracks.size() == 1);
  CHECK(apart.seconds == doctest::Approx(apart.busy(0) + apart.busy(1)));
  CHECK(beside.busy(0) == doctest::Approx(apart.busy(0)));
  CHECK(beside.seconds < apart.seconds);
  CHECK(beside.seconds >= beside.busy(0));
}

TEST_CASE("loops are gone through") {
  const OwnedPlan deep = derive<Evaluation<Deep, Tensor<float, Shape<16, 8>>>>(Mesh{tensor = 2});
  const Simulation s = simulate(deep, slow(false));
  int exchanges = 0, iterations = 0;
  for (const Slice& slice : s.slices)
    if (slice.track == 1) {
      ++exchanges;
      iterations += slice.iteration;
    }
  CHECK(exchanges == 5);
  CHECK(iterations == 0 + 1 + 2 + 3 + 4);
  // 10 products of 2 * 16 * 8 * 8 / 2 FLOP, more than 4 (128 + 32 + 64) bytes; 5 reductions of 512 bytes; 512 bytes are
  // copied into the loop
  CHECK(s.seconds == doctest::Approx(10 * (1 + 1024) + 5 * (2 * 10 + 512) + 2 * 512));
}

TEST_CASE("causal attention over slices of the sequence waits for the last slice") {
  using Whole = Tensor<float, Shape<1, 64, 2, 8>>;
  using Slices = Tensor<float, Shape<1, 64 / sequence, 2, 8>>;
  const OwnedPlan owned = derive<Evaluation<Attend, Slices, Whole, Whole>>(Mesh{sequence = 2});
  Machine m = slow(false);
  m.launch = 0;
  for (const Event& e : owned->events) {
    const Node& node = owned->graph.node(e.node);
    if (e.kind != EventKind::compute || node.operation->name != "attention") continue;
    // half of the queries, three quarters of the work
    CHECK(compute_seconds(owned, e, m) == doctest::Approx(1.5 * 2 * 64 * 16 * 64 / 2));
    m.attention_block = 8;  // 8 more keys of 64, where 48 of them are seen on average
    CHECK(compute_seconds(owned, e, m) == doctest::Approx((1.5 + 0.125) * 2 * 64 * 16 * 64 / 2));
    m.rates[0].scores[static_cast<int>(DType::f32)] = 2;
    CHECK(compute_seconds(owned, e, m) ==
          doctest::Approx((1.5 + 0.125) * (2 * 64 * 16 * 64 / 2 + 32 * 2 * 64 / 2 / 2)));
    m.attention_block = 0;
    m.rates[0].scores[static_cast<int>(DType::f32)] = 0;
  }
}

namespace {
struct Gate {
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return silu(x) * y; }
};
}  // namespace
TEST_CASE("what goes element by element is one kernel of a CPU, and a kernel for each of a GPU") {
  using Rows = Tensor<float, Shape<64, 64>>;
  const OwnedPlan owned = derive<Evaluation<Gate, Rows, Rows>>(Mesh{});
  REQUIRE(owned->events.size() == 1);
  const Event& e = owned->events[0];
  REQUIRE(e.nodes == 2);
  Machine m = slow(false);
  m.launch = 100;
  m.rates[0].functions[static_cast<int>(DType::f32)] = 0;
  m.rates[0].cache_bytes = 0;
  const double traffic = 64 * 64 * 4 / m.rates[0].memory_bandwidth;
  m.rates[0].products[static_cast<int>(DType::f32)] = 1e30;
  CHECK(compute_seconds(owned, e, m) == doctest::Approx(100 + 3 * traffic));  // two are read, one is written
  m.processors = 4;
  CHECK(compute_seconds(owned, e, m) == doctest::Approx(2 * 100 + (2 + 3) * traffic));
}

namespace {
struct Times {
  constexpr auto operator()(Distributed auto x, Distributed auto w) const { return matmul(x, w); }
};
}  // namespace
TEST_CASE("a product's tiles come in whole waves") {
  const OwnedPlan owned =
      derive<Evaluation<Times, Tensor<float, Shape<256 / data, 64>>, Tensor<float, Shape<64, 512>>>>(Mesh{data = 1});
  Machine m = slow(false);
  m.launch = 0;
  for (const Event& e : owned->events) {
    const Node& node = owned->graph.node(e.node);
    if (e.kind != EventKind::compute || node.operation->name != "matmul") continue;
    const double finely = compute_seconds(owned, e, m);
    m.processors = 4;  // each has one tile of 128 x 256
    CHECK(compute_seconds(owned, e, m) == doctest::Approx(finely));
    m.processors = 3;  // 8 tiles of 128 x 128 in three waves, which fit better than 4 of 128 x 256 in two
    CHECK(compute_seconds(owned, e, m) == doctest::Approx(finely * 9 / 8));
  }
}

TEST_CASE("published machines can be asked for by name, and price whatever can be multiplied") {
  REQUIRE(published_machine("a100") != nullptr);
  CHECK(published_machine("abacus") == nullptr);
  for (const Machine* m : machines::published) {
    CHECK(published_machine(m->name.view()) == m);
    CHECK(simulate(two, *m).seconds > 0);
    CHECK(simulate(two, *m).seconds < simulate(two, slow(true)).seconds);
  }
  CHECK(machines::dgx_a100.link({&data}, 16).bandwidth < machines::dgx_a100.link({&tensor}, 16).bandwidth);
  Machine none = slow(true);
  none.rates[0].products[static_cast<int>(DType::f32)] = 0;
  none.name = "desk";
  CHECK_THROWS_WITH_AS(simulate(two, none),
                       "parallel: desk has no rate for products of f32; give its rates `products` one, in FLOP/s, as "
                       "tools/machine measures them",
                       std::invalid_argument);
}

namespace {
struct OnItsHost {
  Parameter<float, Shape<64, 32>, Stored<host>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
}  // namespace
TEST_CASE("what is stored on the host is copied over its link, and updated at its bandwidth") {
  const OwnedPlan owned = derive<Training<OnItsHost, Sgd, Tensor<float, Shape<16, 64>>>>(Mesh{});
  Machine own = slow(false), apart = slow(false);
  apart.links.push_back({"host", {7, 10}});
  apart.host_bandwidth = 5;
  own.rates[0].cache_bytes = apart.rates[0].cache_bytes = 0;
  constexpr std::int64_t parameter = 64 * 32 * 4;
  constexpr auto bytes = static_cast<double>(parameter);
  int copies = 0, updates = 0;
  for (const Event& e : owned->events) {
    const Node& node = owned->graph.node(e.node);
    if (e.kind == EventKind::start && owned->all.message(node) == parameter) {
      CHECK(seconds(owned, e, apart) == doctest::Approx(7 + bytes / 10));
      CHECK(seconds(owned, e, own) == doctest::Approx(2 * bytes / own.rates[0].memory_bandwidth));
      ++copies;
    }
    if (node.operation != &operation::sgd) continue;
    // the parameter is read and written, the gradient read, and three numbers and the scalars
    const double moved = bytes_moved(owned, e, apart);
    CHECK(moved >= 3 * bytes);
    CHECK(moved < 3 * bytes + 100);
    CHECK(seconds(owned, e, apart) == doctest::Approx(apart.launch + moved / 5));
    ++updates;
  }
  CHECK(copies == 2);
  CHECK(updates == 1);
}
