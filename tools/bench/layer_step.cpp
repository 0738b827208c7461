// The step of some transformer layers, derived or by hand, on request: tools/bench/layer asks, by turns with other peers.
//
//   layer_step derived|by-hand --layers 1|4 [--sequence] [--ranks N]     ranks are threads; by hand, one
//   mpirun -n 2 layer_step derived|by-hand ... --mpi                     ranks are processes
//
// It prints what is to be compared before anything is timed, a line "NAME NUMBER" each, and "ready". For every line N of the standard input
// it then takes one step, N more, and prints the milliseconds of the fastest of these. Nothing spins while it waits for a line, as the
// others run then.
#include <parallel/communicator/threads.hpp>
#if defined(WITH_MPI)
#include <parallel/communicator/mpi.hpp>
#endif
#include <parallel/device/cpu.hpp>
#include <parallel/run/trainer.hpp>

#include <cstring>
#include <iostream>
#include <thread>

#include "layer_by_hand.hpp"
#include "measure.hpp"

namespace bench {

/// How many steps are asked for; 0 behind the last request.
inline int request() {
  int steps = 0;
  return std::cin >> steps ? steps : 0;
}
/// The same on every rank, which sleep until then.
class ThreadRequests {
 public:
  ThreadRequests(Threads& world, std::atomic<int>& steps) : world_(world), steps_(steps) { world.deadline(std::chrono::hours(1)); }
  int next() {
    if (world_.rank() == 0) steps_ = request();
    world_.barrier();
    return steps_;
  }
  void together() { world_.barrier(); }

 private:
  Threads& world_;
  std::atomic<int>& steps_;
};

#if defined(WITH_MPI)
class MpiRequests {
 public:
  int next() {
    int rank = 0, ranks = 1, steps = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) {
      steps = request();
      for (int r = 1; r < ranks; ++r) MPI_Send(&steps, 1, MPI_INT, r, 0, MPI_COMM_WORLD);
      return steps;
    }
    for (int there = 0; there == 0; std::this_thread::sleep_for(std::chrono::microseconds(200)))
      MPI_Iprobe(0, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    MPI_Recv(&steps, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return steps;
  }
  void together() { MPI_Barrier(MPI_COMM_WORLD); }
};

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
      : world_(world), plan_(plan), parameters_(plan, world.rank(), 1), trainer_(plan, world, parameters_, {}, 1) {
    int which = 0, position = 0;
    for (const Member& m : plan.graph.members) {
      if (m.role == Role::parameter) {
        float* const part = trainer_.executor().member(which).template as<float>();
        each_element(m.type.layout, plan.mesh, world.rank(), [&](std::int64_t i, std::int64_t global) { part[i] = number(which, global); });
      } else if (m.role == Role::input) {
        float* const part = trainer_.executor().input(position++).template as<float>();
        each_element(m.type.layout, plan.mesh, world.rank(), [&](std::int64_t i, std::int64_t global) { part[i] = number(which, global); });
      }
      if (m.role == Role::parameter && m.path.view() != numbers[static_cast<std::size_t>(which)].name)
        throw Failure("layer_step: the model's parameters are not those of layer_model.hpp");
      ++which;
    }
  }
  StepResult step() { return trainer_.step(0); }
  std::vector<Checked> checked(const StepResult& result) {
    std::vector<Checked> all{{"loss", result.loss}, {"norm", result.gradient_norm}};
    for (int i = 0; i < 13; ++i) {
      const View v = trainer_.executor().output(2 + i);
      double squares = Eigen::Map<const Eigen::ArrayXf>(v.as<float>(), v.elements()).cast<double>().square().sum(), sum = 0;
      bool split = false;
      for (int d = 0; d < v.rank; ++d) split = split || v.size[d] != v.whole[d];
      Exchange e;
      e.in = &squares, e.out = &sum, e.count = 1, e.dtype = DType::f64;
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

template <class Peer, class Requests>
void serve(Peer& peer, Requests requests, bool speaks) {
  const auto result = peer.step();
  const std::vector<Checked> all = peer.checked(result);
  if (speaks) {
    for (const Checked& c : all) std::printf("%s %.9g\n", c.name.c_str(), c.value);
    std::printf("ready\n");
    std::fflush(stdout);
  }
  while (const int steps = requests.next()) {
    double fastest = 1e9;
    for (int i = -1; i < steps; ++i) {
      requests.together();
      const double time = seconds([&] {
        peer.step();
        requests.together();
      });
      if (i >= 0) fastest = std::min(fastest, time);
    }
    if (speaks) std::printf("%.4f\n", fastest * 1e3), std::fflush(stdout);
  }
}

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
    struct {
      int next() { return request(); }
      void together() {}
    } requests;
    LayersByHand<Alone> peer(options.layers, 0, 1, {});
    return serve(peer, requests, true);
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
  if ((options.layers != 1 && options.layers != 4) || (options.by_hand && (options.sequence || options.ranks != 1))) return bench::usage();
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
