// Training over MPI on the CPU.
#include <parallel/run/compiled_ahead.hpp>

template class parallel::Executor<parallel::Mpi, parallel::Cpu>;
template class parallel::Trainer<parallel::Mpi, parallel::Cpu>;
