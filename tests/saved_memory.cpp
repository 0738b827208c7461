// What a save of a checkpoint takes until it is written is what the plan says, to the byte: the calls that allocate are
// counted.
#include <cstdlib>
#include <new>
#include <utility>

#include <parallel/model/averaged.hpp>

#include "kept.hpp"

using namespace kept;

namespace {
constexpr std::size_t least = 16384;   // each part of a tensor is larger, and what is noted of them smaller
thread_local std::int64_t taken = -1;  // by this thread, in pieces of `least` and more; -1: not counted
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (taken >= 0 && bytes >= least) taken += static_cast<std::int64_t>(bytes);
  if (void* const got = std::malloc(bytes)) return got;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* what) noexcept { std::free(what); }
[[gnu::noinline]] void operator delete(void* what, std::size_t) noexcept { std::free(what); }

namespace {
constexpr int wide = 128;
using Wide = Tensor<double, Shape<rows / data, wide>>;
struct WideBlock {
  Parameter<double, Shape<wide, wide / tensor>> up{normal(0.1)};
  Parameter<double, Shape<wide / tensor, wide>> down{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(x, up)), down); }
};
template <Dim layers>
struct WideModel {
  Parameter<double, Shape<wide, wide>> token{normal(0.1)};
  Layers<layers, WideBlock> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(matmul(x, token)), token) - y));  // on the first stage and the last
  }
};
using Train = Training<WideModel<4>, Averaged<AdamW>, Wide, Wide>;
using Pipe = Training<WideModel<4 / stage>, AdamW, Wide, Wide>;

template <class Program>
void check(const Mesh& mesh) {
  INFO(text(mesh));
  const Folder folder;
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive<Program>(mesh, world.rank());
    Parameters parameters(plan, world.rank(), 5);
    Executor<Threads, CpuDouble> executor(plan, world, parameters);
    Checkpoints checkpoints(world, folder.path);
    taken = 0;
    checkpoints.save(executor, 1);
    const std::int64_t copied = std::exchange(taken, -1);
    CHECK(copied <= plan->saved_memory());
    const Axis* const stages = plan->graph.stages;
    bool first = true;  // of the ranks of its stage
    for (int i = 0; i < mesh.count; ++i)
      first = first && (mesh.axes[i].axis == stages || mesh.coordinate(world.rank(), mesh.axes[i].axis) == 0);
    if (first) CHECK(copied == plan->saved_memory());
    CHECK(checkpoints.wait());
  });
}
}  // namespace

TEST_CASE("a save takes what the plan says") {
  for (const Mesh& mesh :
       {Mesh{data = 1}, Mesh{data = 2}, Mesh{data = 4}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}})
    check<Train>(mesh);
  check<AllStored<Train, Stored<data>>>(Mesh{data = 2, tensor = 2});
  check<AllStored<Train, Stored<data, Zero::states>>>(Mesh{data = 4});
  check<Pipe>(Mesh{stage = 2, data = 2});
  check<AllStored<Pipe, Stored<data>>>(Mesh{stage = 4, data = 2});
}
TEST_CASE("what is split is not copied twice, and state is most of it") {
  constexpr auto& whole = plan<Train, Mesh{data = 2}>;
  constexpr auto& split = plan<AllStored<Train, Stored<data>>, Mesh{data = 2}>;
  static_assert(whole.saved_memory() == 4 * 9 * 8 * wide * wide);  // a parameter, two means, an average
  static_assert(split.saved_memory() == whole.saved_memory() / 2);
}
