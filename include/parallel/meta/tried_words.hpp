// Words that tools/plan compiles a program with to try what its source does not have (program/tried.hpp).
#pragma once
#include <string_view>

namespace parallel::internals::trying {

#ifdef PARALLEL_TRIED
inline constexpr bool tries = true;
inline constexpr std::string_view words = PARALLEL_TRIED;
#else
inline constexpr bool tries = false;
inline constexpr std::string_view words{};
#endif

/// Whether a word is asked for: they are separated by semicolons.
constexpr bool has(std::string_view word, std::string_view name = {}) {
  const std::size_t size = word.size() + name.size();
  for (std::size_t at = 0; at + size <= words.size(); ++at)
    if ((at == 0 || words[at - 1] == ';') && (at + size == words.size() || words[at + size] == ';') &&
        words.substr(at, word.size()) == word && words.substr(at + word.size(), name.size()) == name)
      return true;
  return false;
}

}  // namespace parallel::internals::trying
