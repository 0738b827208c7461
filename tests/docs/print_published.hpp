// Printed by print_published.cpp, which is compiled beside print_tables.cpp as both take long.
#pragma once
void print_published();
