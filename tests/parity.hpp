// Layers and models against PyTorch: tools/fixtures/transformers.py has computed what they give.
#pragma once
#include <doctest/doctest.h>

#include "fixture.hpp"
#include "program.hpp"

namespace parity {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using lockstep::Array;
using program::Weighed;

inline constexpr int batch = 4, positions = 8, channels = 16, inner = 24, vocabulary = 24;
inline constexpr double seed = 5'000'000'011;  ///< of dropout, as the fixture's

/// How a hidden state lies along the sequence: whole, or sequence parallel.
inline constexpr Dim whole = positions, sliced = positions / tensor;
template <Dim context>
using Hidden = Shape<batch / data, context, channels>;
using Tokens = Tensor<int, Shape<batch / data, positions>>;
using LogitsGiven = Wanted<float, Shape<batch / data, positions, vocabulary / tensor>>;

inline std::vector<Mesh> meshes() {
  return {Mesh{tensor = 1}, Mesh{tensor = 2}, Mesh{tensor = 4}, Mesh{data = 2, tensor = 2}};
}

template <class Model>
struct Logits {
  Model model;
  constexpr auto operator()(Distributed auto... x) const { return model.logits(x...); }
};
/// AdamW that gives its gradients out.
struct Watched {
  static constexpr void update(Update& u) {
    KeepGradients::update(u);
    AdamW::update(u);
  }
};

/// A layer or model of the fixture, and what of it a program takes, in order: "cotangent", "input/x".
struct Given {
  std::string name;
  std::vector<std::string> inputs;
};

inline Array array(const std::string& name) { return {fixture()[name].sizes, fixture()[name].values}; }
/// The largest difference as a part of the largest element.
inline double off(const Array& a, const std::string& name) { return lockstep::difference(a, array(name)); }

/// A parameter's name in the fixture: its path without the structs of this file.
inline std::string name_of(const Plan& plan, const Member& m) {
  std::string path(plan.graph.path(m));
  for (const std::string_view wrapped : {"layer.", "model."})
    if (path.rfind(wrapped, 0) == 0) path.erase(0, wrapped.size());
  return path;
}
template <class T, class Running>
void feed(const Plan& plan, Running& executor, auto& parameters, const Given& given) {
  std::size_t input = 0;
  for (const Member& m : plan.graph.members)
    if (m.role == Role::parameter) {
      parameters.set(plan, executor.rank(), plan.graph.path(m),
                     fixture().values<T>(given.name + "/parameter/" + name_of(plan, m)));
    } else if (m.role == Role::input) {
      const std::string name = given.name + "/" + given.inputs.at(input);
      if (m.type.dtype == DType::i32)
        executor.input(static_cast<int>(input), fixture().values<int>(name));
      else
        executor.input(static_cast<int>(input), fixture().values<T>(name));
      ++input;
    }
}
/// What a program gives for the fixture's parameters and inputs.
template <class T>
std::vector<Array> run(const Plan& plan, const Given& given) {
  return program::outputs(plan, [&](auto& executor, under_test::Parameters& parameters) {
    feed<T>(plan, executor, parameters, given);
    if (executor.reads("seed")) executor.scalar("seed", seed);
  });
}
/// Compares gradients of parameters, which are outputs from `at` on; returns where they end.
inline std::size_t check_gradients(const Plan& plan, const std::vector<Array>& outputs, std::size_t at,
                                   const std::string& name, double tolerance) {
  for (const Member& m : plan.graph.members) {
    if (m.role != Role::parameter) continue;
    INFO(name_of(plan, m));
    REQUIRE(at < outputs.size());
    CHECK(off(outputs[at++], name + "/gradient/" + name_of(plan, m)) < tolerance);
  }
  return at;
}

/// Result, gradients of parameters and of inputs of a layer: Training<Weighed<...>, KeepGradients, the cotangent,
/// inputs...>.
template <class Step>
void check_layer(const std::string& name, const std::vector<std::string>& inputs) {
  Given given{name, {"cotangent"}};
  for (const std::string& x : inputs) given.inputs.push_back("input/" + x);
  for (const Mesh& mesh : meshes()) {
    INFO(name << " on " << text(mesh));
    const OwnedPlan plan = derive<Step>(mesh);
    const std::vector<Array> outputs = run<float>(*plan, given);
    std::size_t at = check_gradients(*plan, outputs, 2, name, 1e-4);
    CHECK(off(outputs.at(at++), name + "/output") < 1e-4);
    for (const std::string& x : inputs)
      if (fixture().has(name + "/gradient/" + x)) {
        INFO(x);
        CHECK(off(outputs.at(at++), name + "/gradient/" + x) < 1e-4);
      }
    CHECK(at == outputs.size());
  }
}

/// The logits of Evaluation<Logits<Model>, ...>.
template <class Program>
void check_logits(const Given& given) {
  for (const Mesh& mesh : meshes()) {
    INFO(given.name << " on " << text(mesh));
    CHECK(off(run<float>(derive<Program>(mesh), given)[0], given.name + "/logits") < 1e-4);
  }
}
/// The logits of a training that drops: the gradient of the cotangent of Training<Weighed<Logits<Model>>,
/// KeepGradients, LogitsGiven, ...>.
template <class Step>
void check_dropped_logits(Given given) {
  const std::string dropped = given.name + "/dropped/logits";
  given.inputs.insert(given.inputs.begin(), "logits");  // any will do
  for (const Mesh& mesh : meshes()) {
    INFO(given.name << " on " << text(mesh));
    CHECK(off(run<float>(derive<Step>(mesh), given).back(), dropped) < 1e-4);
  }
}

struct Course {
  std::vector<Array> first;  ///< outputs of the first step
  std::vector<double> losses;
};
/// `make()` gives each rank its device.
template <class T, class Make>
Course train(const Plan& plan, const Given& given, Make make) {
  Course course{program::empty_outputs(plan), {}};
  const AdamW::Hyperparameters numbers{.beta2 = 0.99, .weight_decay = 0.1};
  run_threads(plan.mesh.ranks(), [&](Threads& world) {
    const auto device = make();
    ParametersIn<MemoryOf<decltype(make())>> parameters(plan, world.rank(), 1, device);
    Trainer<Threads, decltype(make())> trainer(plan, world, parameters, numbers, static_cast<std::uint64_t>(seed),
                                               device);
    feed<T>(plan, trainer.executor(), parameters, given);
    for (int step = 0; step < 10; ++step) {
      const double loss = trainer.step(3e-3).loss;
      if (step == 0) program::gather_outputs(world, trainer.executor(), course.first);
      if (world.rank() == 0) course.losses.push_back(loss);
    }
  });
  return course;
}
template <class T>
Course train(const Plan& plan, const Given& given) {
  return train<T>(plan, given, [] { return under_test::Device{}; });
}
/// Loss, gradients and ten steps of Training<Model, Watched, ...>; `how` is "/dropped" where it drops.
template <class T, class Step>
void check_training(const Given& given, const std::string& how = "") {
  constexpr bool exact = sizeof(T) == 8;
  const std::string name = given.name + how;
  std::vector<double> one;
  for (const Mesh& mesh : meshes()) {
    INFO(name << " on " << text(mesh) << (exact ? " in double" : " in float"));
    const OwnedPlan plan = derive<Step>(mesh);
    const Course course = train<T>(*plan, given);
    CHECK(off(course.first[0], name + "/loss") < (exact ? 1e-7 : 1e-5));
    CHECK(check_gradients(*plan, course.first, 2, name, exact ? 1e-6 : 1e-4) == course.first.size());
    if (one.empty()) one = course.losses;
    const std::vector<double> expected = fixture()[name + "/losses"].values;
    for (std::size_t step = 0; step < 10; ++step) {
      INFO("step " << step);
      CHECK(std::abs(course.losses[step] - expected[step]) < (exact ? 1e-10 : 1e-5));
      CHECK(std::abs(course.losses[step] - one[step]) < (exact ? 1e-10 : 1e-5));
    }
  }
}

}  // namespace parity
