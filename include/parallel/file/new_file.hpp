// A file that is written whole or not at all: beside its place first, and put in it when all of it is on the disk.
#pragma once
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <random>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <parallel/meta/failure.hpp>

namespace parallel::internals {

/// Gives a file that is on the disk another name there, also after a power failure. Whether it could be.
inline bool renamed(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) return false;
  const std::string folder = to.substr(0, to.rfind('/') + 1);  // which holds the new name
  if (const int there = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); there >= 0) {
    ::fsync(there);  // a file system that cannot has its own ways
    ::close(there);
  }
  return true;
}

/// FILE anew. A link that stands for FILE is followed, as the user made it. The temporary file lies in FILE's folder,
/// is made by this object or not at all, whatever lies in its place, and is gone with it. A device or a pipe is written
/// to as it is.
class NewFile {
 public:
  /// `called`: the file in sentences, "the record 'run.0'". Throws Failure(io) where nothing can be written there.
  NewFile(const std::string& file, std::string called) : called_(std::move(called)) {
    struct stat there {};
    const bool exists = ::stat(file.c_str(), &there) == 0;
    if (exists && ::access(file.c_str(), W_OK) != 0) throw refused();
    if (exists && !S_ISREG(there.st_mode)) {
      stream_.reset(std::fopen(file.c_str(), "w"));
      if (!stream_) throw refused();
      return;
    }
    file_ = behind_links(file);
    const int descriptor = make_beside();
    if (exists) ::fchmod(descriptor, there.st_mode & 0777);  // who may read it is as before, where that can be
    stream_.reset(::fdopen(descriptor, "w"));
    if (stream_) return;
    const int why = errno;
    ::close(descriptor);
    ::unlink(beside_.c_str());
    errno = why;
    throw refused();
  }
  ~NewFile() {
    if (!beside_.empty()) ::unlink(beside_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  std::FILE* stream() const { return stream_.get(); }

  void write(const void* bytes, std::size_t count) {
    if (count > 0 && std::fwrite(bytes, 1, count, stream()) != count) throw refused();
  }

  /// The end of the writing: FILE is what was written, also after a power failure. Throws Failure(io) where a write
  /// failed; then FILE is what it was.
  void put_in_place() {
    const bool written = std::fflush(stream()) == 0 && std::ferror(stream()) == 0;
    if (!written || (!beside_.empty() && ::fsync(::fileno(stream())) != 0)) throw refused();
    if (std::fclose(stream_.release()) != 0) throw refused();
    if (beside_.empty()) return;
    if (!renamed(beside_, file_)) throw refused();
    beside_.clear();
  }

 private:
  Failure refused() const {
    return Failure(
        (called_.empty() ? "a file without a name" : called_) + " cannot be written: " + std::strerror(errno),
        exit_code::io);
  }

  std::string behind_links(std::string file) const {
    char to[PATH_MAX];
    for (int links = 0; links < 40; ++links) {  // as many as the kernel follows
      const ssize_t length = ::readlink(file.c_str(), to, sizeof to);
      if (length < 0) return file;
      const std::string next(to, static_cast<std::size_t>(length));
      file = next.starts_with('/') ? next : file.substr(0, file.rfind('/') + 1) + next;
    }
    errno = ELOOP;
    throw refused();
  }
  /// O_EXCL makes a file or fails, also where a link lies there.
  int make_beside() {
    std::random_device random;
    for (int trial = 0; trial < 100; ++trial) {
      const std::string beside = file_ + "." + std::to_string(random()) + ".new";
      const int descriptor = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor >= 0) {
        beside_ = beside;
        return descriptor;
      }
      if (errno != EEXIST) break;
    }
    throw refused();
  }
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string called_, file_{}, beside_{};
  std::unique_ptr<std::FILE, Close> stream_{};
};

}  // namespace parallel::internals
