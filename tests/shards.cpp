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

}  // namespace

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
