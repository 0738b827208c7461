#include <parallel/parallel.hpp>

int main() { return 0; }
