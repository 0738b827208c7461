// A small run with a fault: some steps of collectives, and one rank that does something else at one place.
// tests/faults.py drives it.
//
//   faulty threads|mpi FAULT RANK PLACE DEADLINE      PLACE: start, groups, step, end; DEADLINE in milliseconds
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <parallel/communicator/threads.hpp>
#if defined(WITH_MPI)
#include <parallel/communicator/mpi.hpp>
#endif
#include <parallel/run/failure.hpp>

using namespace parallel;
using namespace parallel::internals;

namespace {

std::string fault, where;
int culprit = 0;

/// What the culprit does at its place. Says so first, so that the time until the end can be taken.
void at(const char* place, int rank) {
  if (rank != culprit || where != place) return;
  std::fprintf(stderr, "[fault] %s of rank %d at %s\n", fault.c_str(), rank, place);
  if (fault == "throw") throw std::runtime_error("the reader failed");
  if (fault == "throw_int") throw 42;
  if (fault == "bad_alloc") throw std::bad_alloc();
  if (fault == "exit_0") std::exit(0);
  if (fault == "exit_3") std::exit(3);
  if (fault == "kill") raise(SIGKILL);
  if (fault == "stop") raise(SIGSTOP);
  if (fault == "sleep") std::this_thread::sleep_for(std::chrono::minutes(2));
  if (fault == "spin")
    while (true) asm volatile("");
}
/// Whether the culprit is to return in silence.
bool leaves(const char* place, int rank) { return fault == "leave" && rank == culprit && where == place; }

std::vector<float> load() { return std::vector<float>(100, 1.0F); }

template <class World>
void work(World& world) {
  const int rank = world.rank(), n = world.size();
  at("groups", rank);
  if (leaves("groups", rank)) return;
  std::vector<float> corpus(100), mine(100),
      sum(100);  // before the groups, so that they are there until nobody touches them
  World all = world.split(0, rank), pair = world.split(rank / 2, rank);
  long_phase(world, "loading the corpus", std::chrono::minutes(10), [&] {
    if (world.rank() == 0) corpus = load();
  });
  exchange(world,
           {.kind = Collective::broadcast, .in = corpus.data(), .out = mine.data(), .count = 100, .label = "corpus"});
  for (int step = 0; step < 8; ++step) {
    const Exchange gradient{
        .kind = Collective::all_reduce, .in = mine.data(), .out = sum.data(), .count = 100, .label = "gradient"};
    const Ticket ticket = all.start(gradient);
    if (step == 4) at("step", rank);
    all.wait(ticket);
    if (step == 4 && leaves("step", rank)) return;
    exchange(
        pair,
        {.kind = Collective::broadcast, .in = mine.data(), .out = sum.data(), .count = 100, .label = "activation"});
    world.barrier();
    if (sum[7] != 1.0F) throw Failure("rank " + std::to_string(rank) + " of " + std::to_string(n) + " has a wrong sum");
  }
  at("end", rank);
}

}  // namespace

int main(int argc, char** argv) {
  return guarded("faulty", [&] {
    if (argc != 6) throw Failure("say faulty threads|mpi FAULT RANK PLACE DEADLINE", exit_code::usage);
    fault = argv[2];
    culprit = std::atoi(argv[3]);
    where = argv[4];
    const std::chrono::milliseconds deadline(std::atoi(argv[5]));
    if (std::string(argv[1]) == "threads") {
      run_threads(
          4, [](Threads& world) { work(world); }, deadline);
      return exit_code::done;
    }
#if defined(WITH_MPI)
    const char* rank =
        std::getenv("OMPI_COMM_WORLD_RANK") != nullptr ? std::getenv("OMPI_COMM_WORLD_RANK") : std::getenv("PMI_RANK");
    at("start", rank != nullptr ? std::atoi(rank) : 0);
    run_mpi([](Mpi& world) { work(world); }, {.deadline = deadline});
    return exit_code::done;
#else
    throw Failure("this build has no MPI", exit_code::unavailable);
#endif
  });
}
