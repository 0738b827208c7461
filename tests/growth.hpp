// By how much a process grows where ranks run a program, as the kernel counts it, and programs to measure it with.
#pragma once
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <malloc.h>
#include <string>
#include <sys/mman.h>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/device/cpu/device.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

namespace growth {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

/// Bytes that the kernel says a process has: "VmRSS:" now, "VmHWM:" at most so far.
inline std::int64_t status(const std::string& what) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;)
    if (word == what) {
      std::int64_t kib = 0;
      file >> kib;
      return kib * 1024;
    }
  return 0;
}

/// From now on "VmHWM:" counts from what the process has now.
inline void count_from_here() {
  std::ofstream("/proc/self/clear_refs") << 5;
  REQUIRE(status("VmHWM:") - status("VmRSS:") < 1 << 20);
}

/// Checks by how many bytes a process of so many ranks has grown at most: its account, within 2 %, and 2 MiB a rank,
/// which its stack and its instructions are.
inline void compare(const std::string& name, const Mesh& mesh, std::int64_t grown, std::int64_t account, int ranks) {
  const std::int64_t allowed = account / 50 + ranks * (std::int64_t{2} << 20);
  const auto megabytes = [](std::int64_t bytes) { return std::to_string(static_cast<double>(bytes) / 1e6) + " MB"; };
  const std::string words =
      name + " on " + text(mesh) + ": " + megabytes(grown) + ", the account says " + megabytes(account);
  MESSAGE(words);
  INFO(words);
  CHECK(grown <= account + allowed);
  CHECK(grown >= account - allowed);
}

template <std::int64_t width, std::int64_t inner>
struct Block {
  Parameter<float, Shape<width>> gain{ones};
  Parameter<float, Shape<width, inner / tensor>> up{normal(0.02)};
  Parameter<float, Shape<inner / tensor, width>> down{normal(0.02)};
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(rms_norm(x, gain), up)), down); }
};
template <std::int64_t width, std::int64_t inner, int layers>
struct Perceptrons {
  Layers<layers, Block<width, inner>> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
/// Its hidden state is split along the sequence between blocks: reduce-scatters.
template <std::int64_t width, std::int64_t inner, std::int64_t tokens>
struct Sequence {
  Parameter<float, Shape<width, 4 / tensor, width / 4>> q{normal(0.02)}, k{normal(0.02)}, v{normal(0.02)};
  Block<width, inner> block;
  constexpr auto operator()(Distributed auto x) const {
    const auto hidden = to<Shape<2 / data, tokens / tensor, width>>(x);
    const auto seen = reshape<2, tokens, width>(attention(matmul(hidden, q), matmul(hidden, k), matmul(hidden, v)));
    return mean(square(block(to<Shape<2 / data, tokens / tensor, width>>(seen) + hidden)));
  }
};

template <std::int64_t width, std::int64_t tokens>
using Rows = Tensor<float, Shape<tokens / data, width>>;
using Small = Training<Perceptrons<64, 256, 2>, AdamW, Rows<64, 64>>;
using Weights = Training<Perceptrons<512, 2048, 4>, AdamW, Rows<512, 64>>;  // of 134 to 336 MB a rank
using Activations = Training<Perceptrons<64, 256, 6>, AdamW, Rows<64, 4096>>;
using Evaluated = Evaluation<Perceptrons<512, 2048, 4>, Rows<512, 512>>;
using Attending = Training<Sequence<256, 512, 1024>, AdamW, Tensor<float, Shape<2 / data, 1024, 256>>>;

/// Parameters, gradients and AdamW's states of 1.07 GB.
using Large = Training<Perceptrons<1024, 4096, 8>, AdamW, Rows<1024, 64>>;
/// The same, of which the backward pass computes two blocks at a time once more.
struct Again {
  Layers<8, Block<1024, 4096>, Recompute<2, Repeat::collectives>> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
using LargeAgain = Training<Again, AdamW, Rows<1024, 64>>;

/// Sanitizers have memory of their own for every byte of a program.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool counts = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
inline constexpr bool counts = false;
#else
inline constexpr bool counts = true;
#endif
#else
inline constexpr bool counts = true;
#endif
/// Has the pages of the program's code and of its libraries' there before anything is counted: all processes share
/// them, and how many a run touches first depends on the processor and on the linker.
inline void map_code() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char access[5] = "";
    if (line.find('/') != std::string::npos && std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, access) == 3 &&
        access[0] == 'r' && access[1] == '-')
      madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_READ);
  }
}
/// A test of memory that is handed out must not have the allocator write all over it, as MALLOC_PERTURB_ says.
inline void prepare() {
  mallopt(M_PERTURB, 0);
  map_code();
}

/// Calls f.template operator()<Program>(name) for each.
template <class F>
void program(F f) {
  f.template operator()<Small>("small");
  f.template operator()<Weights>("weights");
  f.template operator()<Activations>("activations");
  f.template operator()<Evaluated>("evaluation");
  f.template operator()<Attending>("attention");
}

/// Makes all that a rank needs and takes some steps; all ranks have it at one time. `x` has the whole input.
template <class World>
void run(const Plan& plan, World& world, const std::vector<float>& x, int steps) {
  Parameters parameters(plan, world.rank(), 1);
  Executor<World, Cpu> executor(plan, world, parameters);
  executor.input(0, x);
  for (int i = 0; i < steps; ++i) executor.run();
  world.barrier();
}
inline std::vector<float> input_of(const Plan& plan) {
  for (const Member& m : plan.graph.members)
    if (m.role == Role::input) return std::vector<float>(static_cast<std::size_t>(m.type.layout.elements()), 0.01f);
  return {};
}

}  // namespace growth
