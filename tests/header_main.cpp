// All headers in one program: nothing is defined twice (header_units.py).
int main() {}
