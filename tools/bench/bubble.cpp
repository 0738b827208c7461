// How much of a step the stages of a pipeline wait for each other, by schedule, against what the schedule says with
// tasks that take as long as they took on average in the same step.
//
//   bubble [--rounds N] [--stages 2|4] [--micro-batches 4|8|16] [--schedule NAME] [--asleep | --uneven]     ranks are threads
//   mpirun -n 2|4 bubble --mpi [...]                                                  ranks are processes, as many as there are stages
//
// --asleep: products sleep for 4 ms instead, so that neither what else the machine does nor memory that ranks share is
// in the figures, and what is left beyond the prediction is the executor's and the communicator's. --uneven: for 1 to 7
// ms, so that ranks come early and late.
//
// Each round goes through all schedules by turns. A rank is busy while it runs the operations of a task; everything
// else between its first task and the end of the last is bubble: waiting, messages, and what the executor does between
// operations. That every schedule computes the same is checked.
#include <thread>

#include <parallel/communicator/threads.hpp>
#if defined(WITH_MPI)
#include <parallel/communicator/mpi.hpp>
#endif
#include <cstring>
#include <memory>

#include <parallel/device/cpu.hpp>
#include <parallel/run/trainer.hpp>

#include "measure.hpp"
#include "pipeline_run.hpp"

namespace bench {

/// A task on one rank, in seconds; clocks of one machine agree.
struct Worked {
  double begin = 1e300, end = 0, busy = 0;
};
/// The tasks of a stage, one for each of its slots, from the events of one step.
std::vector<Worked> tasks_of(const Plan& plan, const Happened* happened) {
  std::vector<Worked> tasks(plan.graph.slots.size());
  if (happened->node == Happened::counter) ++happened;
  std::size_t at = tasks.size();  // before the first slot, as behind the last
  const auto event = [&](const Event& e) {
    if (e.kind == EventKind::begin || e.kind == EventKind::end) return;
    const Happened& h = *happened++;
    if (h.node != e.node || h.kind != e.kind) throw Failure("bubble: the record is not the plan's");
    if (e.kind != EventKind::compute || at == tasks.size()) return;
    Worked& task = tasks[at];
    task.begin = std::min(task.begin, h.begin);
    task.end = h.end;
    task.busy += h.end - h.begin;
  };
  each_event(plan, event, [&](int slot) { at = static_cast<std::size_t>(slot); });
  return tasks;
}

/// One step of all stages: its milliseconds, from the first task to the end of the last, and the share of that in which
/// ranks are not busy.
struct Step {
  double whole = 0, tasks = 0, bubble = 0;
  double predicted_tasks = 0, predicted_bubble = 0;  ///< where each task of a kind takes as long as all did on average
  double replayed = 0;                               ///< `tasks`, where each takes as long as it took
  /// the share in which other programs had the ranks' cores, added over ranks
  double disturbed = 0;
};

/// Products sleep, for 4 ms or, unevenly, for 1 to 7, and everything else takes no time: ranks that need no cores.
template <bool uneven>
struct Asleep : Cpu {
  Kernel kernel(const Operation& operation, const Call&) const {
    if (&operation != &operation::matmul) return [](const Call&) {};
    return [](const Call& call) {
      static thread_local std::uint64_t calls = 0;
      const double share =
          uneven ? random_uniform(1, reinterpret_cast<std::uintptr_t>(call.results[0].data), ++calls) : 0.5;
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(1 + 6 * share));
    };
  }
  FusedKernel fused(std::span<Call>) const { return {}; }
};

/// A schedule that is run.
template <Communicator World, class Device>
class Way {
 public:
  Way(const Graph& graph, const Schedule& schedule, World& world, int micro_batches, int steps)
      : world_(world),
        schedule_(schedule),
        micro_batches_(micro_batches),
        run_(with(graph, schedule), world),
        recording_(run_.plan(), world.rank(), steps) {
    run_.step();  // warms up
    run_.executor().record(recording_);
  }
  StepResult result{};

  Step step(double transfer) {
    Step step;
    world_.barrier();
    const double lost = waited_for_a_core();
    step.whole = 1e3 * seconds([&] {
                   result = run_.step();
                   world_.barrier();
                 });
    std::vector<Worked> own = tasks_of(run_.plan(), recording_.happened().data() + read_);
    read_ = recording_.happened().size();
    own.push_back({0, 0, waited_for_a_core() - lost});
    const std::vector<Worked> all = gathered(own);
    const std::size_t tasks = own.size() - 1;
    const auto of = [&](int stage, std::size_t task) -> const Worked& {
      return all[static_cast<std::size_t>(stage) * own.size() + task];
    };

    double begin = 1e300, end = 0, busy = 0;
    for (int r = 0; r < world_.size(); ++r) {
      for (std::size_t t = 0; t < tasks; ++t) {
        begin = std::min(begin, of(r, t).begin);
        end = std::max(end, of(r, t).end);
        busy += of(r, t).busy;
      }
      step.disturbed += 1e3 * of(r, tasks).busy / step.whole;
    }
    busy /= world_.size();
    step.tasks = 1e3 * (end - begin);
    step.bubble = 1 - busy / (end - begin);

    const AllTasks order = parallel::internals::tasks_of(schedule_, world_.size(), micro_batches_);
    const auto place = [&](int stage, Task task) {
      std::size_t at = 0;
      while (!(order.stages[stage][static_cast<int>(at)] == task)) ++at;
      return at;
    };
    const auto mean = [&](int stage, Task task) {
      double sum = 0;
      for (int j = 0; j < micro_batches_; ++j) sum += of(stage, place(stage, {task.work, j, task.chunk})).busy;
      return sum / micro_batches_;
    };
    const auto same = [&](int, Task) { return transfer; };
    const auto length = [&](auto duration) {
      double last = 0;
      for (const Vector<Span>& stage : spans(order, duration, same)) last = std::max(last, stage.back().end);
      return last;
    };
    const double predicted = length(mean);
    step.predicted_tasks = 1e3 * predicted;
    step.predicted_bubble = 1 - busy / predicted;
    step.replayed = 1e3 * length([&](int stage, Task task) { return of(stage, place(stage, task)).busy; });
    return step;
  }

 private:
  std::vector<Worked> gathered(const std::vector<Worked>& own) {
    std::vector<Worked> all(own.size() * static_cast<std::size_t>(world_.size()));
    Exchange e;
    e.kind = Collective::all_gather;
    e.in = own.data();
    e.out = all.data();
    e.count = static_cast<std::int64_t>(3 * all.size());
    e.dtype = DType::f64;
    exchange(world_, e);
    return all;
  }

  World& world_;
  const Schedule& schedule_;
  int micro_batches_;
  PipelineRun<World, Device> run_;
  Recording recording_;
  std::size_t read_ = 0;
};

/// Seconds that a message of an activation takes to the next rank, undisturbed; on rank 0.
template <Communicator World>
double transfer(World& world) {
  std::vector<float> buffer(piped::rows * piped::width);
  constexpr int times = 50;
  const auto once = [&](int from) {
    if (world.rank() > 1) return;
    Exchange e;
    e.kind = world.rank() == from ? Collective::send : Collective::receive;
    e.peer = 1 - world.rank();
    e.in = e.out = buffer.data();
    e.count = static_cast<std::int64_t>(buffer.size());
    exchange(world, e);
  };
  double fastest = 1e9;
  world.barrier();
  for (int i = 0; i < times; ++i) fastest = std::min(fastest, seconds([&] { once(0), once(1); }));
  world.barrier();
  return fastest / 2;
}

template <class F>
Spread of(const std::vector<Step>& steps, F f) {
  std::vector<double> values;
  for (const Step& step : steps) values.push_back(f(step));
  return spread(values);
}

struct Options {
  int rounds = 7, stages = 0, micro_batches = 0;
  std::string schedule{};
  bool mpi = false, asleep = false, uneven = false;
};

template <int micro_batches, class Device, Communicator World>
void measure(World& world, const Options& options) {
  if (options.micro_batches != 0 && options.micro_batches != micro_batches) return;
  const Graph graph = build<PipelineStep<micro_batches>>();
  std::vector<std::unique_ptr<Way<World, Device>>> ways;
  std::vector<std::string> names;
  for (const Schedule* schedule : piped::schedules)
    if (options.schedule.empty() || options.schedule == schedule->name) {
      ways.push_back(std::make_unique<Way<World, Device>>(graph, *schedule, world, micro_batches, options.rounds));
      names.push_back(std::string(schedule->name));
    }
  std::vector<std::vector<Step>> steps(ways.size());
  std::vector<double> transfers;
  for (int round = 0; round < options.rounds; ++round) {
    transfers.push_back(transfer(world));
    for (std::size_t i = 0; i < ways.size(); ++i) {
      steps[i].push_back(ways[i]->step(transfers.back()));
      if (ways[i]->result.loss != ways[0]->result.loss)
        throw Failure("bubble: two schedules give other losses; one of them is wrong");
    }
  }
  if (world.rank() != 0) return;
  const std::string where = std::to_string(world.size()) + " stages, m = " + std::to_string(micro_batches) + ", " +
                            (options.mpi ? "MPI, " : "threads, ") +
                            (options.uneven   ? "uneven, "
                             : options.asleep ? "asleep, "
                                              : "");
  for (std::size_t i = 0; i < ways.size(); ++i) {
    std::vector<Step>& all = steps[i];
    std::sort(all.begin(), all.end(), [](const Step& a, const Step& b) { return a.disturbed < b.disturbed; });
    while (all.size() > 3 && all.back().disturbed > 0.02) all.pop_back();
    const auto say = [&](const char* what, const char* unit, auto f) {
      row("bubble", where + names[i] + ": " + what, of(all, f), unit);
    };
    say("bubble", "% of the ranks' time", [](const Step& s) { return 100 * s.bubble; });
    say("bubble, predicted", "% of the ranks' time", [](const Step& s) { return 100 * s.predicted_bubble; });
    say("tasks / predicted", "of the time", [](const Step& s) { return s.tasks / s.predicted_tasks; });
    say("tasks / each as it was", "of the time", [](const Step& s) { return s.tasks / s.replayed; });
    if (all.back().disturbed > 0.02)
      row("bubble", where + names[i] + ": ranks waited for cores", 100 * all.back().disturbed, "% of the time, added");
  }
}

template <int micro_batches, Communicator World>
void measure(World& world, const Options& options) {
  if (options.uneven)
    measure<micro_batches, Asleep<true>>(world, options);
  else if (options.asleep)
    measure<micro_batches, Asleep<false>>(world, options);
  else
    measure<micro_batches, Cpu>(world, options);
}
template <Communicator World>
void measure_all(World& world, const Options& options) {
  measure<4>(world, options);
  measure<8>(world, options);
  measure<16>(world, options);
}

int usage() {
  return std::fprintf(
             stderr,
             "bubble: say bubble [--rounds N] [--stages 2|4] [--micro-batches 4|8|16] [--schedule NAME] [--asleep | --uneven] [--mpi]\n"),
         2;
}

}  // namespace bench

int main(int argc, char** argv) {
  bench::Options options;
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (std::strcmp(argv[i], "--mpi") == 0)
      options.mpi = true;
    else if (std::strcmp(argv[i], "--asleep") == 0)
      options.asleep = true;
    else if (std::strcmp(argv[i], "--uneven") == 0)
      options.uneven = true;
    else if (more && std::strcmp(argv[i], "--rounds") == 0)
      options.rounds = std::atoi(argv[++i]);
    else if (more && std::strcmp(argv[i], "--stages") == 0)
      options.stages = std::atoi(argv[++i]);
    else if (more && std::strcmp(argv[i], "--micro-batches") == 0)
      options.micro_batches = std::atoi(argv[++i]);
    else if (more && std::strcmp(argv[i], "--schedule") == 0)
      options.schedule = argv[++i];
    else
      return bench::usage();
  }
  if (!options.mpi) {
    for (const int stages : {2, 4})
      if (options.stages == 0 || options.stages == stages)
        parallel::run_threads(stages, [&](parallel::Threads& world) { bench::measure_all(world, options); });
    return 0;
  }
#if defined(WITH_MPI)
  parallel::run_mpi([&](parallel::Mpi& world) { bench::measure_all(world, options); });
  return 0;
#else
  return std::fprintf(stderr, "bubble: this build has no MPI\n"), 69;
#endif
}
