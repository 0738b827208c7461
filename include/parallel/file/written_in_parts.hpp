// A file that several ranks write together, each its own bytes.
#pragma once
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <utility>

#include <parallel/meta/failure.hpp>

namespace parallel::internals {

/// FILE, into which this rank writes. Each of the functions throws Failure(io) where it cannot be done.
class WrittenInParts {
 public:
  /// `made`: O_CREAT where it may have to be made, O_CREAT | O_EXCL where it must be; else it must be there.
  explicit WrittenInParts(std::string file, int made = 0)
      : file_(std::move(file)), descriptor_(::open(file_.c_str(), O_WRONLY | O_CLOEXEC | made, 0666)) {
    check(descriptor_ >= 0);
  }
  ~WrittenInParts() { ::close(descriptor_); }
  WrittenInParts(const WrittenInParts&) = delete;
  WrittenInParts& operator=(const WrittenInParts&) = delete;

  void resize(std::int64_t bytes) { check(::ftruncate(descriptor_, bytes) == 0); }
  void write(const void* bytes, std::int64_t count, std::int64_t at) {
    for (std::int64_t done = 0; done < count;) {
      const ssize_t n = ::pwrite(descriptor_, static_cast<const char*>(bytes) + done,
                                 static_cast<std::size_t>(count - done), static_cast<off_t>(at + done));
      check(n > 0 || errno == EINTR);
      done += std::max<ssize_t>(n, 0);
    }
  }
  /// What was written is on the disk.
  void finish() { check(::fsync(descriptor_) == 0); }

 private:
  void check(bool good) const {
    if (!good) throw Failure(file_ + " cannot be written: " + std::strerror(errno), exit_code::io);
  }
  std::string file_;
  int descriptor_;
};

}  // namespace parallel::internals
