// A process's place in a group under MPI: how it waits, and what it says when the other ranks do not come.
#pragma once
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1  // the C++ bindings that MPI has withdrawn
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include <boost/mpi/communicator.hpp>
#include <boost/mpi/environment.hpp>
#include <boost/mpi/exception.hpp>
#include <mpi.h>

#include <parallel/communicator/communicator.hpp>
#include <parallel/communicator/history.hpp>
#include <parallel/communicator/rooms.hpp>
#include <parallel/communicator/unfinished.hpp>
#include <parallel/communicator/watch.hpp>

namespace parallel::internals {

struct MpiOptions {
  std::chrono::milliseconds deadline = default_deadline;
  /// Let the MPI library reduce: the order of the terms, and with it the last bits, are the library's. Not of bf16 and
  /// f16, which MPI has not.
  bool library_reduction = false;
  /// Ranks of one machine exchange through memory that they share; false: by calls of MPI, as between machines.
  bool shared_memory = true;
  /// What `run_mpi` expects; 0: any number.
  int ranks = 0;
};

/// A call of MPI failed.
struct MpiFailed : Failure {
  explicit MpiFailed(const std::string& sentence) : Failure(sentence, parallel::exit_code::peer) {}
};

namespace processes {

inline MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return boost::mpi::get_mpi_datatype<float>();
    case DType::f64: return boost::mpi::get_mpi_datatype<double>();
    case DType::bf16:
    case DType::f16: return boost::mpi::get_mpi_datatype<std::uint16_t>();
    default: return boost::mpi::get_mpi_datatype<std::int32_t>();
  }
}

/// What all groups of this process share.
struct Job {
  explicit Job(const MpiOptions& o) : options(o) {}

  MpiOptions options;
  LongPhase phase{};
  History history{};
  Rooms rooms{};
  int messages = 0;  ///< that were started and not waited for

  std::chrono::milliseconds patience() const { return parallel::internals::patience(options.deadline, phase); }
  /// Which rank of the job this is.
  static int rank() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
  }
  static int ranks() {
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks;
  }
  static std::string who() { return rank_text(rank(), ranks()); }
  /// Ends the job. MPI tells the launcher, where it runs.
  [[noreturn]] static void end(int code) {
    Unfinished::decided();
    flush_what_was_printed();
    using boost::mpi::environment;
    if (environment::initialized() && !environment::finalized()) environment::abort(code);
    std::_Exit(code);
  }
  /// Says that `waiting` waited too long in `what`, and ends the job, a little later, so that others who wait as long
  /// can speak, too.
  [[noreturn]] void late(const std::string& waiting, std::chrono::milliseconds limit, const std::string& what) const {
    std::string words = "parallel::wait: " + waiting + " waited " + text(limit) + " in " + what;
    if (phase.name != nullptr) words += std::string(" (in the phase '") + phase.name + "')";
    words += "; another rank hangs, has ended or calls something else; the job ends\n" + history.text(waiting);
    std::fputs(words.c_str(), stderr);
    // One after the other, where they can: a mpirun that is ending a job waits a second for a rank that ends by itself
    // meanwhile.
    std::this_thread::sleep_for(std::chrono::milliseconds(60 + 80 * std::min(rank(), 4)));
    // Open MPI's mpirun needs only that a process ends with a code. Told by MPI_Abort, it crashed itself in one of five
    // jobs with a stopped rank on a busy machine.
    flush_what_was_printed();
    if (std::getenv("OMPI_COMM_WORLD_RANK") != nullptr) std::_Exit(exit_code::peer);
    end(exit_code::peer);
  }
};

/// Throws what MPI says of a call that failed. Communicators return errors: without a look at them what has not begun,
/// or was cut, would pass.
[[noreturn]] inline void fail(int code, const std::string& what) {
  const std::string call = "parallel: " + what + " failed";
  const boost::mpi::exception failed(call.c_str(), code);
  if (failed.error_class() == MPI_ERR_TRUNCATE)
    throw Mismatch(std::string(failed.what()) + "; let all ranks call the same in the same order");
  throw MpiFailed(failed.what());
}
inline void need(int code, const char* what) {
  if (code != MPI_SUCCESS) fail(code, what);
}
/// What a call returned that starts an exchange.
inline void started(int code, const Exchange& e) {
  if (code != MPI_SUCCESS) fail(code, text(e));
}

/// A communicator that make(&communicator) makes together with other ranks. MPI has no call for it that could be asked
/// to give up: a thread of its own looks at the clock.
template <class Make>
boost::mpi::communicator made(const std::shared_ptr<Job>& job, const char* what, Make make) {
  MPI_Comm group = MPI_COMM_NULL;
  const Watch watch(job->patience(),
                    [job, what, who = Job::who(), limit = job->patience()] { job->late(who, limit, what); });
  need(make(&group), what);
  need(MPI_Comm_set_errhandler(group, MPI_ERRORS_RETURN), what);
  return {group, boost::mpi::comm_take_ownership};
}
inline boost::mpi::communicator duplicate(const std::shared_ptr<Job>& job, MPI_Comm of) {
  return made(job, "the copy of a group", [of](MPI_Comm* group) { return MPI_Comm_dup(of, group); });
}

struct Place {
  boost::mpi::communicator communicator;
  std::shared_ptr<Job> job;
  int own = asked(MPI_Comm_rank, communicator), count = asked(MPI_Comm_size, communicator);

  int rank() const { return own; }
  int size() const { return count; }

  /// Calls done(moved) until it is true; ends the job at the deadline, counted from when something has moved.
  template <class Done>
  void until(Done done, const Exchange* e, const char* label) const {
    std::chrono::steady_clock::time_point since{};
    bool moved = false;
    for (int tries = 1; !done(moved); ++tries) {
      if (tries % 16 != 0) continue;
      std::this_thread::yield();  // after which, on a busy machine, much time may have gone
      const auto time = std::chrono::steady_clock::now();
      if (since == std::chrono::steady_clock::time_point{} || std::exchange(moved, false)) since = time;
      if (time - since < job->patience()) continue;
      if (done(moved)) return;  // all ranks may have been stopped for a while
      if (moved) continue;
      job->late(who_in_job(), job->patience(), e != nullptr ? text(*e) : label);
    }
  }
  /// Tests until the request is complete, and returns MPI's error code; ends the job at the deadline.
  int test(MPI_Request& request, const Exchange* e, const char* label = "",
           MPI_Status* status = MPI_STATUS_IGNORE) const {
    int code = MPI_SUCCESS;
    const auto tested = [&](bool&) {
      int done = 0;
      code = MPI_Test(&request, &done, status);
      return done != 0 || code != MPI_SUCCESS;
    };
    until(tested, e, label);
    return code;
  }
  /// Throws where MPI finds an error.
  void complete(MPI_Request& request, const Exchange* e, const char* label = "") const {
    if (const int code = test(request, e, label); code != MPI_SUCCESS) fail(code, e != nullptr ? text(*e) : label);
  }

  std::string who(int r) const { return rank_text(r, size()); }

 private:
  static int asked(int (*call)(MPI_Comm, int*), MPI_Comm group) {
    int answer = 0;
    need(call(group, &answer), "the size of a group");
    return answer;
  }
  std::string who_in_job() const {
    const int world = Job::rank();
    return who(rank()) + (world != rank() ? " (rank " + std::to_string(world) + " of the job)" : "");
  }
};

}  // namespace processes
}  // namespace parallel::internals

namespace parallel {
using internals::MpiFailed;
using internals::MpiOptions;
}  // namespace parallel
