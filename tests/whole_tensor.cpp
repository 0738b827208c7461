// A whole tensor on every rank: what the ranks fill together by `get`, of any elements, however it lies.
#include <cstring>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/run/whole_tensor.hpp>

#include "pipeline_training.hpp"

using namespace parallel;
using namespace parallel::axes;

namespace {

template <class T>
using Tensors = std::map<std::string, std::vector<T>>;

/// Compares all of these, which a rank after the other fills.
template <class T, class World, class E>
void check_all(World& world, E& executor, Tensors<T>& filled, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (int rank = 0; rank < world.size(); ++rank, world.barrier())
      if (rank == world.rank()) executor.get(name, filled.at(name));
    INFO("rank " << world.rank() << ": " << name);
    const std::vector<T> whole = whole_tensor<T>(world, executor, name);
    REQUIRE(whole.size() == filled.at(name).size());
    CHECK(std::memcmp(whole.data(), filled.at(name).data(), whole.size() * sizeof(T)) == 0);
    world.barrier();
  }
}
/// Names of what has elements of this type, with room for each.
template <class T, class E>
std::vector<std::string> names_of(const E& executor, Tensors<T>* room) {
  std::vector<std::string> names;
  for (const NamedTensor& t : executor.tensors())
    if (t.type.dtype == internals::dtype_of<T>) {
      names.push_back(t.name);
      if (room != nullptr) (*room)[t.name].resize(static_cast<std::size_t>(t.type.layout.elements()), T(-7));
    }
  return names;
}

/// Odd numbers of elements, of which a part is no whole number of words.
template <class T>
struct Small {
  Parameter<T, Shape<4, 6 / tensor>> up{normal(0.4)};
  Parameter<T, Shape<6 / tensor>> bias{normal(0.4)};
  Parameter<T, Shape<3, 5>> odd{normal(0.4)};
  constexpr auto operator()(Distributed auto x) const {
    return sum(cast<float>(matmul(x, up) + bias)) + sum(cast<float>(odd));
  }
};
template <class T>
using Step = Training<Small<T>, AdamW, Tensor<T, Shape<4 / data, 4>>>;
using Rounded = Training<Small<float>, StatesIn<bfloat16, AdamW>, Tensor<float, Shape<4 / data, 4>>>;

template <class Program, class In, class T>
void check_elements(const Mesh& mesh) {
  Tensors<T> filled;
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive<Program>(mesh);
    Parameters parameters(plan, world.rank(), 5);
    Executor<Threads, Cpu> executor(plan, world, parameters);
    executor(std::vector<In>(16, In(0.5F)));
    const auto names = names_of<T>(executor, world.rank() == 0 ? &filled : nullptr);
    world.barrier();
    CHECK(names.size() >= 3);
    check_all(world, executor, filled, names);
  });
}

}  // namespace

TEST_CASE("elements of any width, whole, split and stored in parts") {
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}, Mesh{data = 2, tensor = 2}, Mesh{tensor = 3, data = 4}}) {
    check_elements<Step<float>, float, float>(mesh);
    check_elements<Step<bfloat16>, bfloat16, float>(mesh);
    check_elements<Rounded, float, bfloat16>(mesh);
    check_elements<AllStored<Step<float>, Stored<data>>, float, float>(mesh);
    check_elements<AllStored<Rounded, Stored<data, Zero::states>>, float, bfloat16>(mesh);
  }
}

TEST_CASE("layers of stages that have different numbers of them") {
  using namespace pipelines;
  using Odd = Balanced<Accumulate<micro_batches, Training<Gpt<double, 7 / stage>, AdamW, Tokens, Tokens, Tokens>>>;
  const internals::Graph graph = internals::build<Odd>();
  for (const Mesh& mesh : {Mesh{stage = 3}, Mesh{stage = 2, data = 2}}) {
    Tensors<double> filled;
    run_threads(mesh.ranks(), [&](Threads& world) {
      const OwnedPlan plan = plan_of(graph, mesh, world.rank());
      Parameters parameters(plan, world.rank(), 5);
      Executor<Threads, CpuDouble> executor(plan, world, parameters);
      const auto names = names_of<double>(executor, world.rank() == 0 ? &filled : nullptr);
      world.barrier();
      check_all(world, executor, filled, names);
    });
    for (const auto& [name, numbers] : filled)
      for (const double x : numbers) REQUIRE(x != -7);
  }
}

namespace {
struct Scores {
  Parameter<float, Shape<4, 6 / tensor>> up{normal(0.4)};
  constexpr auto operator()(Distributed auto x) const { return matmul(x, up); }
};
/// Gives out a term of each rank where a parameter is split.
struct Squares {
  struct Hyperparameters {
    double learning_rate = 0.1;
  };
  static constexpr void update(Update& u) {
    Sgd::update(u);
    u.output("squares", u.apply(parallel::operation::layer_squares, {u.gradient()}, {}, {u.stacked()})[0]);
  }
};
}  // namespace

TEST_CASE("an output that ranks have parts of; before the first step, and of a pending sum, it is refused") {
  const Mesh mesh{data = 2, tensor = 2};
  using X = Tensor<float, Shape<4 / data, 4>>;
  Tensors<float> filled{{"result", std::vector<float>(24)}};
  run_threads(4, [&](Threads& world) {
    const OwnedPlan plan = derive<Evaluation<Scores, X>>(mesh);
    Parameters parameters(plan, world.rank(), 5);
    Executor<Threads, Cpu> executor(plan, world, parameters);
    CHECK_THROWS_AS(whole_tensor<float>(world, executor, "result"), Misuse);
    std::vector<float> x(16);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 5;
    executor(x);
    check_all(world, executor, filled, {"result"});
  });
  run_threads(4, [&](Threads& world) {
    const OwnedPlan plan = derive<Training<Small<float>, Squares, X>>(mesh);
    Parameters parameters(plan, world.rank(), 5);
    Executor<Threads, Cpu> executor(plan, world, parameters);
    executor(std::vector<float>(16, 0.5F));
    CHECK_THROWS_WITH_AS(whole_tensor<double>(world, executor, "up.squares"), doctest::Contains("a pending sum"),
                         Misuse);
  });
}

TEST_CASE("ranks that ask for different tensors, and other types, are told") {
  const OwnedPlan plan = derive<Step<float>>(Mesh{data = 2});
  run_threads(2, [&](Threads& world) {
    Parameters parameters(plan, world.rank(), 5);
    Executor<Threads, Cpu> executor(plan, world, parameters);
    CHECK_THROWS_WITH_AS(whole_tensor<double>(world, executor, "up"),
                         doctest::Contains("but f64 was given; give elements of its type"), Misuse);
    CHECK_THROWS_WITH_AS(whole_tensor<float>(world, executor, "down"),
                         doctest::Contains("the program has no tensor down; it has up, "), Misuse);
  });
  run_threads(2, [&](Threads& world) {
    Parameters parameters(plan, world.rank(), 5);
    Executor<Threads, Cpu> executor(plan, world, parameters), other(plan, world, parameters);
    CHECK_THROWS_WITH_AS(whole_tensor<float>(world, world.rank() == 0 ? executor : other, "up"),
                         doctest::Contains("executor"), Mismatch);
  });
  run_threads(2, [&](Threads& world) {
    Parameters parameters(plan, world.rank(), 5);
    Executor<Threads, Cpu> executor(plan, world, parameters);
    auto alone = world.split(world.rank(), 0), all = world.split(0, world.rank());
    for (Threads* another : {&alone, &all})
      CHECK_THROWS_WITH_AS(whole_tensor<float>(*another, executor, "up"),
                           doctest::Contains("give the world that the executor was made of"), Misuse);
    const char* none = nullptr;
    std::vector<float> room(24);
    for (const auto& named : std::initializer_list<std::function<void()>>{
             [&] { whole_tensor<float>(world, executor, none); },
             [&] { whole_tensor<float>(world, executor, nullptr); }, [&] { executor.get(none, room); },
             [&] { executor.set(none, room); }, [&] { executor.output(none); }, [&] { executor.scalar(none, 1); },
             [&] { static_cast<void>(executor.reads(none)); }, [&] { parameters.get(plan, 0, none, room); },
             [&] { parameters.set(plan, 0, none, room); }})
      CHECK_THROWS_WITH_AS(named(), doctest::Contains("a null pointer was given as a name"), Misuse);
  });
  CHECK_THROWS_AS(run_threads(2,
                              [&](Threads& world) {
                                Parameters parameters(plan, world.rank(), 5);
                                Executor<Threads, Cpu> executor(plan, world, parameters);
                                whole_tensor<float>(world, executor, world.rank() == 0 ? "up" : "odd");
                              }),
                  Mismatch);
}
