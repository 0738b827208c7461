// A file that grows by whole pieces while a run goes on: a crash keeps what was there, a full disk leaves no half of a
// piece.
#pragma once
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <parallel/meta/failure.hpp>

namespace parallel::internals {

/// FILE, made where there is none; what it holds stays.
class AppendedFile {
 public:
  /// Throws Failure(io) where nothing can be written there.
  explicit AppendedFile(const std::string& file)
      : descriptor_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) throw Failure(file + " cannot be written: " + std::strerror(errno), exit_code::io);
  }
  ~AppendedFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  AppendedFile(AppendedFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  AppendedFile& operator=(AppendedFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  /// Hands all of it to the system, so that it outlives this program, or nothing. Whether it could; errno says why not.
  bool append(std::string_view piece) {
    std::size_t written = 0;
    while (written < piece.size()) {
      const ssize_t more = ::write(descriptor_, piece.data() + written, piece.size() - written);
      if (more >= 0) {
        written += static_cast<std::size_t>(more);
        continue;
      }
      if (errno == EINTR) continue;
      const int why = errno;
      if (struct stat now{}; written > 0 && ::fstat(descriptor_, &now) == 0)
        static_cast<void>(!::ftruncate(descriptor_, now.st_size - static_cast<off_t>(written)));
      errno = why;
      return false;
    }
    return true;
  }

 private:
  int descriptor_;
};

}  // namespace parallel::internals
