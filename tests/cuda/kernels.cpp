// The GPU's kernels, compiled once for all tests.
#include <parallel/device/cuda.hpp>

template struct parallel::cuda::Table<int>;
template struct parallel::cuda::Table<float>;
template struct parallel::cuda::Table<double>;
template struct parallel::cuda::Table<parallel::bfloat16>;
template struct parallel::cuda::Table<parallel::cuda::Scalars>;
