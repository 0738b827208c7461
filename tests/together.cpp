// Calls of one operation that a GPU computes at once: the same bits as one by one, and as few launches as there should
// be.
#include <map>

#include <parallel/operation/update.hpp>

#include "device.hpp"
#include "gpt_model.hpp"
#include "models.hpp"
#include "optimizer_steps.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

/// Calls whose tensors lie one behind the other, some of them off a line, behind numbers that all may read. Until they
/// run, addresses count from 0.
template <class T>
class Calls {
 public:
  static constexpr int numbers = 8;

  /// A call on tensors of so many elements: some are updated in place, and the last one is the gradient.
  Call& add(std::int64_t elements, int updated) {
    Call& call = calls_.emplace_back();
    const std::int64_t off = calls_.size() % 5 == 0 ? static_cast<std::int64_t>(sizeof(T)) : 0;
    for (int k = 0; k <= updated; ++k) {
      call.operands.push_back(view<T>(elements, end_ + off));
      if (k < updated) call.results.push_back(call.operands[k]);
      end_ += (elements * static_cast<std::int64_t>(sizeof(T)) + 128) / 64 * 64;
    }
    return call;
  }
  View result() { return view<double>(1, (end_ += 64) - 64); }
  static View number(int i) { return view<double>(1, 8 * i); }
  std::vector<Call>& all() { return calls_; }

  using Bytes = std::vector<std::byte>;
  /// The numbers, and tensors of positive elements.
  Bytes before(const std::vector<double>& given) const {
    Bytes bytes(static_cast<std::size_t>(end_));
    for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
      const T element = stored<T>(static_cast<double>(i % 1013) / 512 + 0.125);
      std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
    }
    if (!given.empty()) std::memcpy(bytes.data(), given.data(), given.size() * sizeof(double));
    return bytes;
  }
  /// All memory behind the calls, which are computed at once, or one by one. `given`: the numbers, of which the last
  /// says whether updates are made.
  Bytes run(const Operation& operation, bool together, const std::vector<double>& given) const {
    Bytes bytes = before(given);
    GpuMemory memory = test_device().memory(end_);
    memory.change(0, end_, [&](std::byte* host) { std::memcpy(host, bytes.data(), bytes.size()); });
    std::vector<Call> calls = calls_;
    std::vector<Kernel> kernels;
    const auto move = [&](View& v) { v.data = memory.data() + reinterpret_cast<std::uintptr_t>(v.data); };
    for (Call& call : calls) {
      for (View& v : call.operands) move(v);
      for (View& v : call.results) move(v);
      kernels.push_back(test_device().kernel(operation, call));
      call.commit = reinterpret_cast<const double*>(memory.data()) + numbers - 1;
    }
    for (Call& call : calls) call.operation = &operation;
    const FusedKernel fused = test_device().fused(calls);
    REQUIRE(bool(fused));
    if (together) fused.compute(calls);
    for (std::size_t i = 0; i < calls.size() && !together; ++i) kernels[i](calls[i]);
    memory.look(0, end_, [&](const std::byte* host) { bytes.assign(host, host + end_); });
    return bytes;
  }
  template <class U>
  static double element(const Bytes& bytes, const View& v, std::int64_t i) {
    U x;
    std::memcpy(&x, bytes.data() + reinterpret_cast<std::uintptr_t>(v.data) + static_cast<std::size_t>(i) * sizeof(U),
                sizeof(U));
    return ::number(x);
  }

 private:
  template <class U>
  static View view(std::int64_t elements, std::int64_t at) {
    View v;
    v.data = reinterpret_cast<void*>(at);
    v.dtype = dtype_of<U>;
    v.rank = 1;
    v.size[0] = v.whole[0] = elements;
    return v;
  }
  std::vector<Call> calls_{};
  std::int64_t end_ = numbers * 8;
};
/// More tensors than the parameters of a kernel have room for; some are empty, odd, or of several blocks.
Sizes many_sizes() {
  Sizes sizes;
  for (int i = 0; i < 20; ++i)
    for (const int n : {0, 1, 64, 33, 1024, 16384 + 4 * i, 9001 + i}) sizes.push_back(n);
  sizes.push_back(1200004);  // blocks go over it several times
  return sizes;
}
/// Counts what each operation launches, where that is to be seen: on the stand-in. Not `together`: it computes no calls
/// at once.
class Counting : public TestDevice {
 public:
  explicit Counting(bool together) : together_(together) {}
  Kernel kernel(const Operation& operation, Call& call) const {
    const Kernel found = TestDevice::kernel(operation, call);
    if (found == nullptr) return nullptr;
    call.context = &contexts_->emplace_back(
        Context{*static_cast<cuda::Context*>(call.context), found, {}, &(*launches_)[operation.name]});
    return [](const Call& c) { of(c).count([&] { of(c).kernel(c); }); };
  }
  FusedKernel fused(std::span<Call> calls) const {
    const bool of_one = calls.size() == 1 || calls[1].operation == calls[0].operation;
    FusedKernel found = of_one && !together_ ? FusedKernel{} : TestDevice::fused(calls);
    if (!found) return {};
    calls[0].context = &contexts_->emplace_back(Context{*static_cast<cuda::Context*>(calls[0].context), nullptr, found,
                                                        &(*launches_)[calls[0].operation->name]});
    found.compute = [](std::span<const Call> all) { of(all[0]).count([&] { of(all[0]).fused.compute(all); }); };
    return found;
  }
  /// Since it was last asked.
  std::map<std::string_view, std::uint64_t> launches() const {
    auto result = *launches_;
    for (auto& [name, n] : *launches_) n = 0;
    return result;
  }

 private:
  struct Context : cuda::Context {
    Kernel kernel;
    FusedKernel fused;
    std::uint64_t* launches;

    template <class F>
    void count(F f) const {
#if defined(PARALLEL_STAND_IN)
      *launches -= stand_in::launched;
      f();
      *launches += stand_in::launched;
#else
      f();
#endif
    }
  };
  static const Context& of(const Call& call) { return *static_cast<const Context*>(call.context); }

  bool together_;
  std::shared_ptr<std::deque<Context>> contexts_ = std::make_shared<std::deque<Context>>();
  std::shared_ptr<std::map<std::string_view, std::uint64_t>> launches_ =
      std::make_shared<std::map<std::string_view, std::uint64_t>>();
};

/// What a rank's step launches, and all that is trained behind three of them.
struct Trained {
  std::map<std::string_view, std::uint64_t> launches{};
  std::vector<std::byte> bytes{};
};
enum class How { one_by_one, together, recorded, captured };
/// `feed(executor, step)` gives inputs, and says whether the step is to be skipped.
template <class Program, class Feed>
std::vector<Trained> train(const Mesh& mesh, How how, Feed feed) {
  const OwnedPlan plan = derive<Program>(mesh);
  std::vector<Trained> ranks(static_cast<std::size_t>(mesh.ranks()));
  run_threads(mesh.ranks(), [&](Threads& world) {
    Trained& trained = ranks[static_cast<std::size_t>(world.rank())];
    const Counting device(how != How::one_by_one);
    under_test::Parameters parameters(plan, world.rank(), 5, device);
    typename Program::Optimizer::Hyperparameters numbers{.weight_decay = 0.1};
    numbers.clip_norm = 1;
    Trainer<Threads, Counting> trainer(plan, world, parameters, numbers, 1, device);
    trainer.on_no_number(NoNumber::skips);
    Recording recording(*plan, world.rank(), 4);
    if (how == How::recorded) trainer.executor().record(recording);
    if (how == How::captured) trainer.executor().capture();
    device.launches();
    for (int step = 0; step < 3; ++step) {
      const bool skipped = feed(trainer.executor(), step);
      CHECK(trainer.step(1e-2).skipped == skipped);
      if (how != How::captured) trained.launches = device.launches();
    }
    std::vector<std::byte> room;
    for (int m = 0; m < static_cast<int>(plan->graph.members.size()); ++m) {
      if (plan->graph.member(m).role == Role::input) continue;
      const View v = trainer.executor().on_host(trainer.executor().member(m), room);
      trained.bytes.insert(trained.bytes.end(), v.as<std::byte>(),
                           v.as<std::byte>() + v.elements() * bytes_of(v.dtype));
    }
  });
  return ranks;
}

/// As ZeRO keeps them: a part on each rank.
struct Sharded {
  Parameter<float, Shape<6, 10>, Stored<data, Split<0>>> up{normal(0.3)};
  Parameter<float, Shape<10, 6>, Stored<data, Split<1>>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(x, up)), down); }
};
struct OfSharded {
  Layers<3, Sharded> layers;
  Sharded last;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(last(layers(x)) - y)); }
};
constexpr int rows = 4, width = 6;
using Batch = Tensor<float, Shape<rows / data, width>>;
const auto feed_numbers = [](auto& executor, int step) {
  auto x = program::numbers<float>(rows * width, 1), y = program::numbers<float>(rows * width, 2);
  if (step == 1) x[0] = std::numeric_limits<float>::infinity();
  executor.input(0, x);
  executor.input(1, y);
  return step == 1;
};
constexpr gpt::Sizes small{};
struct SmallGpt : gpt::Trained<small> {};
const auto feed_tokens = [](auto& executor, int step) {
  for (int i = 0; i < 2; ++i)
    executor.input(i, program::numbers<int>(small.batch * small.context, static_cast<std::uint64_t>(2 * step + i),
                                            static_cast<int>(small.vocabulary)));
  return false;
};

}  // namespace

TEST_CASE_TEMPLATE("updates of many parameters at once are those of each", T, float, double, bfloat16, float16) {
  optimizer_steps::each([]<class Optimizer>(Optimizer) {
    using Of = optimizer_steps::Of<Optimizer>;
    INFO(Of::update.name);
    typename Optimizer::Hyperparameters numbers{.learning_rate = 0.0625, .weight_decay = 0.5};
    if constexpr (requires { numbers.beta1; }) {  // binary digits, so that a sum that is 0 in double is 0 in each type
      numbers.beta1 = 0.5;
      numbers.beta2 = 0.75;
    }
    const double factor = -0.5;  // tensors are positive: so there are sums of either sign
    std::vector<double> given{factor};
    Ints ints;
    for (const double scalar : Of::scalars(numbers, 3)) {
      ints.push_back(static_cast<std::int64_t>(given.size()) - 1);
      given.push_back(scalar);
    }
    given.resize(Calls<T>::numbers, 1);
    Calls<T> calls;
    for (const std::int64_t n : many_sizes()) {
      Call& call = calls.add(n, Of::states + 1);
      call.operands.push_back(Calls<T>::number(0));
      call.operands.push_back(Calls<T>::number(1));
      call.ints = ints;
      call.ints.push_back(n % 3 == 0);  // whether it decays
    }
    const auto before = calls.before(given), each = calls.run(Of::update, false, given);
    CHECK(calls.run(Of::update, true, given) == each);
    double worst = 0;
    for (const Call& call : calls.all())
      for (std::int64_t i = 0; i < call.results[0].elements(); ++i) {
        double own[3]{};
        for (int k = 0; k <= Of::states; ++k) own[k] = Calls<T>::template element<T>(before, call.results[k], i);
        const double g = Calls<T>::template element<T>(before, call.operands[Of::states + 1], i);
        Of::step(numbers, call.results[0].elements() % 3 == 0, factor * g, 3, own);
        for (int k = 0; k <= Of::states; ++k) {
          const double error = std::abs(own[k] - Calls<T>::template element<T>(each, call.results[k], i));
          worst = std::isnan(worst) || error <= worst ? worst : error;  // what is no number is the worst
        }
      }
    CHECK(worst <= 4 * tolerance<T>);
    std::vector<double> skipped = given;
    skipped.back() = 0;
    CHECK(calls.run(Of::update, true, skipped) == calls.before(skipped));
  });
}
TEST_CASE_TEMPLATE("sums of squares of many gradients at once are those of each", T, float, double, bfloat16, float16) {
  Calls<T> calls;
  for (const std::int64_t n : many_sizes()) calls.add(n, 0);
  for (Call& call : calls.all()) call.results.push_back(calls.result());
  const auto each = calls.run(operation::square_sum, false, {}), before = calls.before({});
  CHECK(calls.run(operation::square_sum, true, {}) == each);
  for (const Call& call : calls.all()) {
    double expected = 0;
    for (std::int64_t i = 0; i < call.operands[0].elements(); ++i) {
      const double x = Calls<T>::template element<T>(before, call.operands[0], i);
      expected += x * x;
    }
    CHECK(std::abs(Calls<T>::template element<double>(each, call.results[0], 0) - expected) <= 1e-13 * expected);
  }
}
TEST_CASE("sums of sums, each of the one before, are made in order") {
  Calls<double> calls;
  View total = Calls<double>::number(0);
  for (int i = 0; i < 300; ++i) {
    Call& call = calls.all().emplace_back();
    call.operands = {total, Calls<double>::number(1)};
    call.results = {total = calls.result()};
  }
  CHECK(calls.element<double>(calls.run(operation::add_scalars, true, {0.5, 2}), total, 0) == 600.5);
}

TEST_CASE_TEMPLATE("one rank updates all parameters by one launch, to the bits of one for each", Optimizer, Sgd,
                   Momentum, Nesterov, Adam, AdamW, Lion) {
  using Step = Training<models::Regression<float, rows, width>, Optimizer, Batch, Batch>;
  const auto run = [](How how) { return train<Step>(Mesh{data = 1}, how, feed_numbers)[0]; };
  const Trained one_by_one = run(How::one_by_one), together = run(How::together), recorded = run(How::recorded);
  CHECK(together.bytes == one_by_one.bytes);
  CHECK(recorded.bytes == one_by_one.bytes);
  CHECK(run(How::captured).bytes == one_by_one.bytes);
#if defined(PARALLEL_STAND_IN)
  constexpr std::size_t parameters = 8;
  const std::string_view update = optimizer_steps::Of<Optimizer>::update.name;
  for (const Trained* trained : {&one_by_one, &recorded}) {
    CHECK(trained->launches.at(update) == parameters);
    CHECK(trained->launches.at("square_sum") == parameters);
    CHECK(trained->launches.at("add_scalars") == parameters - 1);
  }
  CHECK(together.launches.at(update) == 1);
  CHECK(together.launches.at("square_sum") == 1);
  CHECK(together.launches.at("add_scalars") == 1);
#endif
}
TEST_CASE("a GPT-2's optimizer is four launches") {
  const auto run = [](How how) { return train<SmallGpt>(Mesh{data = 1}, how, feed_tokens)[0]; };
  const Trained one_by_one = run(How::one_by_one), together = run(How::together);
  CHECK(together.bytes == one_by_one.bytes);
#if defined(PARALLEL_STAND_IN)
  for (const char* name : {"square_sum", "add_scalars", "clip", "adamw"}) CHECK(together.launches.at(name) == 1);
  CHECK(one_by_one.launches.at("adamw") == 16);
#endif
}
TEST_CASE("what stands between two calls keeps them apart") {
  const auto run = [](How how) {
    return train<Training<OfSharded, AdamW, Batch, Batch>>(Mesh{data = 2}, how, feed_numbers);
  };
  const std::vector<Trained> one_by_one = run(How::one_by_one), together = run(How::together);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(together[rank].bytes == one_by_one[rank].bytes);
#if defined(PARALLEL_STAND_IN)
    CHECK(together[rank].launches.at("adamw") == 1);
    CHECK(together[rank].launches.at("square_sum") == 2);  // between them the last gradient is waited for
#endif
  }
}

namespace {
/// Computes sums of squares at once, and sums in any order.
struct AtOnce {
  FusedKernel fused(std::span<Call> calls) const {
    const Operation* of = calls[0].operation;
    if (of != &operation::square_sum && of != &operation::add_scalars) return {};
    return {[](std::span<const Call>) {}, of == &operation::add_scalars};
  }
};
}  // namespace
TEST_CASE("calls that follow each other are computed at once, where none touches what another one writes") {
  double memory[40]{};
  using Instructions = std::vector<Instruction<int>>;
  const auto view = [&](int at, std::int64_t n) {
    View v;
    v.data = memory + at;
    v.dtype = DType::f64;
    v.rank = 1;
    v.size[0] = n;
    return v;
  };
  const auto made = [&](auto change) {
    Instructions all(3);
    for (int i = 0; i < 3; ++i) {
      Call& call = all[static_cast<std::size_t>(i)].calls.emplace_back();
      call.operation = &operation::square_sum;
      call.operands = {view(10 * i, 4)};
      call.results = {view(10 * i + 4, 1)};
    }
    change(all);
    bring_together(all, AtOnce{});
    std::vector<std::size_t> counts;
    for (const auto& i : all) counts.push_back(i.at_once.calls.size());
    return counts;
  };
  using Counts = std::vector<std::size_t>;
  CHECK(made([](Instructions&) {}) == Counts{3, 0, 0});
  CHECK(made([](Instructions& all) { all[1].kind = EventKind::wait; }) == Counts{0, 0, 0});
  CHECK(made([](Instructions& all) { all[2].calls[0].operation = &operation::add_scalars; }) == Counts{2, 0, 0});
  CHECK(made([](Instructions& all) { all[2].calls[0].operands[0].dtype = DType::f32; }) == Counts{2, 0, 0});
  CHECK(made([](Instructions& all) { all[0].calls[0].operation = &operation::adamw; }) == Counts{0, 2, 0});
  CHECK(made([](Instructions& all) { all[0].layers = 1; }) == Counts{0, 2, 0});
  CHECK(made([](Instructions& all) { all[0].micro_batches = 1; }) == Counts{0, 2, 0});
  CHECK(made([](Instructions& all) { all[0].following.push_back({}); }) == Counts{0, 2, 0});
  // what the first reads
  CHECK(made([&](Instructions& all) { all[2].calls[0].results = {view(3, 1)}; }) == Counts{2, 0, 0});
  CHECK(made([&](Instructions& all) { all[2].calls[0].results = {view(4, 1)}; }) == Counts{2, 0, 0});  // what it writes
  // what it writes, read
  CHECK(made([&](Instructions& all) { all[1].calls[0].operands = {view(4, 1)}; }) == Counts{0, 2, 0});
  CHECK(made([&](Instructions& all) { all[1].calls[0].operands = {view(0, 4)}; }) == Counts{3, 0, 0});  // read by both
  CHECK(made([&](Instructions& all) {
          for (auto& i : all) i.calls[0].operation = &operation::add_scalars;
          all[1].calls[0].operands = {view(4, 1)};
        }) == Counts{3, 0, 0});
}
