// Names of types that do not depend on the compiler.
#pragma once
#include <string>
#include <string_view>

namespace parallel::object {

/// A type's name as g++ spells it: compilers differ in what they call a namespace without a name, and in blanks.
inline std::string portable(std::string name) {
  const auto replace = [&](std::string_view what, std::string_view by) {
    for (std::size_t at = 0; (at = name.find(what, at)) != std::string::npos; at += by.size() - 1) name.replace(at, what.size(), by);
  };
  replace("(anonymous namespace)::", "{anonymous}::");  // clang
  replace("<unnamed>::", "{anonymous}::");              // g++, in a value's name
  for (std::size_t at = 0; (at = name.find("_GLOBAL__N_", at)) != std::string::npos;) {  // nvcc, with the file's name behind it
    const std::size_t end = name.find("::", at);
    if (end == std::string::npos) break;
    name.replace(at, end - at, "{anonymous}");
  }
  replace("> >", ">>");
  return name;
}

}  // namespace parallel::object
