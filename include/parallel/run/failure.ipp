// What is said where a program ends, compiled ahead.
#pragma once
#include <cstdio>

#include <parallel/run/failure.hpp>

namespace parallel::internals {

PARALLEL_INLINE std::string printable(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const unsigned first = byte(i);
    const std::size_t length = first < 0x80   ? 1
                               : first < 0xc2 ? 0
                               : first < 0xe0 ? 2
                               : first < 0xf0 ? 3
                               : first < 0xf5 ? 4
                                              : 0;
    bool good = length > 1 || (first >= 0x20 && first < 0x7f) || first == '\n' || first == '\t';
    for (std::size_t k = 1; k < length; ++k) good = good && (byte(i + k) & 0xc0) == 0x80;
    good = good && !(first == 0xc2 && byte(i + 1) < 0xa0);  // the control characters above ASCII
    // more bytes than a character needs, halves of a pair, what lies behind the last character
    good = good && !(first == 0xe0 && byte(i + 1) < 0xa0) && !(first == 0xed && byte(i + 1) > 0x9f) &&
           !(first == 0xf0 && byte(i + 1) < 0x90) && !(first == 0xf4 && byte(i + 1) > 0x8f);
    good ? result.append(text.substr(i, length)) : result.append("?");
    i += good ? length : 1;
  }
  return result;
}

PARALLEL_INLINE int say_ending(const char* name, const std::exception_ptr& error) {
  const Ending ending = ending_of_run(error);
  std::fprintf(stderr, "%s: error: %s\n", name, printable(ending.sentence).c_str());
  return ending.exit_code;
}

}  // namespace parallel::internals
