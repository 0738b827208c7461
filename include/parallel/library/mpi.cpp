// Training over MPI on the CPU.
#include <parallel/run/compiled.hpp>

template class parallel::Executor<parallel::Mpi, parallel::Cpu>;
template class parallel::Trainer<parallel::Mpi, parallel::Cpu>;
