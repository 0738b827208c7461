// Texts by value, which can be constants, template arguments and plain data: short ones, and names of any length by
// where they stand among others.
#pragma once
#include <stdexcept>
#include <string_view>

namespace parallel::internals {

/// At most `capacity` - 1 characters, held inside the object. One more is an exception, or no constant expression.
template <int capacity>
struct Text {
  char characters[std::size_t{capacity}]{};

  constexpr Text() = default;
  constexpr Text(std::string_view text) { append(text); }
  constexpr Text(const char* text) { append(std::string_view(text)); }
  // One step for a compiler that counts them.
  constexpr int size() const { return static_cast<int>(__builtin_strlen(characters)); }
  constexpr bool empty() const { return characters[0] == 0; }
  constexpr std::string_view view() const { return {characters, static_cast<std::size_t>(size())}; }
  constexpr Text& append(std::string_view text) {
    int n = size();
    if (text.size() >= static_cast<std::size_t>(capacity - n)) too_long();
    for (const char c : text) characters[n++] = c;
    return *this;
  }
  constexpr bool operator==(const Text& other) const { return view() == other.view(); }

 private:
  [[noreturn]] static void too_long() {
    throw std::length_error("parallel: a text is too long for where it is kept; give a shorter one");
  }
};

/// A text as it is where it fits, else its beginning and its end with "..." between them.
template <int capacity>
constexpr Text<capacity> abbreviated(std::string_view text) {
  constexpr std::size_t room = capacity - 1, dots = 3;
  if (text.size() <= room) return Text<capacity>(text);
  const auto within = [&](std::size_t at) {  // a character of several bytes
    return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  std::size_t head = (room - dots) / 3, tail = text.size() - (room - dots - head);
  while (head > 0 && within(head)) --head;
  while (tail < text.size() && within(tail)) ++tail;
  return Text<capacity>(text.substr(0, head)).append("...").append(text.substr(tail));
}

/// Where a name stands among a graph's characters, so that it can have any length and what bears it stays small.
struct Name {
  int first = 0, size = 0;
  constexpr bool empty() const { return size == 0; }
};

}  // namespace parallel::internals
