// What of the templates of a run the library has compiled, so that a program's own units need not: ranks as threads on
// the CPU, and over MPI where the build brings that too (PARALLEL_MPI_LIBRARY).
#pragma once
#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/run/trainer.hpp>
#ifdef PARALLEL_MPI_LIBRARY
#include <parallel/communicator/mpi.hpp>
#endif

namespace parallel::internals {

extern template class ParametersIn<HostMemory>;
extern template class RankMemory<Cpu>;
extern template class Executor<Threads, Cpu>;
extern template class Trainer<Threads, Cpu>;
#ifdef PARALLEL_MPI_LIBRARY
extern template class Executor<Mpi, Cpu>;
extern template class Trainer<Mpi, Cpu>;
#endif

}  // namespace parallel::internals
