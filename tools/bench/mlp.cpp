// The step that is derived from annotations against the same step by hand, on two tensor-parallel ranks: time, and
// under callgrind instructions.
//
//   mlp [--rounds N]                  ranks are threads
//   mpirun -n 2 mlp --mpi [...]       ranks are processes
//   mlp --once derived|by-hand        one small step with AdamW on one rank, for callgrind
//                                     --toggle-collect=measured_step
//
// Both are run by turns, on the same numbers; that both give the same gradients and parameters is checked first.
#include <parallel/communicator/threads.hpp>
#include <parallel/meta/meeting.hpp>
#if defined(WITH_MPI)
#include <parallel/communicator/mpi.hpp>
#endif
#include <cstdio>
#include <cstring>

#include <parallel/device/cpu.hpp>
#include <parallel/run/trainer.hpp>

#include "measure.hpp"
#include "mlp_by_hand.hpp"
#include "mlp_model.hpp"

/// What callgrind counts.
extern "C" [[gnu::noinline]] void measured_step(void (*step)(void*), void* state) { step(state); }

namespace bench {

/// By hand on threads: each sums its half of both terms and writes it to both; barriers that spin.
class SharedMemory {
 public:
  struct Shared {
    void* terms[2]{};
    std::atomic<int> arrived{0};
  };
  SharedMemory(Shared& shared, int rank) : shared_(&shared), rank_(rank) {}

  template <class T>
  void operator()(T* data, std::int64_t n) {
    shared_->terms[rank_] = data;
    meet();
    T *a = static_cast<T*>(shared_->terms[0]), *b = static_cast<T*>(shared_->terms[1]);
    const std::int64_t half = n / 2 / 16 * 16, begin = rank_ == 0 ? 0 : half, end = rank_ == 0 ? half : n;
    for (std::int64_t i = begin; i < end; i += 512) {
      const std::int64_t count = std::min<std::int64_t>(512, end - i);
      Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>> left(a + i, count), right(b + i, count);
      left += right;
      right = left;
    }
    meet();
  }

 private:
  void meet() {
    const int target = 2 * ++met_;
    shared_->arrived.fetch_add(1);
    while (shared_->arrived.load(std::memory_order_acquire) < target) threading::pause();
  }
  Shared* shared_;
  int rank_, met_ = 0;
};

struct Nothing {
  template <class T>
  void operator()(T*, std::int64_t) {}
};

#if defined(WITH_MPI)
/// By hand over MPI.
struct RawMpi {
  void operator()(float* data, std::int64_t n) {
    MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(n), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  void operator()(double* data, std::int64_t n) {
    MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(n), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
};
#endif

/// The largest difference, over the largest number.
inline double difference(const float* a, const float* b, std::int64_t n) {
  const Eigen::Map<const Eigen::ArrayXf> left(a, n), right(b, n);
  return static_cast<double>((left - right).abs().maxCoeff() / std::max(1e-30f, right.abs().maxCoeff()));
}

/// Both programs on one rank, begun alike.
template <class Model, class Optimizer, int rows, Communicator World, class AllReduce>
class Both {
 public:
  static constexpr bool trains = std::is_same_v<Optimizer, AdamW>;
  static constexpr typename Optimizer::Hyperparameters words() {
    if constexpr (trains)
      return {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1};
    else
      return {.clip_norm = 1};
  }

  Both(const Plan& plan, World& world, AllReduce all_reduce, int slice)
      : plan_(plan),
        parameters_(plan, world.rank(), 1),
        trainer_(plan, world, parameters_, words(), 1),
        by_hand_(rows, Model::width, slice, Model::biases, all_reduce) {
    for (const int which : {0, 1}) {
      std::vector<float> whole(rows * Model::width);
      for (std::size_t i = 0; i < whole.size(); ++i)
        whole[i] = static_cast<float>(2 * random_uniform(9, static_cast<std::uint64_t>(which), i) - 1);
      trainer_.executor().input(which, whole);
      std::copy(whole.begin(), whole.end(), which == 0 ? by_hand_.x.data() : by_hand_.target.data());
    }
    each_parameter(
        [](const float* ours, auto& trained) { std::copy(ours, ours + trained.value.size(), trained.value.data()); });
  }

  void derived() { result_ = trainer_.step(1e-3); }
  void by_hand() {
    if constexpr (trains)
      expected_ = by_hand_.step({});
    else
      expected_ = by_hand_.gradients();
  }
  /// How far the two are apart after the same number of steps: in what AdamW keeps of the gradients by elements, and in
  /// parameters by their length, as mean / (sqrt(variance) + epsilon) makes of a gradient near 0 what it likes.
  double apart() {
    double most =
        std::max(std::abs(result_.loss / expected_.loss - 1), std::abs(result_.gradient_norm / expected_.norm - 1));
    const auto take = [&](double one) {
      if (!std::isnan(most) && !(one <= most)) most = one;  // also what is no number
    };
    const auto compare = [&](const float* ours, const auto& expected) {
      take(difference(ours, expected.data(), expected.size()));
    };
    if constexpr (trains) {
      each_parameter([&](const float* ours, auto& trained) {
        const Eigen::Map<const Eigen::ArrayXf> own(ours, trained.value.size()),
            other(trained.value.data(), trained.value.size());
        take(static_cast<double>((own - other).matrix().norm() / other.matrix().norm()));
      });
      each_member("mean", [&](const float* ours, auto& trained) { compare(ours, trained.mean); });
      each_member("variance", [&](const float* ours, auto& trained) { compare(ours, trained.variance); });
    }
    for (int i = 2; i < trainer_.executor().outputs(); ++i)
      compare(trainer_.executor().output(i).template as<const float>(), at(i - 2).gradient);
    return most;
  }

 private:
  auto& at(int i) {
    if (Model::biases)
      return i == 0 ? by_hand_.up : i == 1 ? by_hand_.up_bias : i == 2 ? by_hand_.down : by_hand_.down_bias;
    return i == 0 ? by_hand_.up : by_hand_.down;
  }
  template <class F>
  void each_parameter(F f) {
    each_member("", f);
  }
  /// The parameters, or of each the state of that name.
  template <class F>
  void each_member(std::string_view state, F f) {
    int position = 0, index = 0;
    for (const Member& m : plan_.graph.members) {
      if (state.empty() ? m.role == Role::parameter
                        : m.role == Role::state && plan_.graph.path(m).ends_with(std::string(".").append(state)))
        f(trainer_.executor().member(index).template as<const float>(), at(position++));
      ++index;
    }
    if (position != (Model::biases ? 4 : 2))
      throw Failure("mlp: the plan has other parameters or states than the one by hand");
  }

  const Plan& plan_;
  Parameters parameters_;
  Trainer<World, Cpu> trainer_;
  MlpByHand<AllReduce> by_hand_;
  StepResult result_{};
  typename MlpByHand<AllReduce>::Result expected_{};
};

struct Options {
  int rounds = 7;
  std::string once;
};

template <class Model, class Optimizer, int rows, Communicator World, class AllReduce>
void compare(World& world, AllReduce all_reduce, const char* over, const Options& options) {
  const OwnedPlan plan = derive<MlpStep<Model, Optimizer, rows>>(Mesh{tensor = 2});
  Both<Model, Optimizer, rows, World, AllReduce> both(plan, world, all_reduce, Model::hidden / 2);
  const auto timed = [&](auto step) {
    world.barrier();
    return seconds([&] {
      step();
      world.barrier();
    });
  };
  for (int step = 0; step < 2; ++step) {
    both.derived();
    both.by_hand();
  }
  const double apart = both.apart();
  if (!(apart < 1e-4))
    throw Failure("mlp: the two programs differ by " + text(1e6 * apart) + "e-6; one of them is wrong");
  std::vector<double> derived, by_hand;
  for (int round = 0; round < options.rounds; ++round) {
    derived.push_back(timed([&] { both.derived(); }) * 1e3);
    by_hand.push_back(timed([&] { both.by_hand(); }) * 1e3);
  }
  if (world.rank() != 0) return;
  const std::string what = std::to_string(rows) + " rows" + (Model::biases ? ", biases" : "") +
                           (both.trains ? ", AdamW" : ", gradients") + ", 2 ranks over " + over;
  row("mlp", what + ": derived", spread(derived), "ms");
  row("mlp", what + ": by hand", spread(by_hand), "ms");
  row("mlp", what + ": derived / by hand", ratio(derived, by_hand), "of the time");
}

/// `make()` gives the all-reduce by hand, anew for every comparison.
template <Communicator World, class MakeAllReduce>
void compare_all(World& world, MakeAllReduce make, const char* over, const Options& options) {
  using Plain = Mlp<768, 3072>;
  using Biased = MlpWithBiases<768, 3072>;
  compare<Plain, KeepGradients, 512>(world, make(), over, options);
  compare<Plain, KeepGradients, 2048>(world, make(), over, options);
  compare<Plain, AdamW, 512>(world, make(), over, options);
  compare<Plain, AdamW, 2048>(world, make(), over, options);
  compare<Biased, AdamW, 512>(world, make(), over, options);
  compare<Biased, AdamW, 2048>(world, make(), over, options);
}

/// One step behind another, on one rank that holds the whole hidden layer. It is small, as callgrind takes 50 ns for a
/// multiply-add.
inline void once(bool derived) {
  constexpr int rows = 128;
  using Small = Mlp<256, 1024>;
  run_threads(1, [&](Threads& world) {
    const OwnedPlan plan = derive<MlpStep<Small, AdamW, rows>>(Mesh{tensor = 1});
    using Programs = Both<Small, AdamW, rows, Threads, Nothing>;
    Programs both(plan, world, Nothing{}, Small::hidden);
    void (*step)(void*) = [](void* state) { static_cast<Programs*>(state)->by_hand(); };
    if (derived) step = [](void* state) { static_cast<Programs*>(state)->derived(); };
    step(&both);
    measured_step(step, &both);
  });
}

}  // namespace bench

int main(int argc, char** argv) {
  bench::Options options;
  bool mpi = false;
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (std::strcmp(argv[i], "--mpi") == 0)
      mpi = true;
    else if (more && std::strcmp(argv[i], "--rounds") == 0)
      options.rounds = std::atoi(argv[++i]);
    else if (more && std::strcmp(argv[i], "--once") == 0)
      options.once = argv[++i];
    else
      return std::fprintf(stderr, "mlp: unknown argument '%s'; say mlp [--mpi] [--rounds N] [--once derived|by-hand]\n",
                          argv[i]),
             2;
  }
  if (!options.once.empty()) return bench::once(options.once == "derived"), 0;
  if (!mpi) {
    bench::SharedMemory::Shared shared[16];
    parallel::run_threads(2, [&](parallel::Threads& world) {
      auto* next = shared;
      bench::compare_all(
          world, [&] { return bench::SharedMemory(*next++, world.rank()); }, "threads", options);
    });
    return 0;
  }
#if defined(WITH_MPI)
  parallel::run_mpi(
      [&](parallel::Mpi& world) {
        bench::compare_all(
            world, [] { return bench::RawMpi{}; }, "MPI", options);
      },
      {.ranks = 2});
  return 0;
#else
  return std::fprintf(stderr, "mlp: this build has no MPI\n"), 69;
#endif
}
