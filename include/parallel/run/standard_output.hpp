// What a program prints has been written, or the program has failed.
#pragma once
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string>

#include <parallel/meta/failure.hpp>
#include <parallel/meta/letters.hpp>

namespace parallel::internals {

/// Writes what was printed until now. Throws Failure(io) where it cannot be written: the disk is full, nobody reads the
/// pipe.
inline void flush_standard_output() {
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !failed_before) return;
  throw Failure("the standard output cannot be written" +
                    (failed_before ? std::string() : std::string(": ") + std::strerror(errno)) +
                    "; make room, or send it elsewhere",
                74);
}

/// Runs f(), which returns an exit code, and sees that all it printed is written.
template <class F>
int with_standard_output(F f) {
  if (fcntl(1, F_GETFD) < 0)
    static_cast<void>(open("/dev/null", O_RDONLY));  // it was closed: no file that is opened may take its place
  const int code = f();
  flush_standard_output();
  return code;
}

}  // namespace parallel::internals

namespace parallel {
using internals::flush_standard_output;
}  // namespace parallel
