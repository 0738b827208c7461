// Steps of plans as simulated on the description of this machine against the same steps as they are: milliseconds and
// their ratio.
//
//   prediction [--rounds N] [--ranks N] [--slices]
//
// Of up to as many ranks as there are cores; also of one rank of two threads, on the machine as `with_threads(2)` has
// it, where a round in which other programs took the second thread's core is not left out.
// The machine's rates and all steps of as many ranks are measured by turns in one process, so that what else runs falls
// on both, and rounds in which other programs took a rank's core are left out where enough others are there. --slices
// also says how many milliseconds each kind of operation was predicted to take and took on rank 0.
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include <parallel/communicator/threads.hpp>
#include <parallel/cost/simulate.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/run/trainer.hpp>

#include "gpt_model.hpp"
#include "machine.hpp"
#include "mlp_model.hpp"
#include "timed.hpp"

namespace bench {

/// Some million parameters on eight windows of 128 bytes.
struct SizeSmall {
  static constexpr const char* name = "GPT of 4 x 256";
  static constexpr int layers = 4, channels = 256, heads = 4, context = 128, positions = 128, vocabulary = 256,
                       batch = 8;
};
/// So narrow that products are small.
struct SizeNarrow {
  static constexpr const char* name = "GPT of 2 x 64";
  static constexpr int layers = 2, channels = 64, heads = 4, context = 64, positions = 64, vocabulary = 256, batch = 8;
};

inline constexpr int rows = 512, width = 768, hidden = 3072;
using Rows = Tensor<float, Shape<rows / data, width>>;
using Perceptron = Training<Regression<MlpWithBiases<width, hidden>>, AdamW, Rows, Rows>;

/// A plan that is run, and how to make its inputs.
struct Case {
  std::string name;
  OwnedPlan plan;
  int threads = 1;
  int cores() const { return plan->mesh.ranks() * threads; }
};
template <class Program>
Case planned(const std::string& name, const Mesh& mesh, int threads = 1) {
  const std::string each = threads > 1 ? ", " + std::to_string(threads) + " threads each" : "";
  return {name + ", " + text(mesh) + each, derive<Program>(mesh), threads};
}

/// A trainer with numbers, or whole numbers from 0 to 255, as inputs.
template <Communicator World, class Device>
struct Run {
  Parameters parameters;
  Trainer<World, Device> trainer;
  Run(const Plan& plan, World& world, const Device& device = {})
      : parameters(plan, world.rank(), 1),
        trainer(plan, world, parameters, {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 1, device) {
    int position = 0;
    for (const Member& m : plan.graph.members) {
      if (m.role != Role::input) continue;
      const View v = trainer.executor().input(position++);
      for (std::int64_t i = 0; i < v.elements(); ++i) {
        const double u = random_uniform(1, static_cast<std::uint64_t>(position), static_cast<std::uint64_t>(i));
        if (v.dtype == DType::i32)
          v.as<int>()[i] = static_cast<int>(u * 256);
        else
          v.as<float>()[i] = static_cast<float>(2 * u - 1);
      }
    }
  }
};

/// Milliseconds by kind of operation, predicted and on rank 0.
void slices(const Case& c, const Machine& machine, int rounds) {
  std::map<std::string, std::pair<double, double>> kinds;
  for (const Slice& s : simulate(c.plan, machine).slices) {
    const Node& node = c.plan->graph.node(s.node);
    std::string kind = s.track > 0 ? std::string(name_of(node.transition.collective))
                                   : operations(c.plan->graph, c.plan->events[static_cast<std::size_t>(s.event)]);
    if (kind.starts_with("matmul")) kind = "matmul";
    kinds[kind].first += (s.end - s.begin) * 1e3;
  }
  run_threads(c.plan->mesh.ranks(), [&](Threads& world) {
    TimedWorld<Threads> timed(world.split(0, world.rank()));
    Run<TimedWorld<Threads>, Timed<Cpu>> run(c.plan, timed);
    run.trainer.step(1e-4);
    Costs::clear();
    for (int round = 0; round < rounds; ++round) run.trainer.step(1e-4);
    if (world.rank() != 0) return;
    for (const Cost& cost : Costs::costs())
      kinds[cost.flops > 0 ? "matmul" : cost.name].second += cost.seconds * 1e3 / rounds;
  });
  Costs::forget();
  for (const auto& [kind, times] : kinds)
    if (std::max(times.first, times.second) > 0.01)
      std::fprintf(stderr, "  %-26s %8.3f %8.3f\n", kind.c_str(), times.first, times.second);
}

void measure(const std::vector<Case>& cases, double launch, int rounds, bool sliced) {
  const int cores = cases[0].cores();
  Probes found(cores, rounds);
  found.run([&](Threads& world) {
    std::vector<Probe> all = probes_of_rates(cores, false);
    for (const Case& c : cases) {
      struct Own {
        Threads world;
        std::optional<Run<Threads, Cpu>> run{};
      };
      const bool computes = world.rank() < c.plan->mesh.ranks();  // the others leave their cores to threads
      const std::shared_ptr<Own> own(new Own{world.split(computes ? 0 : 1, world.rank())});
      if (computes) own->run.emplace(c.plan, own->world, Cpu{.threads = c.threads});
      const auto step = [own](Threads& everyone) {
        if (own->run) own->run->trainer.step(1e-4);
        everyone.barrier();
      };
      all.push_back({c.name, 1, step, true});
    }
    return all;
  });
  Machine machine;
  machine.launch = launch;
  machine.attention_block = static_cast<int>(account::cpu::queries_alike);
  machine.write_allocates = true;
  machine.rates.push_back(rates_of(found, cores, false));
  for (const Case& c : cases) {
    const double predicted = simulate(c.plan, machine.with_threads(c.threads)).seconds;
    const std::vector<double>& times = found.times(c.name);
    row("prediction", c.name + ": predicted", predicted * 1e3, "ms");
    row("prediction", c.name + ": measured", scaled(1e3, times), "ms");
    row("prediction", c.name + ": predicted / measured", per(predicted, times), "of the time");
    if (const double share = found.disturbed(c.name); share > 0.02)
      row("prediction", c.name + ": ranks waited for cores", 100 * share, "% of the time, added");
    if (sliced && c.threads == 1) slices(c, machine, rounds);
  }
}

}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  int rounds = 15;
  int only = 0;
  bool sliced = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
      rounds = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--ranks") == 0 && i + 1 < argc)
      only = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--slices") == 0)
      sliced = true;
    else
      return std::fprintf(stderr,
                          "prediction: unknown argument '%s'; say prediction [--rounds N] [--ranks N] [--slices]\n",
                          argv[i]),
             2;
  }
  const std::string mlp = "MLP of 768, 3072", small = SizeSmall::name, narrow = SizeNarrow::name;
  using Small = GptStep<SizeSmall>;
  using Narrow = GptStep<SizeNarrow>;
  const double launch = measure_launch(rounds);
  const std::vector<Case> groups[] = {
      {planned<Perceptron>(mlp, Mesh{data = 1}), planned<Small>(small, Mesh{data = 1}),
       planned<Narrow>(narrow, Mesh{data = 1})},
      {planned<Perceptron>(mlp, Mesh{data = 1}, 2), planned<Small>(small, Mesh{data = 1}, 2),
       planned<Narrow>(narrow, Mesh{data = 1}, 2)},
      {planned<Perceptron>(mlp, Mesh{tensor = 2}), planned<Small>(small, Mesh{data = 2}),
       planned<Small>(small, Mesh{tensor = 2}), planned<Small>(small, Mesh{sequence = 2}),
       planned<Accumulate<4, Small>>(small + ", 4 micro-batches", Mesh{data = 2}),
       planned<Narrow>(narrow, Mesh{data = 2})},
      {planned<Perceptron>(mlp, Mesh{data = 2, tensor = 2}), planned<Small>(small, Mesh{data = 4}),
       planned<Small>(small, Mesh{data = 2, tensor = 2}), planned<Small>(small, Mesh{data = 2, sequence = 2})},
  };
  const int there = static_cast<int>(std::thread::hardware_concurrency());
  for (const std::vector<Case>& cases : groups)
    if (only == 0 ? cases[0].cores() <= there : cases[0].plan->mesh.ranks() == only)
      measure(cases, launch, rounds, sliced);
}
