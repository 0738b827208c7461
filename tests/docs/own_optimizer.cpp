// A user's own optimizer in a user's own file: the program of docs/own-optimizer.md, and the check that it is right.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu/device.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

using namespace parallel;
using namespace parallel::axes;

namespace own {

namespace operation {
namespace library = parallel::operation;

/// (parameter, velocity, gradient, factor, squares of the parameter, squares of the gradient, scalars) -> parameter,
/// velocity. ints: positions of learning_rate, momentum, weight_decay, trust; whether it decays; whether it is stacked.
constexpr Shaped lars_shape(const Arguments& a) { return {{a.types[0], a.types[1]}, {}}; }
constexpr Signatures lars_table(const Arguments& a) {
  const IndexLabels all = library::Matrices::all(a), layers = library::Matrices(a).layers(a);
  return library::table_of(a, {all, all, all, {}, layers, layers}, {all, all});
}
inline constexpr Operation lars{
    .name = "lars", .shape = lars_shape, .signatures = lars_table, .updates = true, .of_flat = true};
}  // namespace operation

/// LARS (You, Gitman and Ginsburg, 2017): momentum with a learning rate for each layer, the larger its parameter is
/// beside its gradient. h = factor g; rate = learning_rate trust |p| / (|h| + weight_decay |p|);
/// v = momentum v + rate (h + weight_decay p); p -= v.
struct Lars {
  struct Hyperparameters {
    double learning_rate = 1, momentum = 0.9, weight_decay = 1e-4, trust = 1e-2, clip_norm = 0;
  };
  static constexpr void update(Update& u) {
    const std::int64_t stacked = u.stacked();
    const auto squares = [&](Update::Value of) {
      return u.apply(operation::library::layer_squares, {of}, {}, {stacked})[0];
    };
    u.replace(operation::lars, {u.parameter(), u.state("velocity")},
              {u.gradient(), u.factor(), squares(u.parameter()), squares(u.gradient())},
              {"learning_rate", "momentum", "weight_decay", "trust"}, {stacked});
  }
};

/// The update of one layer; `p`, `v`, `g`: n elements of it, of which the whole has these sums of squares.
template <class T>
void step(std::int64_t n, T* p, T* v, const T* g, double factor, double squares_p, double squares_g,
          const Lars::Hyperparameters& h) {
  const double size = std::sqrt(squares_p), slope = factor * std::sqrt(squares_g) + h.weight_decay * size;
  const double rate = h.learning_rate * (slope > 0 && size > 0 ? h.trust * size / slope : 1);
  for (std::int64_t i = 0; i < n; ++i) {
    v[i] = static_cast<T>(h.momentum * v[i] + rate * (factor * g[i] + h.weight_decay * p[i]));
    p[i] -= v[i];
  }
}
template <class T>
void lars_kernel(const Call& call) {
  const Lars::Hyperparameters numbers{.learning_rate = call.number(0),
                                      .momentum = call.number(1),
                                      .weight_decay = call.ints[4] != 0 ? call.number(2) : 0,
                                      .trust = call.number(3)};
  const std::int64_t layers = call.operands[4].elements(), n = call.results[0].elements() / layers;
  for (std::int64_t l = 0; l < layers; ++l)
    step(n, call.results[0].as<T>() + l * n, call.results[1].as<T>() + l * n, call.operands[2].as<const T>() + l * n,
         *call.operands[3].as<const double>(), call.operands[4].as<const double>()[l],
         call.operands[5].as<const double>()[l], numbers);
}
/// The sum of squares of each layer, of what the rank has: in f64, whatever the parameter is in.
template <class T>
void add_squares(const Call& call) {
  const T* const x = call.operands[0].as<const T>();
  double* const sums = call.results[0].as<double>();
  const std::int64_t layers = call.results[0].elements(), n = call.operands[0].elements() / layers;
  for (std::int64_t l = 0; l < layers; ++l) {
    sums[l] = 0;
    for (std::int64_t i = l * n; i < (l + 1) * n; ++i) sums[l] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
}
inline void squares_kernel(const Call& call) {
  call.operands[0].dtype == DType::f64 ? add_squares<double>(call) : add_squares<float>(call);
}
inline constexpr CpuKernels kernels[]{
    // operation                         first result of float     of double
    {&operation::lars, lars_kernel<float>, lars_kernel<double>},
    {&operation::library::layer_squares, nullptr, squares_kernel},
};

}  // namespace own

namespace model {

struct Block {
  Parameter<double, Shape<16, 60 / tensor>> up{normal(0.3)};
  Parameter<double, Shape<60 / tensor>> bias{zeros};
  Parameter<double, Shape<60 / tensor, 16>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const { return x + matmul(tanh(matmul(x, up) + bias), down); }
};
struct Model {
  Layers<3, Block> blocks;
  Parameter<double, Shape<16>> shift{normal(0.1)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(blocks(x) + shift - y));
  }
};
using Batch = Tensor<double, Shape<12 / data, 16>>;
template <class Optimizer>
using Step = Training<Model, Optimizer, Batch, Batch>;

constexpr auto& split_plan = plan<Step<own::Lars>, Mesh{data = 2, tensor = 2}>;
// three parameters are split over `tensor`, so of each and of its gradient the squares are summed up: 8 bytes a layer
static_assert(split_plan.optimizer.calls(all_reduce(tensor).of(3 * 8)) == 6);
static_assert(split_plan.optimizer.collectives(data) == 0);

constexpr auto& stored_plan = plan<AllStored<Step<own::Lars>, Stored<data>>, Mesh{data = 2, tensor = 2}>;
static_assert(stored_plan.optimizer.calls(all_reduce(data, tensor).of(3 * 8)) == 6);
static_assert(stored_plan.memory.of(Use::optimizer_state) == stored_plan.memory.of(Use::parameters));

}  // namespace model

namespace {

using parallel::internals::Graph;  // the check looks into plans
using parallel::internals::Member;
using parallel::internals::Role;

constexpr int steps = 10;
using Weights = std::map<std::string, std::vector<double>>;

const own::Lars::Hyperparameters numbers{.learning_rate = 2, .weight_decay = 0.1, .trust = 0.05, .clip_norm = 0.5};

void give(auto& executor) {
  std::vector<double> x(12 * 16), y(12 * 16);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = 2 * random_uniform(1, 0, i) - 1;
    y[i] = x[i] * x[i];
  }
  executor.input(0, x);
  executor.input(1, y);
}
Weights trained(const Graph& graph, const Mesh& mesh) {
  const OwnedPlan planned = internals::derive(graph, mesh, {}, {});
  Weights weights;
  run_threads(mesh.ranks(), [&](Threads& world) {
    ParametersIn<HostMemory> parameters(planned, world.rank(), 1);
    Trainer<Threads, CpuDouble> trainer(planned, world, parameters, numbers, 1, CpuDouble{own::kernels});
    give(trainer.executor());
    for (int step = 0; step < steps; ++step) trainer.step();
    for (int rank = 0; rank < world.size(); ++rank, world.barrier())
      if (rank == world.rank())
        for (const Member& m : planned->graph.members) {
          if (m.role != Role::parameter) continue;
          std::vector<double>& all = weights[std::string(planned->graph.path(m))];
          all.resize(static_cast<std::size_t>(m.type.layout.elements()));
          parameters.get(planned, rank, planned->graph.path(m), all);
        }
  });
  return weights;
}
/// By one rank's gradients, which are outputs, and the formula.
Weights defined() {
  const OwnedPlan planned = derive<model::Step<KeepGradients>>(Mesh{data = 1, tensor = 1});
  Weights weights, velocities;
  run_threads(1, [&](Threads& world) {
    ParametersIn<HostMemory> parameters(planned, 0, 1);
    Executor<Threads, CpuDouble> executor(planned, world, parameters);
    give(executor);
    for (int step = 0; step < steps; ++step) {
      executor.run();
      int output = 2;  // behind the loss and the norm
      double squares = 0;
      std::vector<std::vector<double>> gradients;
      for (; output < executor.outputs(); ++output) {
        const View v = executor.output(output);
        gradients.emplace_back(v.as<double>(), v.as<double>() + v.elements());
        for (const double g : gradients.back()) squares += g * g;
      }
      const double factor = std::min(1.0, numbers.clip_norm / (std::sqrt(squares) + 1e-6));
      std::size_t next = 0;
      for (const Member& m : planned->graph.members) {
        if (m.role != Role::parameter) continue;
        const std::string path(planned->graph.path(m));
        const std::vector<double>& g = gradients[next++];
        std::vector<double>&p = weights[path], &v = velocities[path];
        p.resize(g.size());
        v.resize(g.size());
        parameters.get(planned, 0, path, p);
        const std::size_t layers = m.layers > 0 ? static_cast<std::size_t>(m.layers) : 1, n = g.size() / layers;
        for (std::size_t l = 0; l < layers; ++l) {
          double of_p = 0, of_g = 0;
          for (std::size_t i = l * n; i < (l + 1) * n; ++i) {
            of_p += p[i] * p[i];
            of_g += g[i] * g[i];
          }
          own::Lars::Hyperparameters h = numbers;
          if (!m.initializer.decays) h.weight_decay = 0;
          own::step(static_cast<std::int64_t>(n), &p[l * n], &v[l * n], &g[l * n], factor, of_p, of_g, h);
        }
        parameters.set(planned, 0, path, p);
      }
    }
  });
  return weights;
}

}  // namespace

TEST_CASE("an own optimizer updates by its formula, however parameters lie") {
  const Weights expected = defined();
  const auto check = [&](const Graph& graph, const Mesh& mesh) {
    INFO(text(mesh));
    const Weights actual = trained(graph, mesh);
    REQUIRE(actual.size() == expected.size());
    for (const auto& [path, values] : expected)
      for (std::size_t i = 0; i < values.size(); ++i)
        CHECK(actual.at(path)[i] == doctest::Approx(values[i]).epsilon(1e-9));
  };
  const Graph whole = internals::build<model::Step<own::Lars>>(),
              split = internals::build<AllStored<model::Step<own::Lars>, Stored<data, Zero::states>>>(),
              stored = internals::build<AllStored<model::Step<own::Lars>, Stored<data>>>();
  for (const Mesh& mesh : {Mesh{data = 1, tensor = 1}, Mesh{data = 2, tensor = 1}, Mesh{data = 1, tensor = 2},
                           Mesh{data = 2, tensor = 2}, Mesh{data = 3, tensor = 2}}) {
    check(whole, mesh);
    check(split, mesh);
    check(stored, mesh);
  }
}
