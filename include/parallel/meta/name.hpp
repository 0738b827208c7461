// A short text by value, for names inside graphs and plans: it can be a constant, a template argument and plain data in an object file.
#pragma once
#include <string_view>

namespace parallel {

template <int capacity>
struct Text {
  char characters[capacity]{};

  constexpr Text() = default;
  constexpr Text(std::string_view text) { append(text); }
  constexpr Text(const char* text) { append(std::string_view(text)); }
  constexpr int size() const { return static_cast<int>(__builtin_strlen(characters)); }  // one step for a compiler that counts them
  constexpr bool empty() const { return characters[0] == 0; }
  constexpr std::string_view view() const { return {characters, static_cast<std::size_t>(size())}; }
  /// Appends; what does not fit is cut (member paths deeper than the capacity are shortened in print, never in meaning).
  constexpr Text& append(std::string_view text) {
    int n = size();
    for (const char c : text)
      if (n + 1 < capacity) characters[n++] = c;
    return *this;
  }
  constexpr bool operator==(const Text& other) const { return view() == other.view(); }
};

using Name = Text<16>;  ///< of a number that a run gives: "step"
using Path = Text<64>;  ///< of a member: "blocks.*.mlp.down"

}  // namespace parallel
