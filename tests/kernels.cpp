// The CPU's kernels, compiled once for all tests.
#include <parallel/device/cpu.hpp>

template struct parallel::cpu::Table<float>;
template struct parallel::cpu::Table<double>;
template struct parallel::cpu::Table<int>;
template struct parallel::cpu::Table<parallel::cpu::Scalars>;
