// A file's bytes as memory that is only read: nothing is copied, and only what is looked at is loaded.
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <parallel/file/little_endian.hpp>
#include <parallel/meta/failure.hpp>

namespace parallel::internals {

/// A file that is there but is not what it should be: "FILE: SENTENCE", exit code 65.
inline Failure damaged(const std::string& file, const std::string& sentence) {
  return Failure(file + ": " + sentence, exit_code::bad_data);
}

/// FILE, mapped. While the object lives another program may rename or replace FILE, but must not shorten it: a process
/// that reads what is gone is ended by SIGBUS. To write a file anew as NewFile does is safe.
class MappedFile {
 public:
  /// Throws Failure(missing_input) where FILE is not there, is a directory or a device, or cannot be read.
  explicit MappedFile(std::string file) : file_(std::move(file)) {
    const int descriptor = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // or a pipe would be waited for
    if (descriptor < 0) throw refused("cannot be read: " + std::string(std::strerror(errno)));
    struct Close {
      int descriptor;
      ~Close() { ::close(descriptor); }
    } close{descriptor};
    struct stat there {};
    if (::fstat(descriptor, &there) != 0) throw refused("cannot be read: " + std::string(std::strerror(errno)));
    if (!S_ISREG(there.st_mode)) throw refused("is a directory, a pipe or a device; name a file");
    const auto size = static_cast<std::size_t>(there.st_size);
    if (size == 0) return;
    void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (at == MAP_FAILED) throw refused("cannot be mapped: " + std::string(std::strerror(errno)));
    bytes_ = {static_cast<const std::byte*>(at), size};
  }
  ~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& file() const { return file_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  /// A number that lies at a place, aligned or not. The caller has checked that it is within the file.
  template <class Number>
  Number number(std::size_t at) const {
    return number_at<Number>(bytes_, at);
  }

 private:
  Failure refused(const std::string& why) const { return Failure(file_ + " " + why, exit_code::missing_input); }

  std::string file_;
  std::span<const std::byte> bytes_{};
};

}  // namespace parallel::internals

namespace parallel {
using internals::MappedFile;
}  // namespace parallel
