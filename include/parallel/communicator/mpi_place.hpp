// A process's place in a group under MPI: how it waits, and what it says when the other ranks do not come.
#pragma once
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1  // the C++ bindings that MPI has withdrawn
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <boost/mpi/communicator.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <parallel/communicator/communicator.hpp>
#include <thread>

namespace parallel {

struct MpiOptions {
  std::chrono::milliseconds deadline = default_deadline;
  /// Let the MPI library reduce: the order of the terms, and with it the last bits, are the library's.
  bool library_reduction = false;
  /// What `run_mpi` expects; 0: any number.
  int ranks = 0;
};

namespace processes {

inline MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return MPI_FLOAT;
    case DType::f64:
      return MPI_DOUBLE;
    case DType::bf16:
      return MPI_UINT16_T;
    default:
      return MPI_INT32_T;
  }
}

struct Place {
  boost::mpi::communicator communicator;
  std::shared_ptr<MpiOptions> options;

  int rank() const { return communicator.rank(); }
  int size() const { return communicator.size(); }

  /// Tests until the request is complete, and returns MPI's error code; ends the job at the deadline.
  int test(MPI_Request& request, const Exchange* e, const char* label = "", MPI_Status* status = MPI_STATUS_IGNORE) const {
    std::chrono::steady_clock::time_point since{};
    for (int tests = 1;; ++tests) {
      int done = 0;
      const int code = MPI_Test(&request, &done, status);
      if (done != 0 || code != MPI_SUCCESS) return code;
      if (tests % 16 != 0) continue;
      std::this_thread::yield();
      if (tests % 64 != 0) continue;
      const auto time = std::chrono::steady_clock::now();
      if (since == std::chrono::steady_clock::time_point{}) since = time;
      if (time - since >= options->deadline) late(e != nullptr ? text(*e) : label);
    }
  }

  /// Throws where MPI finds an error. Without a look at it a message that was cut would pass: Boost.MPI's communicators return errors.
  void complete(MPI_Request& request, const Exchange* e, const char* label = "") const {
    if (const int code = test(request, e, label); code != MPI_SUCCESS) fail(code, e != nullptr ? text(*e) : label);
  }
  [[noreturn]] static void fail(int code, const std::string& what) {
    int kind = MPI_SUCCESS, length = 0;
    char words[MPI_MAX_ERROR_STRING]{};
    MPI_Error_class(code, &kind);
    MPI_Error_string(code, words, &length);
    const std::string sentence = "parallel: " + what + " failed: " + words;
    if (kind == MPI_ERR_TRUNCATE) throw Mismatch(sentence + "; let all ranks call the same in the same order");
    throw Failure(sentence);
  }

  std::string who(int r) const { return "rank " + std::to_string(r) + " of " + std::to_string(size()); }

 private:
  [[noreturn]] void late(const std::string& what) const {
    int world = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    std::string words = "parallel::wait: " + who(rank());
    if (world != rank()) words += " (rank " + std::to_string(world) + " of the job)";
    words +=
        " waited " + text(options->deadline) + " in " + what + "; another rank hangs, has ended or calls something else; the job ends\n";
    std::fputs(words.c_str(), stderr);
    MPI_Abort(MPI_COMM_WORLD, 75);
    std::_Exit(75);
  }
};

}  // namespace processes
}  // namespace parallel
