// The step of some transformer layers, derived or by hand, on request: tools/bench/layer asks, by turns with other
// peers.
//
//   layer_step derived|by-hand --layers 1|4 [--sequence] [--ranks N]     ranks are threads; by hand, one
//   mpirun -n 2 layer_step derived|by-hand ... --mpi                     ranks are processes
#include <cstring>

#include <parallel/device/cpu.hpp>
#include <parallel/run/trainer.hpp>

#include "layer_by_hand.hpp"
#include "serve.hpp"

namespace bench {

#if defined(WITH_MPI)
/// By hand over MPI. MPI goes on with a message only while it is called, so large products are computed in pieces.
class RawMpi {
 public:
  static constexpr int pieces = 4;
  void start(float* data, std::int64_t n) {
    MPI_Iallreduce(MPI_IN_PLACE, data, static_cast<int>(n), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request_);
  }
  void start(double* data, std::int64_t n) {
    MPI_Iallreduce(MPI_IN_PLACE, data, static_cast<int>(n), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request_);
  }
  void test() {
    int done = 0;
    MPI_Test(&request_, &done, MPI_STATUS_IGNORE);
  }
  void wait() { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
};
#endif

/// One rank has nothing to add.
struct Alone {
  static constexpr int pieces = 1;
  template <class T>
  void start(T*, std::int64_t) {}
  void test() {}
  void wait() {}
};

/// The derived step on one rank.
template <class Program, Communicator World>
class Derived {
 public:
  Derived(World& world, const Plan& plan)
      : world_(world),
        plan_(plan),
        parameters_(plan, world.rank(), 1),
        trainer_(plan, world, parameters_, KeepGradients::Hyperparameters{.clip_norm = 1}, 1) {
    int which = 0, position = 0;
    for (const Member& m : plan.graph.members) {
      if (m.role == Role::parameter) {
        float* const part = trainer_.executor().member(which).template as<float>();
        each_run(plan, m.type.layout, world.rank(), [&](std::int64_t at, std::int64_t index, std::int64_t length) {
          for (std::int64_t i = 0; i < length; ++i) part[at + i] = number(which, index + i);
        });
      } else if (m.role == Role::input) {
        float* const part = trainer_.executor().input(position++).template as<float>();
        each_run(plan, m.type.layout, world.rank(), [&](std::int64_t at, std::int64_t index, std::int64_t length) {
          for (std::int64_t i = 0; i < length; ++i) part[at + i] = number(which, index + i);
        });
      }
      if (m.role == Role::parameter && plan.graph.path(m) != numbers[static_cast<std::size_t>(which)].name)
        throw Failure("layer_step: the model's parameters are not those of layer_model.hpp");
      ++which;
    }
  }
  StepResult step() { return trainer_.step(0); }
  std::vector<Checked> checked(const StepResult& result) {
    std::vector<Checked> all{{"loss", result.loss}, {"norm", result.gradient_norm}};
    for (int i = 0; i < 13; ++i) {
      const View v = trainer_.executor().output(2 + i);
      double squares = Eigen::Map<const Eigen::ArrayXf>(v.as<float>(), v.elements()).cast<double>().square().sum(),
             sum = 0;
      bool split = false;
      for (int d = 0; d < v.rank; ++d) split = split || v.size[d] != v.whole[d];
      Exchange e;
      e.in = &squares;
      e.out = &sum;
      e.count = 1;
      e.dtype = DType::f64;
      exchange(world_, e);
      all.push_back({numbers[static_cast<std::size_t>(i)].name, std::sqrt(split ? sum : squares)});
    }
    return all;
  }

 private:
  World& world_;
  const Plan& plan_;
  Parameters parameters_;
  Trainer<World, Cpu> trainer_;
};

struct Options {
  bool by_hand = false, mpi = false, sequence = false;
  int layers = 1, ranks = 1;
};

template <int layers, bool sequence>
void derived(const Options& options) {
  using Program = LayerStep<layers, sequence>;
  const auto run = [&](auto& world, auto requests) {
    const OwnedPlan plan = derive<Program>(Mesh{tensor = world.size()});
    Derived<Program, std::remove_cvref_t<decltype(world)>> peer(world, plan);
    serve(peer, requests, world.rank() == 0);
  };
  if (!options.mpi) {
    std::atomic<int> steps;
    return run_threads(options.ranks, [&](Threads& world) { run(world, ThreadRequests(world, steps)); });
  }
#if defined(WITH_MPI)
  run_mpi([&](Mpi& world) { run(world, MpiRequests()); });
#endif
}

void by_hand(const Options& options) {
  if (!options.mpi) {
    LayersByHand<Alone> peer(options.layers, 0, 1, {});
    return serve(peer, OwnRequests(), true);
  }
#if defined(WITH_MPI)
  run_mpi([&](Mpi& world) {
    LayersByHand<RawMpi> peer(options.layers, world.rank(), world.size(), {});
    serve(peer, MpiRequests(), world.rank() == 0);
  });
#endif
}

int usage() {
  std::fprintf(stderr, "layer_step: say layer_step derived|by-hand --layers 1|4 [--sequence] [--ranks N | --mpi]\n");
  return 2;
}

}  // namespace bench

int main(int argc, char** argv) {
  bench::Options options;
  if (argc < 2 || (std::strcmp(argv[1], "derived") != 0 && std::strcmp(argv[1], "by-hand") != 0)) return bench::usage();
  options.by_hand = std::strcmp(argv[1], "by-hand") == 0;
  for (int i = 2; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (std::strcmp(argv[i], "--mpi") == 0)
      options.mpi = true;
    else if (std::strcmp(argv[i], "--sequence") == 0)
      options.sequence = true;
    else if (more && std::strcmp(argv[i], "--layers") == 0)
      options.layers = std::atoi(argv[++i]);
    else if (more && std::strcmp(argv[i], "--ranks") == 0)
      options.ranks = std::atoi(argv[++i]);
    else
      return bench::usage();
  }
  if ((options.layers != 1 && options.layers != 4) || (options.by_hand && (options.sequence || options.ranks != 1)))
    return bench::usage();
#if !defined(WITH_MPI)
  if (options.mpi) return std::fprintf(stderr, "layer_step: this build has no MPI\n"), 69;
#endif
  if (options.by_hand)
    bench::by_hand(options);
  else if (options.layers == 1)
    options.sequence ? bench::derived<1, true>(options) : bench::derived<1, false>(options);
  else
    options.sequence ? bench::derived<4, true>(options) : bench::derived<4, false>(options);
}
