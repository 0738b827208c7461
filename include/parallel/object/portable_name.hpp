// Names of types that do not depend on the compiler, and names that can be printed.
#pragma once
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace parallel::internals::object {

/// A name, as of a file, whose control characters are question marks.
inline std::string in_one_line(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }, '?');
  return name;
}

/// The braces of a value among template arguments, with its type's name before them, become "{...}": every compiler
/// spells a value its own way.
inline void leave_values_out(std::string& name) {
  for (std::size_t at = 0; (at = name.find('{', at)) != std::string::npos; ++at) {
    if (name.compare(at, 11, "{anonymous}") == 0) continue;
    std::size_t begin = at, end = at;
    const auto of_a_name = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':';
    };
    while (begin > 0 && of_a_name(name[begin - 1])) --begin;
    for (int open = 0; end < name.size(); ++end)
      if (open += name[end] == '{' ? 1 : name[end] == '}' ? -1 : 0; open == 0) break;
    name.replace(begin, end + 1 - begin, "{...}");
    at = begin + 2;
  }
}

/// A type's name as g++ spells it: compilers differ in what they call a namespace without a name, in values, and in
/// blanks.
inline std::string portable(std::string name) {
  const auto replace = [&](std::string_view what, std::string_view by) {
    for (std::size_t at = 0; (at = name.find(what, at)) != std::string::npos; at += by.size() - 1)
      name.replace(at, what.size(), by);
  };
  replace("(anonymous namespace)::", "{anonymous}::");  // clang
  replace("<unnamed>::", "{anonymous}::");              // g++, in a value's name
  // nvcc, with the file's name behind it
  for (std::size_t at = 0; (at = name.find("_GLOBAL__N_", at)) != std::string::npos;) {
    const std::size_t end = name.find("::", at);
    if (end == std::string::npos) break;
    name.replace(at, end - at, "{anonymous}");
  }
  leave_values_out(name);
  replace("> >", ">>");
  return name;
}

}  // namespace parallel::internals::object
