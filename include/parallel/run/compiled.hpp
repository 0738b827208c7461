// What of the templates of a run the library has compiled, so that a program's own units need not: ranks as threads on the CPU.
#pragma once
#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/run/trainer.hpp>

namespace parallel {

extern template class ParametersIn<HostMemory>;
extern template class RankMemory<Cpu>;
extern template class Executor<Threads, Cpu>;
extern template class Trainer<Threads, Cpu>;

}  // namespace parallel
