// How much of its communication a step hides behind computation: the plan as it is scheduled, each collective started
// early and waited for late, by turns with the same plan in which each is waited for right where it starts.
//
//   overlap [--rounds N]                  ranks are threads
//   mpirun -n 2 overlap --mpi [...]       ranks are processes
//
// A collective keeps a rank while it starts it, and from when the last rank waits for it until it is done: waiting for
// a rank that comes later is no communication, and stands in a row of its own. Rounds in which other programs had a
// rank's core for a fiftieth of the time are left out where three others are there. That both give the same bits is
// checked. Of tensor parallelism all collectives count, of ZeRO's third stage the gathers of parameters, which the step
// starts a layer ahead, of attention around a ring all, of which the rotations go on under the current product.
#include <parallel/communicator/threads.hpp>
#if defined(WITH_MPI)
#include <parallel/communicator/mpi.hpp>
#endif
#include <cstring>
#include <memory>

#include <parallel/device/cpu.hpp>
#include <parallel/run/trainer.hpp>

#include "context_model.hpp"
#include "measure.hpp"
#include "zero_model.hpp"

namespace bench {

/// What a rank noted of its collectives, in milliseconds; clocks of one machine agree.
struct Noted {
  bool gathers_alone = false;  ///< others are not noted
  double starts = 0;           ///< spent in start()
  std::vector<double> waits{}, ends{};

  bool counts(const Exchange& e) const { return !gathers_alone || e.kind == Collective::all_gather; }
  static double now() { return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count(); }
};

/// A communicator that notes when its exchanges keep the rank.
template <Communicator World>
class Watched {
 public:
  Watched(World world, std::shared_ptr<Noted> noted) : world_(std::move(world)), noted_(std::move(noted)) {}
  int rank() const { return world_.rank(); }
  int size() const { return world_.size(); }
  Watched split(int color, int key) { return Watched(world_.split(color, key), noted_); }
  Ticket start(const Exchange& e) {
    const double begin = Noted::now();
    const Ticket ticket = world_.start(e);
    counts_[ticket.number % max_outstanding] = noted_->counts(e);
    if (noted_->counts(e)) noted_->starts += Noted::now() - begin;
    return ticket;
  }
  void wait(Ticket t) {
    const double begin = Noted::now();
    world_.wait(t);
    if (!counts_[t.number % max_outstanding]) return;
    noted_->waits.push_back(begin);
    noted_->ends.push_back(Noted::now());
  }
  void barrier() { world_.barrier(); }
  void aside(const Exchange& e) { world_.aside(e); }
  void record(std::vector<Record>* records) { world_.record(records); }
  void deadline(std::chrono::milliseconds limit) { world_.deadline(limit); }
  LongPhase within(const LongPhase& now) { return world_.within(now); }

 private:
  World world_;
  std::shared_ptr<Noted> noted_;
  bool counts_[max_outstanding]{};
};

/// Each collective is waited for right behind its start. A value lives at least from its start to its wait, so the
/// places of all values still serve.
std::vector<Event> without_overlap(const Plan& plan) {
  std::vector<Event> events;
  const auto at_once = [&](int node) {
    events.push_back({EventKind::start, node});
    events.push_back({EventKind::wait, node});
  };
  for (const Event& e : plan.events) {
    if (e.kind == EventKind::wait) {  // what was started an iteration ahead starts where it is needed
      if (plan.events[e.partner].ahead) at_once(e.node);
    } else if (e.kind != EventKind::start) {
      events.push_back(e);
    } else if (!e.ahead) {
      at_once(e.node);
    }
  }
  find_partners(plan.graph, events);
  return events;
}

/// Milliseconds of one step on this rank. `disturbed`: the share in which other programs had the ranks' cores, added
/// over ranks.
struct Step {
  double whole = 0, communication = 0, others = 0, disturbed = 0;
};

/// One way to run a plan.
template <Communicator World>
class Way {
 public:
  template <class Words, class Give>
  Way(const Plan& plan, World& world, bool gathers_alone, const Words& words, Give give)
      : world_(world),
        noted_(std::make_shared<Noted>(Noted{gathers_alone})),
        watched_(world.split(0, world.rank()), noted_),
        parameters_(plan, world.rank(), 1),
        trainer_(plan, watched_, parameters_, words, 1) {
    give(plan, trainer_, parameters_, world.rank());
  }
  Step step() {
    *noted_ = {noted_->gathers_alone};
    world_.barrier();
    const double lost = waited_for_a_core(), whole = 1e3 * seconds([&] {
                                                       result = trainer_.step(0);
                                                       world_.barrier();
                                                     });
    std::vector<double> own = noted_->waits;
    own.push_back(1e3 * (waited_for_a_core() - lost) / whole);
    const std::size_t n = own.size();
    std::vector<double> all(2 * n);
    Exchange e;
    e.kind = Collective::all_gather;
    e.in = own.data();
    e.out = all.data();
    e.count = static_cast<std::int64_t>(2 * n);
    e.dtype = DType::f64;
    exchange(world_, e);
    Step step{whole, noted_->starts, 0, all[n - 1] + all[2 * n - 1]};
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const double last = std::min(std::max(all[i], all[n + i]), noted_->ends[i]);
      step.communication += noted_->ends[i] - last;
      step.others += last - noted_->waits[i];
    }
    return step;
  }
  StepResult result{};

 private:
  World& world_;
  std::shared_ptr<Noted> noted_;
  Watched<World> watched_;
  Parameters parameters_;
  Trainer<Watched<World>, Cpu> trainer_;
};

/// Two steps side by side.
struct Round {
  Step scheduled, direct;
  double disturbed() const { return std::max(scheduled.disturbed, direct.disturbed); }
};
template <class F>
std::vector<double> of(const std::vector<Round>& rounds, F f) {
  std::vector<double> values;
  for (const Round& round : rounds) values.push_back(f(round));
  return values;
}

template <class Words, class Give, Communicator World>
void measure(World& world, const OwnedPlan& plan, const std::string& what, bool gathers_alone, const Words& words,
             Give give, int count) {
  const std::vector<Event> events = without_overlap(plan);
  const Plan changed(plan->graph, plan->mesh, events, plan->storage, plan->packing, plan->memory);
  Way<World> scheduled(plan, world, gathers_alone, words, give), direct(changed, world, gathers_alone, words, give);
  std::vector<Round> rounds;
  for (int i = -1; i < count; ++i) {
    const Step first = scheduled.step(), second = direct.step();
    if (i >= 0) rounds.push_back({first, second});
    if (direct.result.loss != scheduled.result.loss || direct.result.gradient_norm != scheduled.result.gradient_norm)
      throw Failure("overlap: another order of the waits gives other numbers; one of them is wrong");
  }
  if (world.rank() != 0) return;
  std::sort(rounds.begin(), rounds.end(), [](const Round& a, const Round& b) { return a.disturbed() < b.disturbed(); });
  while (rounds.size() > 3 && rounds.back().disturbed() > 0.02) rounds.pop_back();

  const auto say = [&](const std::string& which, const std::string& unit, auto f) {
    row("overlap", what + which, spread(of(rounds, f)), unit.c_str());
  };
  say("a step as scheduled", "ms", [](const Round& r) { return r.scheduled.whole; });
  say("as scheduled / waits behind starts", "of the time",
      [](const Round& r) { return r.scheduled.whole / r.direct.whole; });
  say("waiting for the other rank", "ms", [](const Round& r) { return r.scheduled.others; });
  const std::string of_what = gathers_alone ? "gathers" : "communication";
  say(of_what + ", waits behind starts", "ms", [](const Round& r) { return r.direct.communication; });
  say(of_what + ", as scheduled", "ms", [](const Round& r) { return r.scheduled.communication; });
  say("exposed", "% of the " + of_what,
      [](const Round& r) { return 100 * r.scheduled.communication / r.direct.communication; });
  if (rounds.back().disturbed() > 0.02)
    row("overlap", what + "ranks waited for cores", 100 * rounds.back().disturbed(), "% of the time, added");
}

template <Communicator World>
void measure_all(World& world, const char* over, int rounds) {
  const auto give = [](const Plan& plan, auto& trainer, Parameters& parameters, int rank) {
    give_numbers(plan, trainer, parameters, rank);
  };
  const auto layers = [&]<int count, bool sequence>() {
    measure(world, derive<LayerStep<count, sequence>>(Mesh{tensor = 2}),
            std::to_string(count) + (count > 1 ? " layers" : " layer") + (sequence ? ", sequence" : "") + ", " + over +
                ": ",
            false, KeepGradients::Hyperparameters{.clip_norm = 1}, give, rounds);
  };
  layers.template operator()<1, false>();
  layers.template operator()<1, true>();
  layers.template operator()<4, false>();
  layers.template operator()<4, true>();
  const std::string stored = std::string("4 layers, stage 3 of ZeRO, ") + over + ": ";
  measure(world, derive<ZeroStep<Stored<data>>>(Mesh{data = 2}), stored, true, zero_words, give, rounds);
  const auto ring = [&]<int length>() {
    measure(
        world, derive<attending::Step<Context::ring, true, length, Order::zigzag>>(Mesh{sequence = 2}),
        "ring of " + std::to_string(length) + " positions, causal, zigzag, " + over + ": ", false,
        Sgd::Hyperparameters{}, [](const Plan&, auto& trainer, Parameters&, int) { attending::give_numbers(trainer); },
        rounds);
  };
  ring.template operator()<1024>();
  ring.template operator()<4096>();
}

}  // namespace bench

int main(int argc, char** argv) {
  int rounds = 7;
  bool mpi = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--mpi") == 0)
      mpi = true;
    else if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
      rounds = std::atoi(argv[++i]);
    else
      return std::fprintf(stderr, "overlap: unknown argument '%s'; say overlap [--mpi] [--rounds N]\n", argv[i]), 2;
  }
  if (!mpi) {
    parallel::run_threads(2, [&](parallel::Threads& world) { bench::measure_all(world, "threads", rounds); });
    return 0;
  }
#if defined(WITH_MPI)
  parallel::run_mpi([&](parallel::Mpi& world) { bench::measure_all(world, "MPI", rounds); }, {.ranks = 2});
  return 0;
#else
  return std::fprintf(stderr, "overlap: this build has no MPI\n"), 69;
#endif
}
