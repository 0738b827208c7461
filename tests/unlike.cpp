// A small training in which one rank is not like the others: other settings, another program, other steps, other calls.
// tests/faults.py drives it.
//
//   unlike threads|mpi FAULT RANK STEP DEADLINE      STEP: from 0 to 7, where the fault has one; DEADLINE in
//   milliseconds
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <parallel/communicator/checked.hpp>
#include <parallel/communicator/threads.hpp>
#if defined(WITH_MPI)
#include <parallel/communicator/mpi.hpp>
#endif
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int rows = 8, width = 8, classes = 6, steps = 8;

template <bool smooth>
struct Model {
  Parameter<float, Shape<classes, width>> token{normal(0.3)};
  Parameter<float, Shape<width, 2 * width / tensor>> up{normal(0.3)};
  Parameter<float, Shape<2 * width / tensor, width>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    const auto x = embedding(tokens, token);
    if constexpr (smooth)
      return mean(cross_entropy(matmul(matmul(gelu(matmul(x, up)), down), transpose(token)), targets));
    else
      return mean(cross_entropy(matmul(matmul(relu(matmul(x, up)), down), transpose(token)), targets));
  }
};
using Tokens = Tensor<int, Shape<rows / data>>;
template <bool smooth>
using Step = Training<Model<smooth>, AdamW, Tokens, Tokens>;
using Look = Evaluation<Model<true>, Tokens, Tokens>;

std::string fault;
int culprit = 0, when = 0;

/// Calls of a rank that is to call something else.
template <class World>
void calls(World& world, bool culprit_here) {
  World all = world.split(0, world.rank());
  std::vector<float> in(64, 1), out(64);
  const Exchange sum{Collective::all_reduce, in.data(), out.data(), 16, DType::f32, false, 0, "gradient"};
  const Exchange first{Collective::broadcast, out.data(), out.data(), 16, DType::f32, false, 0, "activation"};
  for (int step = 0; step < steps; ++step) {
    Exchange mine = sum, then = first;
    if (culprit_here && step == when) {
      if (fault == "call_kind") mine.kind = Collective::all_gather;
      if (fault == "call_count") mine.count = 8;
      if (fault == "call_type") mine.dtype = DType::i32;
      if (fault == "call_maximum") mine.maximum = true;
      if (fault == "call_label") mine.label = "norm";
      if (fault == "call_root") then.root = world.size() - 1;
      if (fault == "call_order") std::swap(mine, then);
      if (fault == "call_more") exchange(all, then);
      if (fault == "call_fewer") continue;
    }
    exchange(all, mine);
    exchange(all, then);
  }
}

template <class World>
void work(World& world) {
  const bool other = world.rank() == culprit;
  if (other) std::fprintf(stderr, "[fault] %s of rank %d\n", fault.c_str(), culprit);
  const auto is = [&](const char* what) { return other && fault == what; };
  if (fault.starts_with("call_")) {
    Checked checked(world);
    return calls(checked, other);
  }
  const Mesh mesh = is("axes")   ? Mesh{tensor = 2, data = 2}
                    : is("mesh") ? Mesh{data = 4, tensor = 1}
                                 : Mesh{data = 2, tensor = 2};
  const OwnedPlan plan = is("program") ? derive<Step<false>>(mesh) : derive<Step<true>>(mesh);
  const OwnedPlan looking = derive<Look, Step<true>>(mesh);
  const std::vector<int> text(1000, is("text") ? 3 : 2);
  Parameters parameters(*plan, world.rank(), is("seed_of_parameters") ? 2 : 1);
  Trainer<World, Cpu> trainer(*plan, world, parameters, {.weight_decay = is("hyperparameter") ? 0.2 : 0.1},
                              is("seed") ? 2 : 1, {}, {fact_of_data("text", std::span<const int>(text))});
  Executor<World, Cpu> look(*looking, world, parameters);
  Parameters others(*looking, world.rank(), 3), more(*looking, world.rank(), 4);
  Executor<World, Cpu> look_at_others(*looking, world, is("executors_made") ? more : others),
      look_at_more(*looking, world, is("executors_made") ? others : more);
  trainer.compare_replicas_every(fault == "replica" ? 1 : 0);
  for (int step = 0; step < steps; ++step) {
    const bool now = step == when;
    if (is("step_missing") && now) continue;
    std::vector<int> tokens(rows, step % classes), targets(rows, (step + 1) % classes);
    if (is("index") && now) tokens.back() = classes;
    trainer.executor().input(0, tokens);
    trainer.executor().input(1, targets);
    float* const held = trainer.executor().member(0).template as<float>();
    if (is("nan") && now) held[3] = std::numeric_limits<float>::quiet_NaN();
    if (is("replica") && now) held[3] += 1;
    if (is("set") && now) parameters.set(*plan, world.rank(), "token", std::vector<float>(classes * width, 1));
    trainer.step(is("rate") && now ? 0.2 : 0.1 / (step + 1));
    if (fault == "executors_run" && now) {
      Executor<World, Cpu>* order[] = {&look_at_others, &look_at_more};
      if (other) std::swap(order[0], order[1]);
      for (auto* each : order) {
        each->input(0, tokens);
        each->input(1, targets);
        each->run();
      }
    }
    if (is("step_more") && now) trainer.step(0.1 / (step + 1));
    if (is("evaluation_more") && now) {
      look.input(0, tokens);
      look.input(1, targets);
      look.run();
    }
    if (is("executor_more") && now) Executor<World, Cpu>(*looking, world, parameters).input(0, tokens);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return guarded("unlike", [&] {
    if (argc != 6) throw Failure("say unlike threads|mpi FAULT RANK STEP DEADLINE", exit_code::usage);
    fault = argv[2];
    culprit = std::atoi(argv[3]);
    when = std::atoi(argv[4]);
    const std::chrono::milliseconds deadline(std::atoi(argv[5]));
    if (std::string(argv[1]) == "threads") {
      run_threads(
          4, [](Threads& world) { work(world); }, deadline);
      return exit_code::done;
    }
#if defined(WITH_MPI)
    run_mpi([](Mpi& world) { work(world); }, {.deadline = deadline});
    return exit_code::done;
#else
    throw Failure("this build has no MPI", exit_code::unavailable);
#endif
  });
}
