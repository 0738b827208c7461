// Prints a hash of the graph of every program. one_graph.py compares what compilers make of it.
#include <cstdio>

#include "every_program.hpp"

int main() {
  every::program([]<class Program>(const char* name) {
    std::printf("%016llx %s\n", static_cast<unsigned long long>(parallel::internals::object::program<Program>.words[4]),
                name);
  });
}
