// What computes: the CPU's kernels, and sums of ranks' terms. All that is compiled for the instructions of a machine. As
// a shared library it refers to nothing outside, so it has of operations what their descriptions point to.
#define PARALLEL_AHEAD
#include <parallel/communicator/ordered_sum.ipp>
#include <parallel/device/cpu/kernels.hpp>
#include <parallel/device/draw.ipp>

template struct parallel::internals::cpu::Table<float>;
template struct parallel::internals::cpu::Table<double>;
template struct parallel::internals::cpu::Table<int>;
template struct parallel::internals::cpu::Table<parallel::internals::cpu::Scalars>;
