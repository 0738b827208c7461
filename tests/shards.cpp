// A library that a program of Python loads (tests/shards.py): ranks show it their parts, in place, and write them to
// files.
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/executor.hpp>
#include <parallel/run/numpy.hpp>

using namespace parallel;
using namespace parallel::axes;

namespace {

using Look = void (*)(int rank, const char* array);

template <class T>
struct Sums {
  Parameter<T, Shape<6, 4 / tensor>> w{zeros};
  Parameter<T, Shape<2, 3, 4 / tensor, 5>> deep{zeros};
  constexpr auto operator()(Distributed auto x) const { return sum(matmul(x, w)) + sum(deep); }
};

/// Numbers from 0 on, at their places in the whole tensor.
template <class T>
std::vector<T> counted(std::size_t size) {
  std::vector<T> all(size);
  std::iota(all.begin(), all.end(), T{});
  return all;
}

template <class T>
void on_two_ranks(const std::string& folder, Look look) {
  const OwnedPlan plan = derive<Evaluation<Sums<T>, Tensor<T, Shape<2, 6>>>>(Mesh{tensor = 2});
  run_threads(2, [&](Threads& world) {
    Parameters parameters(plan, world.rank(), 1);
    Executor<Threads, CpuOf<T>> executor(plan, world, parameters);
    executor.set("w", counted<T>(6 * 4));
    executor.set("deep", counted<T>(2 * 3 * 4 * 5));
    const std::string file = folder + "/" + std::to_string(world.rank()) + ".npy";
    look(world.rank(), array_interface(executor.member(0)).c_str());
    write_npy(file, executor.member(0));  // numpy.load(file, mmap_mode="r")
    look(world.rank(), array_interface(executor.member(1)).c_str());
  });
}

struct CutTwice {
  Parameter<float, Shape<6 / data, 4 / tensor>> both{zeros};
  Parameter<float, Shape<8 / data / tensor, 3>> nested{zeros};
  constexpr auto operator()(Distributed auto x) const { return sum(x) + sum(square(both)) + sum(square(nested)); }
};
struct Flat {
  Parameter<float, Shape<5, 3>> odd{zeros};
  constexpr auto operator()(Distributed auto x) const { return sum(matmul(x, odd)); }
};
struct Stages {
  struct Block {
    Parameter<float, Shape<3>> gain{zeros};
    constexpr auto operator()(Distributed auto x) const { return x * gain; }
  };
  Layers<4 / stage, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return sum(blocks(x)); }
};
template <class Model, class X>
using Trained = Training<Model, Sgd, X>;

/// Each parameter of a program on each of its ranks.
template <class Program>
void each_part(const Mesh& mesh, Look look) {
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive<Program>(mesh, world.rank());  // each stage has its own
    Parameters parameters(plan, world.rank(), 1);
    Executor<Threads, Cpu> executor(plan, world, parameters);
    for (const NamedTensor& t : executor.tensors())
      executor.set(t.name, counted<float>(static_cast<std::size_t>(t.type.layout.elements())));
    for (int rank = 0; rank < world.size(); ++rank) {
      world.barrier();
      for (std::size_t m = 0; m < executor.tensors().size() && rank == world.rank(); ++m)
        look(rank, array_interface(executor.member(static_cast<int>(m))).c_str());
    }
  });
}

}  // namespace

/// Parts of tensors that are cut by two axes, in two dimensions and in one; of one that is stored split, which five
/// times three elements are; of layers that are shared out over stages.
extern "C" void show_cut(Look look) {
  each_part<Trained<CutTwice, Tensor<float, Shape<4 / data>>>>(Mesh{data = 2, tensor = 2}, look);
}
extern "C" void show_flat(Look look) {
  each_part<AllStored<Trained<Flat, Tensor<float, Shape<4 / data, 5>>>, Stored<data>>>(Mesh{data = 2}, look);
}
extern "C" void show_stages(Look look) {
  each_part<Accumulate<2, Trained<Stages, Tensor<float, Shape<4 / data, 3>>>>>(Mesh{stage = 2}, look);
}
/// `look` is called by both ranks, and may write. Then the first part is written into the folder.
extern "C" void show_floats(const char* folder, Look look) { on_two_ranks<float>(folder, look); }
extern "C" void show_doubles(const char* folder, Look look) { on_two_ranks<double>(folder, look); }
/// A view of each element type, which lies where `at` says, or nothing where a rank has none: its array, or why not.
extern "C" void show_type(int dtype, void* at, Look look) {
  const View view{.data = at, .dtype = static_cast<DType>(dtype), .rank = 0};
  try {
    look(0, array_interface(view).c_str());
  } catch (const Misuse& misuse) {
    look(0, misuse.what());
  }
}
