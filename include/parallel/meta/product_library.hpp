// Whose matrix products the CPU's kernels take: Eigen's, unless a build names another library in a word.
#pragma once

#if defined(PARALLEL_OPENBLAS) + defined(PARALLEL_ONEDNN) + defined(PARALLEL_MKL) > 1
#error "parallel: matrix products are of one library; say one of PARALLEL_OPENBLAS, PARALLEL_ONEDNN and PARALLEL_MKL"
#endif

namespace parallel::internals {
#if defined(PARALLEL_OPENBLAS)
constexpr char product_library[] = "OpenBLAS";
#elif defined(PARALLEL_ONEDNN)
constexpr char product_library[] = "oneDNN";
#elif defined(PARALLEL_MKL)
constexpr char product_library[] = "MKL";
#else
constexpr char product_library[] = "Eigen";
#endif
}  // namespace parallel::internals
