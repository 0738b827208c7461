// The program of docs/memory.md on what is stored on the host: how much of it leaves the device, what is copied, and what
// that takes.
#pragma once
#include <cstdio>

#include <parallel/cost/published_machines.hpp>
#include <parallel/cost/simulate.hpp>
#include <parallel/parallel.hpp>

#include "blocks.hpp"

namespace offloading {

using namespace parallel;
using namespace parallel::axes;
inline constexpr std::int64_t width = 4096;

struct Perceptron {
  Parameter<bfloat16, Shape<width, 4 * width>> up;
  Parameter<bfloat16, Shape<4 * width, width>> down;
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(x, up)), down); }
};
using OnDevice = Layers<16, Perceptron>;
using Kept = Layers<16, Perceptron, Recompute<>, KeepOnHost>;
template <class Blocks>
struct Model {
  Blocks blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
template <class Blocks>
using StepOf = Training<Model<Blocks>, AdamW, Tensor<bfloat16, Shape<8 / data, 1024, width>>>;
using Step = StepOf<OnDevice>;
using OnHost = AllStored<Step, Stored<host, Zero::gradients>>;
using SharedOut = AllStored<Step, Stored<data, Zero::gradients>, Stored<host, Zero::gradients>>;

template <class Program>
void print(const char* words, const Mesh& mesh) {
  const OwnedPlan plan = derive<Program>(mesh);
  const auto text = [](double bytes) { return printing::bytes(bytes); };
  std::printf("| %s | %s | %s | %s | %.0f ms |\n", words, text(static_cast<double>(plan->peak_memory())).c_str(),
              text(static_cast<double>(plan->host_memory())).c_str(), text(plan->sent(host)).c_str(),
              1e3 * simulate(plan, machines::h100).seconds);
}
inline void print() {
  blocks::begin("offload");
  std::puts(
      "| | on the device | on the host | copied in a step | step, predicted for an H100 |\n|---|---|---|---|---|");
  constexpr Mesh one{data = 1}, eight{data = 8};
  print<Step>("nothing", one);
  print<AllStored<Step, Stored<host, Zero::states>>>("`Stored<host, Zero::states>`", one);
  print<OnHost>("`Stored<host, Zero::gradients>`", one);
  print<AllStored<Step, Stored<host>>>("`Stored<host>`", one);
  print<StepOf<Layers<16, Perceptron, KeepOnHost>>>("`Layers<16, Block, KeepOnHost>`", one);
  print<StepOf<Kept>>("`Layers<16, Block, Recompute<>, KeepOnHost>`", one);
  print<AllStored<StepOf<Kept>, Stored<host>>>("and `Stored<host>`", one);
  print<Step>("nothing, on eight ranks", eight);
  print<AllStored<Step, Stored<data, Zero::gradients>>>("`Stored<data, Zero::gradients>` on eight", eight);
  print<SharedOut>("and `Stored<host, Zero::gradients>`", eight);
  print<AllStored<Step, Stored<data>, Stored<host>>>("`Stored<data>, Stored<host>` on eight", eight);
}

}  // namespace offloading
