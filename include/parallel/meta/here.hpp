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
  struct Caller {};
  /// Not of one text, which is an argument too many.
  constexpr Here(Caller = {}, const char* f = __builtin_FILE(), int l = __builtin_LINE()) : internals::Source{f, l} {}
  constexpr Here(const char* f, int l) : internals::Source{f, l} {}
};

}  // namespace parallel
