// The name of a type, as a compiler spells it.
#pragma once
#include <cstddef>
#include <string_view>

namespace parallel::internals::meta {

/// How a type is spelled: all three compilers say "... [with T = Name; ...]" or "... [T = Name]".
template <class T>
constexpr std::string_view type_name() {
  const std::string_view whole = __PRETTY_FUNCTION__;
  const std::size_t begin = whole.find("T = ") + 4;
  std::size_t end = begin;
  for (int depth = 0; end < whole.size(); ++end) {
    if (depth == 0 && (whole[end] == ';' || whole[end] == ']')) break;
    depth += whole[end] == '<' || whole[end] == '{' || whole[end] == '[' ? 1 : 0;
    depth -= whole[end] == '>' || whole[end] == '}' || whole[end] == ']' ? 1 : 0;
  }
  std::string_view name = whole.substr(begin, end - begin);
  if (name.starts_with("parallel::")) name.remove_prefix(10);
  return name;
}

}  // namespace parallel::internals::meta
