// The CPU's kernels, compiled once for all tests.
#include <parallel/device/cpu.hpp>

template struct parallel::cpu::Table<>;
