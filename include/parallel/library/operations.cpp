// What the descriptions of operations point to: shapes, tables, gradients, what each becomes.
#define PARALLEL_AHEAD [[gnu::used]]
#include <parallel/parallel.hpp>

#ifdef __clang__
const char parallel::internals::library_is_compiled_by_clang = 0;
#else
const char parallel::internals::library_is_compiled_by_gcc = 0;
#endif
