#pragma once

/// The blocks of docs/exercises.md.
void print_exercises();
