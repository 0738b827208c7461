// Ranks as threads, and training by them on the CPU.
#include <parallel/communicator/threads.ipp>
#include <parallel/run/compiled_ahead.hpp>

template class parallel::ParametersIn<parallel::HostMemory>;
template class parallel::internals::RankMemory<parallel::Cpu>;
template class parallel::Executor<parallel::Threads, parallel::Cpu>;
template class parallel::Trainer<parallel::Threads, parallel::Cpu>;
