// What computes: the CPU's kernels, and sums of ranks' terms. All that is compiled for the instructions of a machine.
#include <parallel/communicator/ordered_sum.ipp>
#include <parallel/device/cpu/kernels.hpp>

template struct parallel::internals::cpu::Table<float>;
template struct parallel::internals::cpu::Table<double>;
template struct parallel::internals::cpu::Table<int>;
template struct parallel::internals::cpu::Table<parallel::internals::cpu::Scalars>;
