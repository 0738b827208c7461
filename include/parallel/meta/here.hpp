// Where in the user's program something was written.
#pragma once

namespace parallel {
namespace internals {
struct Source {
  const char* file = "";
  int line = 0;
};
}  // namespace internals

/// Where a function was called. A last parameter of this type, defaulted, remembers the caller's line.
struct Here : internals::Source {
  constexpr Here(const char* f = __builtin_FILE(), int l = __builtin_LINE()) : internals::Source{f, l} {}
};

}  // namespace parallel
