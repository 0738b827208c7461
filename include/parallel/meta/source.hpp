// Where in the user's program something was written.
#pragma once

namespace parallel {

struct Source {
  const char* file = "";
  int line = 0;
};

/// Where a function was called. A last parameter of this type, defaulted, remembers the caller's line.
struct Here : Source {
  constexpr Here(const char* f = __builtin_FILE(), int l = __builtin_LINE()) : Source{f, l} {}
};

}  // namespace parallel
