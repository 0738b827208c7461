// A training that stops and goes on later, on the same ranks or on others: parameters, the optimizer's state and the
// numbers of the run are read out whole, and set in executors that know nothing of the ones before.
#include <map>

#include <doctest/doctest.h>

#include "pipeline_training.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using namespace pipelines;

namespace {

constexpr int before = 3, behind = 3;

/// All that a training goes on with.
struct Saved {
  std::map<std::string, std::vector<double>> tensors{};
  double step = 0;
  LossScale loss_scale{};
};
/// Steps, and what was there behind the first of them.
struct Ran {
  std::vector<double> losses{};
  Saved saved{};
};

struct Case {
  const Graph* program;
  Mesh mesh;
};

template <class Trainer>
void save(Trainer& trainer, Threads& world, Saved& saved) {
  auto& executor = trainer.executor();
  for (const NamedTensor& t : executor.tensors()) {
    if (world.rank() == 0) saved.tensors[t.name].assign(static_cast<std::size_t>(t.type.layout.elements()), 9e9);
    for (int rank = 0; rank < world.size(); ++rank) {  // several may write the same elements
      world.barrier();
      if (rank == world.rank()) executor.get(t.name, saved.tensors[t.name]);
    }
    world.barrier();
  }
  const double step = executor.scalar("step");
  if (world.rank() == 0) saved.step = step;
  if (!executor.reads("loss_scale")) return;
  const LossScale scale = trainer.loss_scale();
  if (world.rank() == 0) saved.loss_scale = scale;
}
template <class Trainer>
void load(Trainer& trainer, const Saved& saved) {
  auto& executor = trainer.executor();
  for (const NamedTensor& t : executor.tensors()) executor.set(t.name, saved.tensors.at(t.name));
  executor.scalar("step", saved.step);
  if (executor.reads("loss_scale")) trainer.loss_scale(saved.loss_scale);
}

/// So many steps of a training that goes on from `from`, if any, with what was there behind `kept` of them.
template <class Hyperparameters>
Ran run(const Case& on, const Hyperparameters& numbers, int steps_of, int kept, const Saved* from) {
  Ran ran;
  std::vector<std::vector<double>> losses(static_cast<std::size_t>(on.mesh.ranks()));
  run_threads(on.mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = plan_of(*on.program, on.mesh, world.rank());
    under_test::Parameters parameters(plan, world.rank(), from == nullptr ? 5 : 77);
    Trainer<Threads, under_test::Device> trainer(plan, world, parameters, numbers, 3);
    feed(trainer.executor());
    if (from != nullptr) load(trainer, *from);
    for (int step = 0; step < steps_of; ++step) {
      if (step == kept) save(trainer, world, ran.saved);
      losses[static_cast<std::size_t>(world.rank())].push_back(trainer.step(1e-2).loss);
    }
    if (steps_of == kept) save(trainer, world, ran.saved);
  });
  for (const auto& other : losses) CHECK(other == losses[0]);
  ran.losses = losses[0];
  return ran;
}

/// Each training stops, and goes on as each: with the same losses, and bits where it goes on as it was.
template <class Hyperparameters>
void check(const std::vector<Case>& cases, const Hyperparameters& numbers, double tolerance) {
  for (const Case& first : cases) {
    const Ran whole = run(first, numbers, before + behind, before, nullptr);
    const std::vector<double> expected(whole.losses.begin() + before, whole.losses.end());
    CHECK(whole.saved.step == before + 1);
    for (const Case& then : cases) {
      INFO("from " << text(first.mesh) << " on " << text(then.mesh));
      const bool same = &first == &then;
      const Ran resumed = run(then, numbers, behind, 0, &whole.saved);
      CHECK(resumed.saved.tensors == whole.saved.tensors);  // what was set is what is there
      CHECK(resumed.saved.step == whole.saved.step);
      CHECK(resumed.saved.loss_scale.scale == whole.saved.loss_scale.scale);
      CHECK(resumed.saved.loss_scale.steps == whole.saved.loss_scale.steps);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (same)
          CHECK(resumed.losses[i] == expected[i]);
        else
          CHECK(resumed.losses[i] == doctest::Approx(expected[i]).epsilon(tolerance));
      }
    }
  }
}

template <class Optimizer>
using By = Accumulate<micro_batches, Training<Gpt<double>, Optimizer, Tokens, Tokens, Tokens>>;

}  // namespace

TEST_CASE("a training goes on from whole tensors, on every mesh") {
  const Graph plain = build<Train<double>>(), chunks = with_schedule(plain, schedules::interleaved<2>),
              states = build<AllStored<Train<double>, Stored<data, Zero::states>>>(),
              gradients = build<AllStored<Train<double>, Stored<data, Zero::gradients>>>(),
              parameters = build<AllStored<Train<double>, Stored<data>>>();
  check({{&plain, Mesh{data = 1}},
         {&plain, Mesh{data = 2}},
         {&plain, Mesh{data = 4}},
         {&plain, Mesh{data = 2, tensor = 2}},
         {&states, Mesh{data = 2}},
         {&gradients, Mesh{data = 4}},
         {&parameters, Mesh{data = 2, tensor = 2}},
         {&plain, Mesh{stage = 2}},
         {&chunks, Mesh{data = 2, stage = 2}},
         {&parameters, Mesh{data = 2, stage = 2}}},
        AdamW::Hyperparameters{.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 1e-9);
}
TEST_CASE("states of other shapes") {
  const auto of = []<class Optimizer>(Optimizer, double tolerance) {
    const Graph plain = build<By<Optimizer>>(), stored = build<AllStored<By<Optimizer>, Stored<data, Zero::states>>>();
    check({{&plain, Mesh{data = 1}}, {&stored, Mesh{data = 2}}, {&plain, Mesh{stage = 2}}},
          typename Optimizer::Hyperparameters{}, tolerance);
  };
  of(Adafactor{}, 1e-9);
  of(Muon{}, 1e-9);
}
TEST_CASE("a scaled loss goes on from its scale and its count of steps") {
  const Graph scaled = build<LossScaled<Train<double>>>();
  check({{&scaled, Mesh{data = 1}}, {&scaled, Mesh{data = 2}}}, AdamW::Hyperparameters{}, 1e-9);
}
TEST_CASE("tensors are known by their names, and what does not fit is one sentence") {
  const Graph plain = build<Train<double>>();
  const OwnedPlan plan = plan_of(plain, Mesh{data = 1}, 0);
  run_threads(1, [&](Threads& world) {
    under_test::Parameters parameters(plan, 0, 5);
    Trainer<Threads, under_test::Device> trainer(plan, world, parameters, AdamW::Hyperparameters{}, 3);
    auto& executor = trainer.executor();
    const std::vector<NamedTensor> all = executor.tensors();
    CHECK(all.size() == 3 * 10);
    CHECK(all[0].name == "token");
    CHECK(all[0].role == Role::parameter);
    const auto of = [&](std::string_view name) {
      return *std::find_if(all.begin(), all.end(), [&](const NamedTensor& t) { return t.name == name; });
    };
    CHECK(of("blocks.*.up.variance").role == Role::state);
    CHECK(text(of("blocks.*.up.variance").type) == "f64[8/stage, 16, 32/tensor]");
    const auto said = [](auto f) -> std::string {
      try {
        f();
      } catch (const Misuse& misuse) {
        return misuse.what();
      }
      return "";
    };
    std::vector<double> few(3);
    CHECK(said([&] { executor.set("gain.mean", few); }) ==
          "the tensor gain.mean is f64[16] At<-1>@stage and has 16 elements, but what was given has 3; give all "
          "of the whole tensor, of which a rank has a part");
    CHECK(said([&] { executor.get("gain.mean", few); }) == said([&] { executor.set("gain.mean", few); }));
    CHECK(said([&] {
            executor.set("gain.mode", few);
          }).starts_with("the program has no tensor gain.mode; it has token, position, "));
    CHECK(said([&] {
            static_cast<void>(executor.scalar("steps"));
          }).starts_with("the program reads no number 'steps'; it reads "));
    CHECK(executor.scalar("step") == 1);
    CHECK(executor.scalar("seed") == 3);
    executor.set("gain", std::vector<double>(16, 2));
    std::vector<double> gain(16);
    parameters.get(plan, 0, "gain", gain);
    CHECK(gain == std::vector<double>(16, 2));
  });
}
TEST_CASE("what every rank holds whole all are given alike") {
  const Graph plain = build<Train<double>>();
  const auto run_with = [&](auto set) {
    std::string words;
    try {
      run_threads(2, [&](Threads& world) {
        const OwnedPlan plan = plan_of(plain, Mesh{data = 2}, world.rank());
        under_test::Parameters parameters(plan, world.rank(), 5);
        Trainer<Threads, under_test::Device> trainer(plan, world, parameters, AdamW::Hyperparameters{}, 3);
        feed(trainer.executor());
        set(trainer.executor(), world.rank());
        trainer.step();
      });
    } catch (const Failure& failure) {
      words = failure.what();
    }
    return words;
  };
  const auto all_of = [](double value) { return std::vector<double>(16, value); };
  CHECK(run_with([&](auto& e, int) { e.set("gain.mean", all_of(0.5)); }) == "");
  const auto has = [](const std::string& all, const std::string& words) {
    INFO(all);
    CHECK(all.find(words) != std::string::npos);
  };
  has(run_with([&](auto& e, int rank) { e.set("gain.mean", all_of(rank)); }),
      "state that was set of rank 0 and of rank 1: gain.mean at resumed.cpp:");
  has(run_with([&](auto& e, int rank) {
        if (rank == 1) e.set("gain.mean", all_of(0));
      }),
      "state that was set of rank 0 and of rank 1: none against gain.mean at resumed.cpp:");
  has(run_with([&](auto& e, int rank) { e.set("gain", all_of(rank)); }),
      "parameters that were set of rank 0 and of rank 1: gain at resumed.cpp:");
}
