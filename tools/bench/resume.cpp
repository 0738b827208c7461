// A training of GPT-2 124M that is kept on disk and gone on with: from the start of a process to behind its first step;
// and stopped: from a signal to the end of the process, with a checkpoint on the disk.
//
//   resume [--rounds N]
//
// Two ranks are threads, as data=2. The file, of parameters and AdamW's state, is in the page cache: 1.5 GB, in a folder
// of TMPDIR. Each round is a process of its own, started by this one.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/run/checkpoint.hpp>
#include <parallel/run/stop_signals.hpp>
#include <parallel/run/trainer.hpp>

#include "gpt_model.hpp"
#include "measure.hpp"

namespace bench {

const Mesh mesh{data = 2};
constexpr int phases = 4;
/// Seconds since the process was started: until ranks begin, have memory, have resumed, have done a step.
struct Times {
  double until[phases]{};
  bool resumed = false;
};

/// `told(times)`: behind the first step. With signals it steps until one comes.
template <class Told>
void go_on(const std::string& folder, Clock::time_point started, const StopSignals* signals, Told told) {
  Times times;
  const OwnedPlan plan = derive<GptStep<SizeA>>(mesh);
  run_threads(mesh.ranks(), [&](Threads& world) {
    const auto note = [&](int phase) {
      world.barrier();
      if (world.rank() == 0) times.until[phase] = std::chrono::duration<double>(Clock::now() - started).count();
    };
    note(0);
    Parameters parameters(plan, world.rank(), 1);
    Trainer<Threads, Cpu> step(plan, world, parameters, {.learning_rate = 1e-4}, 1);
    Checkpoints checkpoints(world, folder, {.newest = 1});
    note(1);
    std::int64_t steps = checkpoints.resume(step).step;
    if (world.rank() == 0) times.resumed = steps > 0;
    note(2);
    const std::vector<int> tokens(SizeA::batch * SizeA::context, 7);
    step(tokens, tokens);
    ++steps;
    note(3);
    if (world.rank() == 0) told(times);
    for (; signals != nullptr && !signals->asked(world); ++steps) step(tokens, tokens);
    checkpoints.save(step, steps);
  });
}

struct Round {
  Times times{};
  double leaving = 0;
};
/// In a process of its own, which is stopped behind its first step.
Round other_process(const char* program, const std::string& folder) {
  int ends[2];
  if (::pipe(ends) != 0) throw Failure("resume: there is no pipe", exit_code::io);
  const std::string started = std::to_string(Clock::now().time_since_epoch().count());
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], 3);
    ::execl(program, program, "--go-on", folder.c_str(), started.c_str(), nullptr);
    std::_Exit(exit_code::unavailable);
  }
  ::close(ends[1]);
  Round round;
  const bool whole = ::read(ends[0], &round.times, sizeof round.times) == sizeof round.times;
  int status = 0;
  round.leaving = seconds([&] {
    ::kill(child, SIGTERM);
    ::waitpid(child, &status, 0);
  });
  ::close(ends[0]);
  if (!whole || status != 0 || !round.times.resumed) throw Failure("resume: a process did not go on");
  return round;
}

void measure(const char* program, int rounds) {
  std::string folder = (std::filesystem::temp_directory_path() / "resume-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) throw Failure("resume: no folder can be made", exit_code::io);
  go_on(folder, Clock::now(), nullptr, [](const Times&) {});
  std::vector<double> all, memory, reading, stepping, leaving;
  for (int i = 0; i < rounds; ++i) {
    const Round round = other_process(program, folder);
    const Times& t = round.times;
    leaving.push_back(round.leaving);
    all.push_back(t.until[3]);
    memory.push_back(t.until[1]);
    reading.push_back(t.until[2] - t.until[1]);
    stepping.push_back(t.until[3] - t.until[2]);
  }
  std::filesystem::remove_all(folder);
  const std::string of = "A, " + text(mesh) + ": ";
  row("resume", of + "from the process's start to behind the first step", spread(all), "s");
  row("resume", of + "of it until plan, memory and first values are there", spread(memory), "s");
  row("resume", of + "of it to check and to read 1.5 GB", spread(reading), "s");
  row("resume", of + "of it the step", spread(stepping), "s");
  row("resume", of + "from SIGTERM to the end, a checkpoint on the disk", spread(leaving), "s");
}

}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  return guarded("resume", [&] {
    if (argc == 4 && std::strcmp(argv[1], "--go-on") == 0) {
      const StopSignals signals;
      go_on(argv[2], Clock::time_point(Clock::duration(std::strtoll(argv[3], nullptr, 10))), &signals,
            [](const Times& times) {
              if (::write(3, &times, sizeof times) != sizeof times) throw Failure("resume: nobody listens");
            });
      return exit_code::done;
    }
    int rounds = 7;
    if (argc == 3 && std::strcmp(argv[1], "--rounds") == 0)
      rounds = std::atoi(argv[2]);
    else if (argc != 1)
      throw Failure("unknown argument '" + std::string(argv[1]) + "'; say resume [--rounds N]", exit_code::usage);
    measure(argv[0], rounds);
    return exit_code::done;
  });
}
