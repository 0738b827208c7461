// Threads that compute one call together give the bits of one thread, whatever their number and the call's length.
#include <array>
#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/cost/machine.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/device/cpu/matmul.hpp>
#include <parallel/device/cpu/team.hpp>
#include <parallel/meta/meeting.hpp>
#include <parallel/meta/product_library.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

#include "device.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

struct Sides {
  std::vector<float> parameter, mean, variance;
  bool operator==(const Sides&) const = default;
};
/// Three steps of AdamW on n elements, by so many threads; none: without a team.
Sides stepped(std::int64_t n, int threads) {
  const auto numbers = [n](std::uint64_t stream) { return program::numbers<float>(n, stream); };
  Sides s{numbers(1), std::vector<float>(static_cast<std::size_t>(n)), std::vector<float>(static_cast<std::size_t>(n))};
  std::vector<float> gradient = numbers(2);
  std::vector<double> scalars{1e-2, 0.9, 0.99, 1e-8, 0.1, 1};
  double factor = 0.5;
  const auto view = [](auto* data, std::int64_t size) {
    View v;
    v.data = data;
    v.dtype = dtype_of<std::remove_pointer_t<decltype(data)>>;
    v.rank = size > 0 ? 1 : 0;
    v.size[0] = v.whole[0] = size;
    return v;
  };
  Call call;
  call.operation = &operation::adamw;
  for (float* data : {s.parameter.data(), s.mean.data(), s.variance.data()}) {
    call.operands.push_back(view(data, n));
    call.results.push_back(view(data, n));
  }
  call.operands.push_back(view(gradient.data(), n));
  call.operands.push_back(view(&factor, 0));
  call.operands.push_back(view(scalars.data(), 6));
  call.ints = {0, 1, 2, 3, 4, 5, 1};
  call.kernel = Cpu{}.kernel(*call.operation, call);
  REQUIRE(bool(call.kernel));
  const Launch launch{{&call, 1}};
  if (threads == 0) {
    for (int step = 0; step < 3; ++step) launch.run();
  } else {
    cpu::Team team(threads);
    for (int step = 0; step < 3; ++step) cpu::compute(team, launch);
  }
  return s;
}

}  // namespace

TEST_CASE("whoever waits sees what is written between its looks and its sleep") {
  for (int written_behind = 1; written_behind <= 3; ++written_behind) {  // the looks before it sleeps
    threading::Sleepers sleepers;
    std::atomic<bool> written{false};
    int looks = 0;
    sleepers.wait(false, [&] {  // without a nap that would end it
      const bool seen = written;
      if (++looks == written_behind) {
        written = true;
        sleepers.wake();
      }
      return seen;
    });
    CHECK(looks > written_behind);
  }
}
TEST_CASE("threads that sleep wake each other by turns") {
  constexpr int turns = 5000;
  threading::Sleepers sleepers;
  std::atomic<int> turn{0};
  const auto take_turns = [&](int own) {
    for (int i = own; i < 2 * turns; i += 2) {
      sleepers.wait(false, [&] { return turn.load() == i; });
      for (int busy = i / 2 % 100; busy > 0; --busy) threading::pause();
      turn = i + 1;
      sleepers.wake();
    }
  };
  std::thread other([&] { take_turns(1); });
  take_turns(0);
  other.join();
  CHECK(turn == 2 * turns);
}
TEST_CASE("an update by several threads") {
  for (const std::int64_t n : {1, 63, 4096, 8192, 8193, 20'001, 100'000}) {
    const Sides alone = stepped(n, 0);
    for (int threads = 1; threads <= 5; ++threads) {
      CAPTURE(n);
      CAPTURE(threads);
      CHECK(stepped(n, threads) == alone);
    }
  }
}

namespace {

/// All results of a call, as so many threads compute it.
template <class T>
std::vector<std::vector<double>> computed(Run<T> run, const Operation& operation, int threads) {
  CpuOf<T> device{.threads = threads};
  device.make_ready({});
  run.call().operation = &operation;
  run.run([&](Call& call) {
    call.kernel = device.kernel(operation, call);
    REQUIRE(bool(call.kernel));
    device.compute({{&call, 1}});
  });
  std::vector<std::vector<double>> all;
  for (int r = 0; r < run.call().results.size(); ++r) all.push_back(run.get(r).values);
  return all;
}
/// `make` gives a call anew for every number of threads.
template <class T, class Make>
void check_threads(const Operation& operation, Make make) {
  const auto alone = computed<T>(make(), operation, 1);
  for (const int threads : {2, 3, 5}) {
    CAPTURE(operation.name);
    CAPTURE(threads);
    CHECK(computed<T>(make(), operation, threads) == alone);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("products by several threads", T, float, double) {
  struct Case {
    std::int64_t batch, m, n, k;
  };
  if (product_library() == "Eigen")  // whose sums do not depend on how many rows a product has
    for (const Case& c : {Case{1, 130, 149, 120}, Case{1, 149, 130, 120}, Case{1, 16, 401, 330}, Case{1, 401, 18, 300},
                          Case{1, 150, 49, 401}, Case{7, 60, 90, 60}, Case{2, 200, 70, 80}, Case{1, 520, 100, 801}})
      for (const int left : {0, 1})
        for (const int right : {0, 1}) {
          const Numbers x = normal_numbers({c.batch, left ? c.k : c.m, left ? c.m : c.k}, 1),
                        w = normal_numbers({c.batch, right ? c.n : c.k, right ? c.k : c.n}, 2);
          check_threads<T>(operation::matmul, [&] {
            Run<T> run;
            run.operand(x).operand(w).template result<T>({c.batch, c.m, c.n});
            run.ints(operation::Product(1, left, right, 1));
            return run;
          });
        }
}
TEST_CASE("what finishes a product by several threads is told each place once, by all of them") {
  cpu::Team team(3);
  const std::vector<float> x = program::numbers<float>(1700 * 400, 1), w = program::numbers<float>(400 * 500, 2);
  std::vector<float> y(1700 * 500);
  struct Told {
    std::mutex mutex{};
    std::set<std::thread::id> threads{};
    std::vector<int> times{};
    std::int64_t n = 0;
  } static told;
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{100, 500}, {500, 100}, {1700, 100}}) {
    told.times.assign(static_cast<std::size_t>(m * n), 0);
    told.threads.clear();
    told.n = n;
    const Call none{};
    const cpu::Finish finish{[](const Call&, const cpu::Tile& tile) {
                               const std::lock_guard hold(told.mutex);
                               told.threads.insert(std::this_thread::get_id());
                               for (std::int64_t i = tile.row; i < tile.row + tile.rows; ++i)
                                 for (std::int64_t j = tile.column; j < tile.column + tile.columns; ++j)
                                   ++told.times[static_cast<std::size_t>(i * told.n + j)];
                             },
                             &none};
    cpu::multiply<float>(&team, m, n, 400, {x.data(), 400}, {w.data(), n}, {y.data(), n}, finish);
    CHECK(told.times == std::vector<int>(static_cast<std::size_t>(m * n), 1));
    CHECK(told.threads.size() == 3);
  }
}
TEST_CASE_TEMPLATE("attention and its gradient by several threads", T, float, double) {
  for (const bool causal : {false, true})
    for (const double dropped : {0.0, 0.3}) {
      const auto make = [&](bool back) {
        const Sizes queries{1, 90, 6, 12}, keys{1, 400, 3, 12}, rows{1, 90, 6};
        Run<T> run;
        run.operand(normal_numbers(queries, 1)).operand(normal_numbers(keys, 2)).operand(normal_numbers(keys, 3));
        if (back) run.operand(normal_numbers(queries, 4)).operand(normal_numbers(rows, 5, 0.1, 6));
        if (back) run.operand(normal_numbers(queries, 6));
        if (dropped > 0 && !back) run.scalars({7, 5});
        const bool drops = dropped > 0 && !back;
        run.ints(drops ? Ints{causal, 0, 0, 0, 1, 3} : Ints{causal, 0, 0}).reals(0.3, drops ? dropped : 0);
        run.within(2, 4).result(queries);
        if (back)
          run.result(keys).result(keys);
        else
          run.result(rows);
        return run;
      };
      check_threads<T>(operation::attention, [&] { return make(false); });
      check_threads<T>(operation::attention_derivative, [&] { return make(true); });
    }
}
TEST_CASE_TEMPLATE("what goes element by element, by several threads", T, float, double) {
  const Sizes sizes{3, 41, 333};
  const auto made = [&](const Sizes* second) {
    Run<T> run;
    run.operand(normal_numbers(sizes, 1));
    if (second != nullptr) run.operand(normal_numbers(*second, 2));
    run.result(sizes);
    return run;
  };
  for (const Operation* o : {&operation::gelu, &operation::exp, &operation::tanh, &operation::square})
    check_threads<T>(*o, [&] { return made(nullptr); });
  for (const Operation* o : {&operation::add, &operation::multiply, &operation::divide})
    for (const Sizes& second : {sizes, Sizes{333}, Sizes{41, 1}, Sizes{3, 1, 1}})
      check_threads<T>(*o, [&] { return made(&second); });
}
TEST_CASE_TEMPLATE("what is added to a part of a sum, by several threads", T, float, double) {
  const Sizes table{300, 333};
  const Numbers sum = normal_numbers(table, 1);
  for (const std::int64_t many : {300, 6400}) {  // as many rows as the table has, and so many that threads share them
    const Numbers index = whole_numbers({many}, 2, 301), g = normal_numbers({many, 333}, 3);
    check_threads<T>(operation::accumulate_rows, [&] {
      Run<T> run;
      run.operand(sum).integers(index).operand(g).result_in_place(0);
      return run;
    });
  }
  const Sizes sizes{1100, 2, 1000};
  const Numbers all = whole_numbers(sizes, 1, 99);
  for (const Sizes& of : {sizes, Sizes{1100, 2, 955}}) {
    const Numbers part = whole_numbers(of, 2, 99);
    check_threads<T>(operation::accumulate_slice, [&] {
      Run<T> run;
      run.operand(all).operand(part).result_in_place(0).ints({2, 1000 - of[2], 1000});
      return run;
    });
  }
}
TEST_CASE_TEMPLATE("what is written at a place of a memory stays one thread's", T, float, double) {
  const Sizes sizes{2, 300, 40}, own{2, 30, 40};
  for (const std::int64_t position : {0, 17, 290})
    for (const Sizes& of : {own, sizes})
      check_threads<T>(operation::write, [&] {
        Run<T> run;
        run.operand(normal_numbers(sizes, 1)).operand(normal_numbers(of, 2));
        run.integers(Numbers(Sizes{}, static_cast<double>(position))).result_in_place(0).ints({1});
        return run;
      });
}

namespace own {

/// x times its row's number: a kernel that asks where an element stands.
inline constexpr Operation placed{.name = "placed", .element_by_element = 1};
void placed_kernel(const Call& call) {
  const View& x = call.operands[0];
  const std::int64_t row = x.extent(1, x.rank);
  for (std::int64_t i = 0; i < x.size[0]; ++i)
    for (std::int64_t j = 0; j < row; ++j)
      call.results[0].as<float>()[i * row + j] =
          x.as<const float>()[i * row + j] * static_cast<float>(x.at(0, i) + x.rank);
}
constexpr CpuKernels placing[]{{&placed, placed_kernel, nullptr}};

}  // namespace own

TEST_CASE("a program's own kernel gets its call whole, but of an optimizer") {
  const Sizes sizes{90, 300};
  const Numbers x = normal_numbers(sizes, 1);
  for (const int threads : {1, 3}) {
    Cpu device{.own = own::placing, .threads = threads};
    device.make_ready({});
    Run<float> run;
    run.operand(x).result(sizes).call().operation = &own::placed;
    const Numbers found = run.run([&](Call& call) {
      call.kernel = device.kernel(own::placed, call);
      device.compute({{&call, 1}});
    });
    check_near(found, defined(sizes, [&](const Sizes& i) { return x(i) * static_cast<double>(i[0] + 2); }), 1e-6);
  }
}
namespace own {

/// The first row and each seventh diagonal of the last two dimensions.
bool spared(const Sizes& at) { return at.front() == 0 || (at[at.size() - 2] + at.back()) % 7 == 3; }
/// Stands for the library's: a step down by the gradient, of all that is not spared.
void spare(const Call& call) {
  const View& p = call.results[0];
  for (std::int64_t i = 0; i < p.elements(); ++i) {
    Sizes at;
    for (int d = 0; d < p.rank; ++d) at.push_back(p.at(d, i / p.extent(d + 1, p.rank) % p.size[d]));
    if (!spared(at)) p.as<float>()[i] -= call.operands[1].as<const float>()[i];
  }
}
constexpr CpuKernels sparing[]{{&operation::lion, spare, nullptr}};

}  // namespace own

TEST_CASE_TEMPLATE("a kernel that stands for one of the library's is told where its elements stand", T, float, bfloat16,
                   float16) {
  // halves are widened in pieces: of some rows, of one row, and of a part of one
  for (const Sizes& sizes : {Sizes{90, 300}, Sizes{5, 4000}, Sizes{3, 10'000}, Sizes{3, 5, 5'000}}) {
    const Numbers before = whole_numbers(sizes, 1, 100), gradient = whole_numbers(sizes, 2, 100);
    for (const int threads : {1, 3}) {
      CAPTURE(sizes.back());
      CAPTURE(threads);
      Cpu device{.own = own::sparing, .threads = threads};
      device.make_ready({});
      Run<T> run;
      run.operand(before).operand(gradient).result_in_place(0).call().operation = &operation::lion;
      const Numbers found = run.run([&](Call& call) {
        call.kernel = device.kernel(operation::lion, call);
        device.compute({{&call, 1}});
      });
      const auto stepped = [&](const Sizes& i) { return before(i) - (own::spared(i) ? 0 : gradient(i)); };
      check_near(found, defined(sizes, stepped), 0);
    }
  }
}
TEST_CASE("elements that several operations go through one after the other, by several threads") {
  const Sizes sizes{100, 200};
  const Numbers x = normal_numbers(sizes, 1), y = normal_numbers(sizes, 2);
  std::vector<double> alone;
  for (const int threads : {1, 2, 5}) {
    Cpu device{.threads = threads};
    device.make_ready({});
    Run<float> first, second;
    first.operand(x).result(sizes).call().operation = &operation::silu;
    second.operand(x).operand(y).result(sizes).call().operation = &operation::multiply;
    first.run([&](Call& a) {
      second.run([&](Call& b) {
        std::array<Call, 2> both{a, b};
        both[1].operands[0] = a.results[0];
        const FusedKernel fused = device.fused(both);
        REQUIRE(bool(fused));
        device.compute({both, fused});
      });
    });
    if (threads == 1) alone = second.get(0).values;
    CHECK(second.get(0).values == alone);
  }
}
TEST_CASE("executors of a thread share its team, which has room for what their plans need") {
  Cpu first{.threads = 2}, second{.threads = 2}, third{.threads = 3}, fourth{.threads = 2};
  account::Scratch scratch;
  scratch.pieces[static_cast<int>(account::cpu::Purpose::packing)] = 300'000;
  first.make_ready({});
  second.make_ready(scratch);
  third.make_ready({});
  CHECK(first.team == second.team);
  CHECK(first.team != third.team);
  fourth.make_ready({});
  CHECK(fourth.team == first.team);
  std::array<std::byte*, 2> before{}, after{};
  const auto at = [](std::size_t bytes) { return cpu::scratch_bytes<account::cpu::Purpose::packing>(bytes); };
  first.team->each([&](int i) { before[static_cast<std::size_t>(i)] = at(1); });
  first.team->each([&](int i) { after[static_cast<std::size_t>(i)] = at(300'000); });
  CHECK(before == after);
  CHECK(before[0] != before[1]);
}
TEST_CASE("what a thread of a team throws is thrown by the call") {
  for (int thrower = 0; thrower < 3; ++thrower) {
    cpu::Team team(3);
    for (int round = 0; round < 3; ++round)
      CHECK_THROWS_WITH_AS(team.each([&](int i) {
        if (i == thrower) throw std::runtime_error("broken");
      }),
                           "broken", std::runtime_error);
    team.each([](int) {});  // and it works on
  }
}
TEST_CASE("each part is asked for once, and all threads come back") {
  for (int threads = 1; threads <= 4; ++threads) {
    cpu::Team team(threads);
    for (int round = 0; round < 1000; ++round) {
      std::vector<int> parts(static_cast<std::size_t>(threads), 0);
      team.each([&](int i) { ++parts[static_cast<std::size_t>(i)]; });
      for (const int times : parts) REQUIRE(times == 1);
    }
  }
}

namespace own {

/// (parameter, velocity, gradient, factor, scalars) -> parameter, velocity. Without a table it goes element by element,
/// and may ask where those stand.
inline constexpr Operation push{.name = "push", .updates = true};
/// v = momentum v + factor g; p -= learning_rate v.
struct Push {
  struct Hyperparameters {
    double learning_rate = 0.1, momentum = 0.5, clip_norm = 0;
  };
  static constexpr void update(Update& u) {
    u.replace(push, {u.parameter(), u.state("velocity")}, {u.gradient(), u.factor()}, {"learning_rate", "momentum"});
  }
};
std::mutex counting;
std::vector<std::int64_t> lengths;  // of the calls
void push_kernel(const Call& call) {
  {
    const std::lock_guard lock(counting);
    lengths.push_back(call.results[0].elements());
  }
  const double* const scalars = call.operands[4].as<const double>();
  const double rate = scalars[call.ints[0]], momentum = scalars[call.ints[1]];
  const double factor = *call.operands[3].as<const double>();
  float *const p = call.results[0].as<float>(), *const v = call.results[1].as<float>();
  const float* const g = call.operands[2].as<const float>();
  const std::int64_t row = call.results[0].extent(1, call.results[0].rank);
  for (std::int64_t i = 0; i < call.results[0].elements(); ++i) {
    v[i] = static_cast<float>(momentum * v[i] + factor * g[i]);
    // by where it stands: row 0 stays as it is, later ones go farther
    p[i] = static_cast<float>(p[i] - rate * v[i] * static_cast<double>(call.results[0].at(0, i / row)) / 100);
  }
}
constexpr CpuKernels kernels[]{{&push, push_kernel, nullptr}};

template <int rows, int columns>
struct Square {
  Parameter<float, Shape<rows, columns>> w{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
/// Losses of some steps where so many threads update.
template <int rows, int columns, class Where>
std::vector<double> losses(const Mesh& mesh, int threads) {
  using Step = Training<Square<rows, columns>, Push, Tensor<float, Shape<4 / data, rows>>>;
  const OwnedPlan plan = derive<AllStored<Step, Where>>(mesh);
  std::vector<double> seen;
  run_threads(mesh.ranks(), [&](Threads& world) {
    Parameters parameters(*plan, world.rank(), 1);
    Trainer<Threads, Cpu> trainer(*plan, world, parameters, Push::Hyperparameters{}, 1, Cpu{kernels, threads});
    trainer.executor().input(0, program::numbers<float>(4 * rows, 1));
    for (int step = 0; step < 4; ++step) {
      const double loss = trainer.step(0.1).loss;
      if (world.rank() == 0) seen.push_back(loss);
    }
  });
  return seen;
}

}  // namespace own

TEST_CASE("an optimizer of one's own is shared among the threads of the host, whose device is the host") {
  own::lengths.clear();
  const auto losses = own::losses<128, 128, Stored<host>>;
  const std::vector<double> alone = losses(Mesh{}, 1);
  CHECK(own::lengths == std::vector<std::int64_t>(4, 128 * 128));
  CHECK(alone.front() > alone.back());
  for (const int threads : {2, 4}) {
    own::lengths.clear();
    CHECK(losses(Mesh{}, threads) == alone);
    CHECK(own::lengths == std::vector<std::int64_t>(static_cast<std::size_t>(4 * threads), 128 * 128 / threads));
  }
}
TEST_CASE("threads share out a rank's share of a flat parameter, behind whose last element is padding") {
  const auto losses = own::losses<151, 163, Stored<data, Zero::states>>;
  own::lengths.clear();
  const std::vector<double> alone = losses(Mesh{data = 2}, 1);
  CHECK(own::lengths.size() == 8);
  CHECK(own::lengths.front() > 151 * 163 / 2);
  CHECK(alone.front() > alone.back());
  for (const int threads : {2, 3}) {
    own::lengths.clear();
    CHECK(losses(Mesh{data = 2}, threads) == alone);
    CHECK(own::lengths.size() == static_cast<std::size_t>(8 * threads));
  }
}

namespace {

struct Perceptron {
  Parameter<float, Shape<96, 256>> up{normal(0.1)};
  Parameter<float, Shape<256>> up_bias{zeros};
  Parameter<float, Shape<256, 96>> down{normal(0.1)};
  Parameter<float, Shape<96>> down_bias{zeros};
  constexpr auto operator()(Distributed auto x) const {
    auto y = matmul(gelu(matmul(x, up) + up_bias), down) + down_bias;
    return mean(square(y - x));
  }
};
/// Losses and norms of some steps.
std::vector<double> trained(const Mesh& mesh, int threads) {
  const OwnedPlan plan = derive<Training<Perceptron, AdamW, Tensor<float, Shape<256, 96>, On<data, Split<0>>>>>(mesh);
  std::vector<double> seen;
  run_threads(mesh.ranks(), [&](Threads& world) {
    Parameters parameters(plan, world.rank(), 1);
    Trainer<Threads, Cpu> trainer(plan, world, parameters, {.clip_norm = 1}, 1, Cpu{.threads = threads});
    trainer.executor().input(0, program::numbers<float>(256 * 96, 1));
    for (int step = 0; step < 3; ++step) {
      const auto result = trainer.step(0.01);
      if (world.rank() == 0) seen.insert(seen.end(), {result.loss, result.gradient_norm});
    }
  });
  return seen;
}

}  // namespace

TEST_CASE("a training whose ranks have several threads is the one whose ranks have one, bit for bit") {
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}}) {
    const std::vector<double> alone = trained(mesh, 1);
    CHECK(alone.front() > alone[4]);
    for (const int threads : {2, 3})
      if (product_library() == "Eigen") CHECK(trained(mesh, threads) == alone);
  }
}
TEST_CASE("no threads, or too many, are refused before the first step") {
  for (const int threads : {0, -1, 1025})
    CHECK_THROWS_WITH_AS(trained(Mesh{data = 1}, threads),
                         ("a Cpu has " + std::to_string(threads) + " threads; give it from 1 to 1024").c_str(),
                         Failure);
}
TEST_CASE("a machine whose ranks have several threads multiplies at the rates of as many cores") {
  Machine machine;
  for (const int ranks : {1, 2, 4}) {
    Rates r{.ranks = ranks, .memory_bandwidth = 100.0 / ranks};
    r.products[0] = 10 - ranks;
    machine.rates.push_back(r);
  }
  const Machine two = machine.with_threads(2);
  REQUIRE(two.rates.size() == 2);
  CHECK(two.with(1).products[0] == 16);
  CHECK(two.with(1).memory_bandwidth == 50);
  CHECK(two.with(2).products[0] == 12);
  CHECK(machine.with_threads(1) == machine);
  CHECK_THROWS_AS(static_cast<void>(machine.with_threads(3)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(machine.with_threads(0)), std::invalid_argument);
}
