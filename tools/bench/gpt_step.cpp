// Training steps of a GPT: forward, backward, AdamW, in floats; ranks are threads. Milliseconds, share of the FMA peak,
// and where the time goes.
//
//   gpt_step [--model A|C] [--ranks N] [--steps N] [--threads N] [--profile] [--shapes] [--fusing]
//
// --fusing runs steps on one rank by turns with operations fused, as planned, and each on its own; time in which others
// had the core is left out. GFLOP/s count 6 N operations a token (N: parameters, the tied head once), attention not
// counted. --shapes tells products apart by their sizes.
#include <cstring>
#include <thread>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/run/trainer.hpp>

#include "gpt_model.hpp"
#include "limits.hpp"
#include "timed.hpp"

namespace bench {

struct Options {
  std::string model;
  int ranks = 0, steps = 5, threads = 1;
  bool profile = false, shapes = false, fusing = false;
};

template <class Size>
std::vector<int> random_tokens(std::uint64_t stream) {
  std::vector<int> tokens(Size::batch * Size::context);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<int>(random_uniform(1, stream, i) * Size::vocabulary);
  return tokens;
}

/// All products as one.
inline std::vector<Cost> without_shapes(const std::vector<Cost>& costs) {
  std::vector<Cost> result{{"products"}};
  for (const Cost& cost : costs) {
    if (cost.flops == 0)
      result.push_back(cost);
    else {
      result[0].flops += cost.flops;
      result[0].seconds += cost.seconds;
      result[0].calls += cost.calls;
    }
  }
  return result;
}

/// What a rank saw of some steps behind a first one.
struct Seen {
  Clock::time_point first{};  ///< when the first step had ended
  std::vector<double> times{};
  double loss = 0;
};
template <class Size, Communicator World, class Device>
Seen steps(const Plan& plan, World& world, Parameters& parameters, const Options& options) {
  Device device;
  device.threads = options.threads;
  Trainer<World, Device> trainer(plan, world, parameters, {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 1,
                                 device);
  trainer.executor().input(0, random_tokens<Size>(0));
  trainer.executor().input(1, random_tokens<Size>(1));
  Seen seen;
  trainer.step(1e-4);
  seen.first = Clock::now();
  Costs::clear();
  for (int step = 0; step < options.steps; ++step) {
    world.barrier();
    seen.times.push_back(seconds([&] {
      seen.loss = trainer.step(1e-4).loss;
      world.barrier();
    }));
  }
  return seen;
}

template <class Size, class Step = GptStep<Size>>
void measure(const Mesh& mesh, const Options& options, const std::string& words = "") {
  std::string name = std::string(Size::name) + ", " + text(mesh) + words;
  if (options.threads > 1) name += ", " + std::to_string(options.threads) + " threads each";
  Peak peak;
  Costs::forget();
  const int cores = mesh.ranks() * options.threads;
  const double before = memory_bandwidth(cores);
  std::vector<Cost> costs;
  Seen seen;
  const auto begin = Clock::now();
  const OwnedPlan plan = derive<Step>(mesh);
  run_threads(mesh.ranks(), [&](Threads& world) {
    Parameters parameters(plan, world.rank(), 1);
    const Seen plain = steps<Size, Threads, Cpu>(plan, world, parameters, options);
    if (world.rank() == 0) seen = plain;
    if (!options.profile) return;
    TimedWorld<Threads> timed_world(world.split(0, world.rank()));
    const Seen timed = steps<Size, TimedWorld<Threads>, Timed<Cpu>>(plan, timed_world, parameters, options);
    if (world.rank() != 0) return;
    costs = options.shapes ? Costs::costs() : without_shapes(Costs::costs());
    double whole = 0, named = 0;
    for (const double time : timed.times) whole += time;
    for (const Cost& cost : costs) named += cost.seconds;
    costs.push_back({"everything else: the executor", 0, whole - named, 1});
  });

  constexpr double flops = 6 * Size::parameters * Size::batch * Size::context;
  std::vector<double> milliseconds;
  for (const double time : seen.times) milliseconds.push_back(time * 1e3);
  row("gpt_step", name + ": a step; loss " + text(seen.loss), spread(milliseconds), "ms");
  const double first = std::chrono::duration<double>(seen.first - begin).count();
  row("gpt_step", name + ": from nothing to the end of the first step", first, "s");
  row("gpt_step", name + ": as 6 N tokens", per(flops / 1e9, seen.times), "GFLOP/s");
  const double all_cores = peak.gflops() * cores;
  row("gpt_step", name + ": share of the FMA peak, " + text(peak.gflops()) + " GFLOP/s a core",
      per(flops / 1e7 / all_cores, seen.times), "%");
  const double bandwidth = std::max(before, memory_bandwidth(cores));
  double whole = 0;
  for (const Cost& cost : costs) whole += cost.seconds;
  for (const Cost& cost : costs) {
    if (cost.seconds < 0.004 * whole && cost.name.find("executor") == std::string::npos) continue;
    std::string what = name + ": " + cost.name;
    if (cost.flops > 0)
      what += " at " + text(cost.flops / cost.seconds / 1e7 / peak.gflops() / options.threads) + " % of the peak";
    if (cost.name == "adamw") {
      // bytes of both moments: parameters, gradients and moments are read, all but gradients are written
      const auto moments = static_cast<double>(plan->memory.blocks[static_cast<int>(MemoryBlock::state)]);
      const double bytes = 3.5 * moments * options.steps * mesh.ranks();
      what += " at " + text(100 * bytes / cost.seconds / 1e9 / bandwidth) + " % of a += b's bandwidth";
    }
    row("gpt_step", what, 100 * cost.seconds / whole, "% of the step");
  }
}

/// The same steps, fused and not: time by turns, and bytes of all values that live for a moment, which share room.
template <class Size>
void measure_fusing(const Options& options) {
  const Mesh mesh{data = 1};
  const OwnedPlan fused = derive<GptStep<Size>>(mesh), apart = derive(build_unfused<GptStep<Size>>(), mesh, {}, {});
  std::vector<double> times[2];
  double losses[2]{};
  run_threads(1, [&](Threads& world) {
    const Plan* plans[]{&*fused, &*apart};
    Parameters own[]{{fused, 0, 1}, {apart, 0, 1}};
    Trainer<Threads, Cpu> first(*plans[0], world, own[0], {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 1),
        second(*plans[1], world, own[1], {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 1);
    for (auto* trainer : {&first, &second})
      for (const int input : {0, 1})
        trainer->executor().input(input, random_tokens<Size>(static_cast<std::uint64_t>(input)));
    for (int step = -1; step < options.steps; ++step)  // the first warms up
      for (const int which : {0, 1}) {
        const double lost = waited_for_a_core();
        const double time = seconds([&] { losses[which] = (which == 0 ? first : second).step(1e-4).loss; });
        if (step >= 0) times[which].push_back(time - (waited_for_a_core() - lost));
      }
  });
  const std::string name = std::string(Size::name) + ", fused";
  row("gpt_step", name + (losses[0] == losses[1] ? ": the same loss; over unfused" : ": ANOTHER LOSS; over unfused"),
      ratio(times[0], times[1]), "of the time");
  const auto temporaries = [](const Plan& plan) { return static_cast<double>(plan.memory.of(Use::temporaries)); };
  row("gpt_step", name + ": temporaries over unfused", temporaries(fused) / temporaries(apart), "of the bytes");
  row("gpt_step", name + ": arena over unfused",
      static_cast<double>(fused->memory.arena) / static_cast<double>(apart->memory.arena), "of the bytes");
}

template <class Size>
void measure_all(const Options& options) {
  if (!options.model.empty() && options.model != Size::name) return;
  if (options.fusing) return measure_fusing<Size>(options);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const bool all = options.ranks == 0;
  const auto wanted = [&](int ranks) {
    return all ? ranks == 1 || ranks * options.threads <= cores : options.ranks == ranks;
  };
  for (const int ranks : {1, 2, 4})
    if (wanted(ranks)) {
      measure<Size>(Mesh{data = ranks}, options);
      using Split = AllStored<GptStep<Size>, Stored<data, Zero::states>>;
      if (ranks > 1) measure<Size, Split>(Mesh{data = ranks}, options, ", states split");
    }
  if (wanted(4)) measure<Size>(Mesh{data = 2, tensor = 2}, options);
  if (all && options.threads == 1 && cores > 1) {
    Options together = options;
    together.threads = cores;
    measure<Size>(Mesh{data = 1}, together);
  }
}

}  // namespace bench

int main(int argc, char** argv) {
  bench::Options options;
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (std::strcmp(argv[i], "--profile") == 0)
      options.profile = true;
    else if (std::strcmp(argv[i], "--shapes") == 0)
      options.profile = options.shapes = true;
    else if (std::strcmp(argv[i], "--fusing") == 0)
      options.fusing = true;
    else if (more && std::strcmp(argv[i], "--model") == 0)
      options.model = argv[++i];
    else if (more && std::strcmp(argv[i], "--ranks") == 0)
      options.ranks = std::atoi(argv[++i]);
    else if (more && std::strcmp(argv[i], "--steps") == 0)
      options.steps = std::atoi(argv[++i]);
    else if (more && std::strcmp(argv[i], "--threads") == 0)
      options.threads = std::atoi(argv[++i]);
    else
      return std::fprintf(
                 stderr,
                 "gpt_step: unknown argument '%s'; say gpt_step [--model A|C] [--ranks N] [--steps N] [--threads N] "
                 "[--profile] [--shapes] [--fusing]\n",
                 argv[i]),
             2;
  }
  bench::measure_all<bench::SizeA>(options);
  bench::measure_all<bench::SizeC>(options);
}
