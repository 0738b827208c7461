// How a program ends: exit codes, and one sentence on the standard error.
#pragma once
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include <parallel/communicator/failure.hpp>
#include <parallel/run/standard_output.hpp>

namespace parallel::internals {

/// A run that cannot begin: the number of ranks is not the mesh's, parameters lie otherwise than the plan says, a
/// device has no kernel for an operation.
struct CannotRun : Failure {
  explicit CannotRun(const std::string& sentence, int code = exit_code::configuration) : Failure(sentence, code) {}
};

/// Text for a terminal: a control character, which may come from a file or an argument, or what is no UTF-8, becomes a
/// question mark.
inline std::string printable(std::string_view text) {
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
    good ? result.append(text.substr(i, length)) : result.append("?");
    i += good ? length : 1;
  }
  return result;
}

/// Runs `f()`, which returns an exit code: the body of a main function. An exception, of whatever type, becomes one
/// line "NAME: error: SENTENCE", with the rank that threw it, and its exit code. So does a standard output that cannot
/// be written.
template <class F>
int guarded(const char* name, F f) {
  Ending ending;
  try {
    return with_standard_output(f);
  } catch (...) {
    ending = ending_of_run(std::current_exception());
  }
  std::fprintf(stderr, "%s: error: %s\n", name, printable(ending.sentence).c_str());
  return ending.exit_code;
}

}  // namespace parallel::internals

namespace parallel {
using internals::CannotRun;
using internals::guarded;
}  // namespace parallel
