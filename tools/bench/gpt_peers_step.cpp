// A training step of a GPT on request: tools/bench/gpt_peers asks, by turns with other peers.
//
//   gpt_peers_step A|B|C [--data N] [--tensor N] [--threads N]
//
// Ranks are threads. Those along data split the batch and the optimizer's states (ZeRO's first stage), those along
// tensor every layer, the head and the loss.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <vector>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/run/trainer.hpp>

#include "gpt_model.hpp"
#include "serve.hpp"

namespace bench {

/// Of the model, in its order; gpt_peers_torch.py and gpt_peers_jax.py have the same.
inline constexpr Numbers numbers[] = {{"token", 0, 0.03F},
                                      {"position", 0, 0.03F},
                                      {"blocks.*.norm1.gain", 1, 0.1F},
                                      {"blocks.*.norm1.shift", 0, 0.1F},
                                      {"blocks.*.attention.qkv", 0, 0.03F},
                                      {"blocks.*.attention.qkv_bias", 0, 0.03F},
                                      {"blocks.*.attention.projection", 0, 0.01F},
                                      {"blocks.*.attention.projection_bias", 0, 0.03F},
                                      {"blocks.*.norm2.gain", 1, 0.1F},
                                      {"blocks.*.norm2.shift", 0, 0.1F},
                                      {"blocks.*.mlp.up", 0, 0.03F},
                                      {"blocks.*.mlp.up_bias", 0, 0.03F},
                                      {"blocks.*.mlp.down", 0, 0.01F},
                                      {"blocks.*.mlp.down_bias", 0, 0.03F},
                                      {"norm.gain", 1, 0.1F},
                                      {"norm.shift", 0, 0.1F}};
inline constexpr int count_of_numbers = std::size(numbers);

/// Tokens are behind the parameters, then targets.
template <class Size>
std::vector<int> tokens(int which) {
  std::vector<int> all(Size::batch * Size::context);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float part = number({"", 0.5F, 0.5F}, count_of_numbers + which, static_cast<std::int64_t>(i));
    all[i] = std::min(Size::vocabulary - 1, static_cast<int>(part * Size::vocabulary));
  }
  return all;
}

template <class Size>
class Derived {
 public:
  Derived(Threads& world, const Plan& plan, const Cpu& cpu)
      : parameters_(plan, world.rank(), 1),
        trainer_(plan, world, parameters_, {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 1, cpu) {
    for (int which = 0; which < count_of_numbers; ++which) {
      const Numbers& n = numbers[which];
      const auto member = std::find_if(plan.graph.members.begin(), plan.graph.members.end(),
                                       [&](const auto& m) { return plan.graph.path(m) == n.name; });
      if (member == plan.graph.members.end()) throw Failure(std::string("the model has no parameter ") + n.name);
      std::vector<float> whole(static_cast<std::size_t>(member->type.layout.elements()));
      for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = number(n, which, static_cast<std::int64_t>(i));
      parameters_.set(plan, world.rank(), n.name, whole);
    }
    for (const int which : {0, 1}) trainer_.executor().input(which, tokens<Size>(which));
  }
  StepResult step() { return trainer_.step(1e-4); }
  /// Two steps more: that parameters were updated alike. Norms differ by then, as AdamW's first update of a gradient
  /// that is nearly 0 is as large as any.
  std::vector<Checked> checked(const StepResult& first) {
    std::vector<Checked> all{{"loss", first.loss}, {"norm", first.gradient_norm}};
    for (const char* which : {"second_loss", "third_loss"}) all.push_back({which, step().loss});
    return all;
  }

 private:
  Parameters parameters_;
  Trainer<Threads, Cpu> trainer_;
};

template <class Size>
void derived(const Mesh& mesh, int threads) {
  const OwnedPlan plan = derive<AllStored<GptStep<Size>, Stored<data, Zero::states>>>(mesh);
  std::atomic<int> steps;
  run_threads(mesh.ranks(), [&](Threads& world) {
    Cpu cpu;
    cpu.threads = threads;
    Derived<Size> peer(world, plan, cpu);
    serve(peer, ThreadRequests(world, steps), world.rank() == 0);
  });
}

}  // namespace bench

int main(int argc, char** argv) {
  int along_data = 1, along_tensor = 1, threads = 1;
  bool good = argc > 1 && argc % 2 == 0;
  for (int i = 2; good && i < argc; i += 2) {
    const auto says = [&](const char* word) { return std::strcmp(argv[i], word) == 0; };
    int* const number = says("--data")      ? &along_data
                        : says("--tensor")  ? &along_tensor
                        : says("--threads") ? &threads
                                            : nullptr;
    good = number != nullptr;
    if (good) *number = std::atoi(argv[i + 1]);
  }
  const auto is = [&](const char* name) { return good && std::strcmp(argv[1], name) == 0; };
  return bench::guarded("gpt_peers_step", [&] {
    const parallel::Mesh mesh{parallel::axes::data = along_data, parallel::axes::tensor = along_tensor};
    if (is("A")) return bench::derived<bench::SizeA>(mesh, threads), 0;
    if (is("B")) return bench::derived<bench::SizeB>(mesh, threads), 0;
    if (is("C")) return bench::derived<bench::SizeC>(mesh, threads), 0;
    std::fprintf(stderr, "gpt_peers_step: say gpt_peers_step A|B|C [--data N] [--tensor N] [--threads N]\n");
    return 2;
  });
}
