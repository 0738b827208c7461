// What an optimizer's updates take in a step, on request: tools/bench/optimizer asks, by turns with other peers.
//
//   optimizer_step adamw|lion|momentum|sgd [--ranks N]           ranks are threads, each of which updates its share
//   optimizer_step adamw|lion|momentum|sgd --stream [--ranks N]  as many bytes as must be moved, in a += b
//
// The parameters are 24 matrices of 1024 x 1024. Of a step only the kernels of updates count, on rank 0.
#include <cstring>

#include <parallel/device/cpu.hpp>
#include <parallel/run/trainer.hpp>

#include "limits.hpp"
#include "serve.hpp"
#include "timed.hpp"

namespace bench {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

inline constexpr int width = 1024, layers = 24, rows = 8;
inline constexpr Numbers weight{"w", 0, 0.02f}, input{"input", 0, 1};

struct Matrices {
  struct Block {
    Parameter<float, Shape<width, width>> w;
    constexpr auto operator()(Distributed auto x) const { return x + matmul(x, w); }
  };
  Layers<layers, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
template <class Optimizer>
using Step =
    AllStored<Training<Matrices, Optimizer, Tensor<float, Shape<rows / data, width>>>, Stored<data, Zero::states>>;

inline std::vector<float> filled(const Numbers& n, int which, std::int64_t count) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) result[static_cast<std::size_t>(i)] = number(n, which, i);
  return result;
}

template <class Optimizer>
class Updates {
 public:
  Updates(Threads& world, const Plan& plan, const char* name)
      : name_(name),
        parameters_(plan, world.rank(), 1),
        trainer_(plan, world, parameters_, typename Optimizer::Hyperparameters{}, 1) {
    for (const Member& m : plan.graph.members)
      if (m.role == Role::parameter)
        parameters_.set(plan, world.rank(), plan.graph.path(m), filled(weight, 0, m.type.layout.elements()));
    trainer_.executor().input(0, filled(input, 1, rows * width));
  }
  StepResult step() {
    Costs::clear();
    const StepResult result = trainer_.step(1e-4);
    took_ = 0;
    for (const Cost& cost : Costs::costs())
      if (cost.name == name_) took_ += cost.seconds;
    return result;
  }
  double took() const { return took_; }
  std::vector<Checked> checked(const StepResult& first) {
    return {{"loss", first.loss}, {"second_loss", step().loss}, {"third_loss", step().loss}};
  }

 private:
  std::string name_;
  double took_ = 0;
  Parameters parameters_;
  Trainer<Threads, Timed<Cpu>> trainer_;
};

/// a += b, which moves 12 bytes an element, on memory of each rank's own.
class Stream {
 public:
  Stream(int ranks, std::int64_t bytes)
      : n_(bytes / 12 / ranks), memory_(2 * aligned(4 * n_)), a_(reinterpret_cast<float*>(memory_.data())) {
    std::fill(a_, a_ + 2 * aligned(4 * n_) / 4, 1.0f);
  }
  int step() { return add_to(a_, a_ + aligned(4 * n_) / 4, n_), 0; }
  std::vector<Checked> checked(int) { return {}; }

 private:
  std::int64_t n_;
  HostMemory memory_;
  float* a_;
};

struct Way {
  const char* name;
  int tensors;  ///< that an update reads or writes, each as often as it does
  void (*run)(Threads& world, const char* name, ThreadRequests requests);
};
template <class Optimizer>
void updates(Threads& world, const char* name, ThreadRequests requests) {
  const OwnedPlan plan = derive<Step<Optimizer>>(Mesh{data = world.size()});
  Updates<Optimizer> peer(world, plan, name);
  serve(peer, requests, world.rank() == 0);
}
// The gradient is read; parameter and states are read and written.
inline constexpr Way ways[] = {{"adamw", 7, updates<AdamW>},
                               {"lion", 5, updates<Lion>},
                               {"momentum", 5, updates<Momentum>},
                               {"sgd", 3, updates<Sgd>}};

}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  int ranks = 1;
  bool stream = false, understood = argc > 1;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--stream") == 0)
      stream = true;
    else if (std::strcmp(argv[i], "--ranks") == 0 && i + 1 < argc)
      ranks = std::atoi(argv[++i]);
    else
      understood = false;
  }
  if (understood && (ranks == 1 || ranks == 2 || ranks == 4 || ranks == 8))
    for (const Way& way : ways)
      if (std::strcmp(argv[1], way.name) == 0) {
        std::atomic<int> steps;
        parallel::run_threads(ranks, [&](Threads& world) {
          const ThreadRequests requests(world, steps);
          if (!stream) return way.run(world, way.name, requests);
          Stream peer(ranks, std::int64_t{4} * way.tensors * layers * width * width);
          serve(peer, requests, world.rank() == 0);
        });
        return 0;
      }
  std::fprintf(stderr, "optimizer_step: say optimizer_step adamw|lion|momentum|sgd [--stream] [--ranks 1|2|4|8]\n");
  return 2;
}
