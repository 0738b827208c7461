// Programs around layers over stages: every loss and gradient is that of one rank, wherever values live.
#include <tuple>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using lockstep::Array;

namespace {

constexpr int width = 4, depth = 4, rows = 4, micro_batches = 4;
using X = Tensor<double, Shape<rows / data, width>>;
template <class... Annotation>
using Square = Parameter<double, Shape<width, width>, Annotation...>;

struct Plain {
  Square<> w{normal(0.5)};
  Parameter<double, Shape<width>> b{normal(0.5)};
  constexpr auto operator()(Distributed auto x) const { return x + tanh(matmul(x, w) + b); }
};
struct Storing {
  Square<Stored<data, Split<0>>> w{normal(0.5)};
  constexpr auto operator()(Distributed auto x) const { return x + tanh(matmul(x, w)); }
};
struct Again {
  Square<> w{normal(0.5)};
  constexpr auto operator()(Distributed auto x) const { return x + tanh(recompute(matmul(x, w))); }
};
struct Guided {
  Square<> w{normal(0.5)};
  constexpr auto operator()(Distributed auto x, Distributed auto guide) const { return x + tanh(matmul(x, w) + guide); }
};

/// Nothing stands before the layers.
template <Dim layers>
struct Bare {
  Layers<layers, Plain> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
/// What stands before the layers is needed behind them, too.
template <Dim layers>
struct Skip {
  Square<> in{normal(0.5)};
  Layers<layers, Plain> blocks;
  Square<> out{normal(0.5)};
  constexpr auto operator()(Distributed auto x) const {
    const auto begun = matmul(x, in);
    return mean(square(matmul(blocks(begun) + begun, out)));
  }
};
/// One parameter before and behind the layers, and a second loss that depends on no layer.
template <Dim layers>
struct Tied {
  Square<> in{normal(0.5)};
  Layers<layers, Plain> blocks;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(matmul(blocks(matmul(x, in)), transpose(in)))) + mean(square(in));
  }
};
/// Every layer of every stage takes the same activation and the same parameter.
template <Dim layers>
struct Guiding {
  Square<> in{normal(0.5)}, guide{normal(0.5)};
  Parameter<double, Shape<width>> shared{normal(0.5)};
  Layers<layers, Guided> blocks;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(blocks(matmul(x, in), tanh(matmul(x, guide)) + shared)));
  }
};
/// What every layer takes is used behind them, too, and one of the layers' operands twice.
template <Dim layers>
struct GuidingOn {
  Square<> in{normal(0.5)}, guide{normal(0.5)};
  Layers<layers, Guided> blocks;
  constexpr auto operator()(Distributed auto x) const {
    const auto g = tanh(matmul(x, guide)), h = matmul(x, in);
    return mean(square(blocks(h, g) + g)) + mean(square(h));
  }
};
/// The layers are there, and the loss does not need them.
template <Dim layers>
struct Needless {
  Square<> in{normal(0.5)};
  Layers<layers, Plain> blocks;
  constexpr auto operator()(Distributed auto x) const {
    static_cast<void>(blocks(matmul(x, in)));
    return mean(square(matmul(x, in)));
  }
};
/// Parameters, gradients and states that are split at rest.
template <Dim layers>
struct AtRest {
  Square<Stored<data, Split<0>>> in{normal(0.5)};
  Layers<layers, Storing> blocks;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(matmul(blocks(matmul(x, in)), transpose(in))));
  }
};
template <Dim layers>
struct Recomputing {
  Layers<layers, Again> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
/// The loss of each row, and rows whose sum is pending.
template <Dim layers>
struct Rows {
  Layers<layers, Plain> blocks;
  constexpr auto operator()(Distributed auto x) const { return sum<0>(square(blocks(x))); }
};
/// Other layers before and behind, on one stage each.
template <Dim layers>
struct Around {
  Layers<2, Plain> before;
  Layers<layers, Plain> blocks;
  Layers<3, Plain> behind;
  constexpr auto operator()(Distributed auto x) const { return mean(square(behind(blocks(before(x))))); }
};

/// Results from everywhere: of the input, of parameters, before the layers, behind them, and of both.
template <Dim layers>
struct Several {
  Square<> in{normal(0.5)}, out{normal(0.5)};
  Layers<layers, Plain> blocks;
  constexpr auto operator()(Distributed auto x) const {
    const auto begun = matmul(x, in), ended = blocks(begun);
    return std::tuple{ended,           x * 2.0,        begun,     tanh(begun),
                      sum(square(in)), sum(square(x)), ended + x, matmul(ended, out) + matmul(begun, out),
                      matmul(in, out), mean(ended)};
  }
};
/// Beside the result what a training does not give out, the input and a parameter among it.
template <Dim layers>
struct Net {
  Square<> in{normal(0.5)}, out{normal(0.5)};
  Layers<layers, Plain> blocks;
  constexpr auto operator()(Distributed auto x) const {
    const auto begun = matmul(x, in);
    return std::tuple{matmul(blocks(begun), out), begun,   tanh(begun), sum(square(in)),
                      sum(square(out)),           x * 2.0, x,           in};
  }
};
template <Dim layers>
struct Teaching {
  Net<layers> net;
  constexpr auto operator()(Distributed auto x) const { return mean(square(std::get<0>(net(x)))); }
};

/// What crosses a cut crosses it in slices.
struct Scattered {
  Layers<depth / stage, Plain, On<tensor, Split<1>>> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};

const std::vector<double> x = program::numbers<double>(micro_batches * rows * width, 1);

template <class Program>
std::vector<Array> outputs(const Mesh& mesh, const Schedule* schedule = nullptr) {
  Graph graph = build<Program>();
  if (schedule != nullptr) graph = with_schedule(graph, *schedule);
  std::vector<Array> whole = program::empty_outputs(derive(graph, mesh, {}, {}));
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive(graph, mesh.on_stage(mesh.coordinate(world.rank(), &stage)), {}, {});
    const auto feed = [&](auto& executor, under_test::Parameters&) {
      executor.input(0, std::span(x).first(program::input_elements(plan)));
    };
    program::run_rank(plan, world, feed, whole);
  });
  return whole;
}
template <template <Dim> class Model, class Input = X>
void check() {
  using One = Accumulate<micro_batches, Training<Model<depth>, KeepGradients, Input>>;
  using Staged = Accumulate<micro_batches, Training<Model<depth / stage>, KeepGradients, Input>>;
  const std::vector<Array> one = outputs<One>(Mesh{data = 1});
  REQUIRE(one.size() >= 3);
  const Graph graph = build<Staged>();
  for (const Schedule* schedule :
       {&schedules::one_forward_one_backward, &schedules::zero_bubble_h2, &schedules::interleaved<2>})
    for (const Mesh& mesh :
         {Mesh{stage = 1}, Mesh{stage = 2}, Mesh{stage = 4}, Mesh{data = 2, stage = 2}, Mesh{stage = 4, data = 2}}) {
      if (schedule->chunks > 1 && mesh.extent(&stage) == 4) continue;
      INFO(schedule->name << " on " << text(mesh));
      const std::vector<Array> many = outputs<Staged>(mesh, schedule);
      REQUIRE(many.size() == one.size());
      for (std::size_t i = 0; i < one.size(); ++i) {
        INFO("output " << i);
        CHECK(lockstep::difference(many[i], one[i]) < 1e-12);
      }
    }
}

}  // namespace

TEST_CASE("layers alone") { check<Bare>(); }
TEST_CASE("a skip connection over all stages") { check<Skip>(); }
TEST_CASE("a parameter on the first and the last stage") { check<Tied>(); }
TEST_CASE("an activation and a parameter that every layer takes") { check<Guiding>(); }
TEST_CASE("what every layer takes, needed behind them") { check<GuidingOn>(); }
TEST_CASE("layers that the loss does not need") {
  check<Needless>();
  // of the first stage nothing is needed, not even its loop
  const Graph graph = build<Accumulate<micro_batches, Training<Needless<depth / stage>, KeepGradients, X>>>();
  const OwnedPlan plan = derive(graph, Mesh{stage = 4}.on_stage(0), {}, {});
  int events = 0;
  each_event(*plan, [&](const Event&) { ++events; });
  CHECK(events == static_cast<int>(plan->events.size()));
}
TEST_CASE("parameters split at rest") { check<AtRest>(); }
TEST_CASE("values that are computed again") { check<Recomputing>(); }
TEST_CASE("layers around layers") { check<Around>(); }
TEST_CASE("the gradient of an input") { check<Bare, Wanted<double, Shape<rows / data, width>>>(); }

TEST_CASE("forward only, and the result on every rank") {
  using One = Evaluation<Skip<depth>, X>;
  const std::vector<Array> one = outputs<One>(Mesh{data = 1});
  for (const Mesh& mesh : {Mesh{stage = 1}, Mesh{stage = 2}, Mesh{stage = 4}, Mesh{data = 2, stage = 2}}) {
    INFO(text(mesh));
    CHECK(lockstep::difference(outputs<Evaluation<Skip<depth / stage>, X>>(mesh)[0], one[0]) < 1e-14);
    CHECK(lockstep::difference(outputs<Evaluation<Rows<depth / stage>, X>>(mesh)[0],
                               outputs<Evaluation<Rows<depth>, X>>(Mesh{data = 1})[0]) < 1e-13);
    CHECK(lockstep::difference(outputs<Pipelined<schedules::interleaved<2>, Evaluation<Skip<depth / stage>, X>>>(
                                   mesh.extent(&stage) == 4 ? Mesh{stage = 2} : mesh)[0],
                               one[0]) < 1e-14);
  }
}

/// What every rank has of the outputs of a program, which runs on the parameters of the one before it.
template <class Before, class Program>
void check_outputs(const Mesh& mesh, const std::vector<Array>& expected) {
  INFO(text(mesh));
  const Graph before = build<Before>(), graph = build<Program>();
  run_threads(mesh.ranks(), [&](Threads& world) {
    const Mesh on_stage = mesh.on_stage(mesh.coordinate(world.rank(), &stage));
    const OwnedPlan first = derive(before, on_stage, {}, {}), plan = derive(graph, on_stage, {}, {});
    under_test::Parameters parameters(first, world.rank(), 5);
    Executor<Threads, under_test::Device> trained(first, world, parameters), executor(plan, world, parameters);
    executor.input(0, std::span(x).first(program::input_elements(plan)));
    executor.run();
    REQUIRE(executor.outputs() == static_cast<int>(expected.size()));
    for (int o = 0; o < executor.outputs(); ++o) {
      INFO("rank " << world.rank() << ", result " << o);
      std::vector<std::byte> room;
      const View own = executor.on_host(executor.output(o), room);
      REQUIRE(own.data != nullptr);
      Array whole = expected[static_cast<std::size_t>(o)];
      program::gather<double>(own, whole);
      CHECK(lockstep::difference(whole, expected[static_cast<std::size_t>(o)]) < 1e-14);
    }
  });
}

TEST_CASE("results of an evaluation, wherever they are made, are on every rank") {
  const std::vector<Array> one = outputs<Evaluation<Several<depth>, X>>(Mesh{data = 1});
  REQUIRE(one.size() == 10);
  using Staged = Evaluation<Several<depth / stage>, X>;
  using Crossed = Pipelined<schedules::interleaved<2>, Staged>;
  for (const Mesh& mesh : {Mesh{stage = 1}, Mesh{stage = 2}, Mesh{stage = 4}, Mesh{data = 2, stage = 2}})
    check_outputs<Staged, Staged>(mesh, one);
  for (const Mesh& mesh : {Mesh{stage = 2}, Mesh{data = 2, stage = 2}}) check_outputs<Crossed, Crossed>(mesh, one);
}

TEST_CASE("an evaluation that gives out more has its parameters where the training has them") {
  using Shown = Evaluation<Net<depth / stage>, X>;
  using Taught = Accumulate<micro_batches, Training<Teaching<depth / stage>, AdamW, X>>;
  const std::vector<Array> one = outputs<Evaluation<Net<depth>, X>>(Mesh{data = 1});
  for (const Mesh& mesh : {Mesh{stage = 1}, Mesh{stage = 2}, Mesh{stage = 4}, Mesh{data = 2, stage = 2}})
    check_outputs<Taught, Shown>(mesh, one);
  using Stored_ = AllStored<Shown, Stored<data>>;
  using TaughtStored = AllStored<Taught, Stored<data>>;
  for (const Mesh& mesh : {Mesh{stage = 2}, Mesh{data = 2, stage = 2}}) check_outputs<TaughtStored, Stored_>(mesh, one);
}

TEST_CASE("tasks that no stage does are no slots, whoever asks for them") {
  const Graph graph = build<Accumulate<micro_batches, Training<Bare<depth / stage>, KeepGradients, X>>>();
  constexpr Schedule strange{
      "strange", 1, false, false, [](int, int, int, int) {
        Tasks tasks;
        for (const Task& task : {Task{Work::forward, 0, 0}, Task{Work::weight, 0, 0}, Task{Work::forward, 0, 7},
                                 Task{Work::forward, 9, 0}, Task{Work::backward, 0, 0}, Task{Work::forward, -1, 0}})
          tasks.push_back(task);
        return tasks;
      }};
  const Graph scheduled = with_schedule(graph, strange);
  const Located located = locate(scheduled, Mesh{stage = 2}.on_stage(0));
  REQUIRE(located.slots.size() == 2);
  for (int i = 0; i < 2; ++i) {
    CHECK(located.parts[located.slots[i].part].work == (i == 0 ? Work::forward : Work::backward));
    CHECK(located.slots[i].micro_batch == 0);
  }
}

TEST_CASE("schedules that are refused when a program starts") {
  const Graph graph = build<Accumulate<micro_batches, Training<Bare<depth / stage>, KeepGradients, X>>>();
  const auto said = [&](const Schedule& schedule) {
    try {
      derive(with_schedule(graph, schedule), Mesh{stage = 2}, {}, {});
    } catch (const MeshRefused& refused) {
      return std::string(refused.what());
    }
    return std::string();
  };
  constexpr Schedule forgotten{"forgotten"};
  CHECK(said(forgotten) ==
        std::string(sentence_of(ScheduleReason::no_tasks)) + ": stages 2, micro_batches 4, for stage=2");
  constexpr Schedule seldom{"seldom", 1, false, true, [](int, int, int count, int) {
                              return schedules::in_turn(count, 0, [](Tasks& tasks, int k) {
                                if (k % 2 == 1) tasks.push_back({Work::update, k});
                              });
                            }};
  CHECK(said(seldom) ==
        std::string(sentence_of(ScheduleReason::update_late)) + ": rank 0, micro_batch 0, chunk 0, for stage=2");
  CHECK(said(schedules::interleaved<4>) ==
        std::string(sentence_of(Reason::stage_share)) +
            ": stage=2 gives each stage 2 of 4 layers, for interleaved<4> in 4 chunks");
  CHECK(said(schedules::interleaved<2>) == "");
}

TEST_CASE("demands on programs with stages") {
  const Graph graph = build<Accumulate<micro_batches, Training<Bare<depth / stage>, KeepGradients, X>>>();
  const auto said = [&](const Mesh& mesh, const Demands& demands) {
    try {
      derive(graph, mesh, {}, demands);
    } catch (const MeshRefused& refused) {
      return std::string(refused.what()).substr(sentence_of(refused.reason).size());
    }
    return std::string();
  };
  // what goes from stage to stage is written: it is the layers' axis
  CHECK(said(Mesh{stage = 2, data = 2}, {.strict = true}) == "");
  // and so is how it crosses
  CHECK(derive<Strict<Evaluation<Scattered, X>>>(Mesh{stage = 2, tensor = 2})->forward.calls(tensor) == 1);
  for (const int here : {0, 1, 2, 3}) {
    const Mesh mesh = Mesh{stage = 4}.on_stage(here);
    const OwnedPlan plan = derive(graph, mesh, {}, {});
    const std::int64_t peak = plan->peak_memory(), bytes = static_cast<std::int64_t>(plan->sent(stage));
    CHECK(said(mesh, {.memory = peak}) == "");
    CHECK(said(mesh, {.memory = peak - 1}) ==
          ": " + std::to_string(peak) + " bytes with stage=4, the budget is " + std::to_string(peak - 1));
    Demands sent;
    sent.on.push_back(&stage);
    sent.sent.push_back(bytes);
    CHECK(said(mesh, sent) == "");
    --sent.sent[0];
    CHECK(said(mesh, sent) ==
          ": " + std::to_string(bytes) + " bytes on stage with stage=4, the budget is " + std::to_string(bytes - 1));
  }
}

TEST_CASE("sums of micro-batches' gradients are gradients in the account of memory") {
  const Graph graph = build<Accumulate<micro_batches, Training<Bare<depth / stage>, KeepGradients, X>>>();
  const auto of = [&](const Mesh& mesh, Use use) { return derive(graph, mesh, {}, {})->memory.of(use); };
  CHECK(of(Mesh{stage = 2}, Use::gradients) == of(Mesh{stage = 2}, Use::parameters));
  // and what they are reduced to
  CHECK(of(Mesh{stage = 2, data = 2}, Use::gradients) == 2 * of(Mesh{stage = 2}, Use::parameters));
}
