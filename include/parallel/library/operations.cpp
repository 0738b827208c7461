// What the descriptions of operations point to: shapes, tables, gradients, what each becomes.
#define PARALLEL_AHEAD [[gnu::used]]
#include <parallel/parallel.hpp>
