// A name as a program hands it over.
#pragma once
#include <concepts>
#include <string_view>
#include <type_traits>

#include <parallel/run/misuse.hpp>

namespace parallel::internals {

/// A text in any form. A null pointer, as std::getenv gives, is none: throws Misuse.
struct HandedName : std::string_view {
  template <std::convertible_to<std::string_view> Text>
  HandedName(const Text& text) : std::string_view(checked(text)) {}

 private:
  template <class Text>
  static std::string_view checked(const Text& text) {
    if constexpr (std::is_pointer_v<Text>)
      if (text == nullptr) refuse();
    if constexpr (std::is_null_pointer_v<Text>)
      refuse();
    else
      return text;
  }
  [[noreturn]] static void refuse() {
    throw Misuse("a null pointer was given as a name; give the name as text, \"mlp.up\"");
  }
};

}  // namespace parallel::internals
