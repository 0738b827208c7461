// Memory that processes of one machine share. It has no name in any folder, so nothing is left of it when they end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace parallel::internals {

/// Mapped into this process; none where it could not be had.
class SharedMemory {
 public:
  /// With what another process finds the memory that this one has made.
  struct Address {
    std::int64_t process = 0, descriptor = -1, bytes = 0;
  };

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~SharedMemory() {
    close();
    if (data_ != nullptr) munmap(data_, bytes_);
  }

  /// New memory, all zero, at whose first word `sign` stands: by it others see that it is this one.
  static SharedMemory made(std::size_t bytes, std::uint64_t sign) {
    SharedMemory memory;
#ifdef MFD_NOEXEC_SEAL
    memory.descriptor_ = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);  // without it some kernels refuse
#endif
    if (memory.descriptor_ < 0) memory.descriptor_ = memfd_create(name, MFD_CLOEXEC);
    if (memory.descriptor_ >= 0 && ftruncate(memory.descriptor_, static_cast<off_t>(bytes)) == 0) memory.map(bytes);
    if (memory) std::memcpy(memory.data(), &sign, sizeof sign);
    return memory;
  }
  /// What another process of this machine has made, which it keeps open meanwhile.
  static SharedMemory at(const Address& address, std::uint64_t sign) {
    SharedMemory memory;
    const std::string path = "/proc/" + std::to_string(address.process) + "/fd/" + std::to_string(address.descriptor);
    // On another machine, or seen from another container, this may lead to anything: to open a pipe would wait.
    char leads_to[64] = "";
    const std::string expected = std::string("/memfd:") + name;
    if (readlink(path.c_str(), leads_to, sizeof leads_to - 1) < 0 ||
        std::strncmp(leads_to, expected.c_str(), expected.size()) != 0)
      return memory;
    memory.descriptor_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat status {};
    if (memory.descriptor_ >= 0 && fstat(memory.descriptor_, &status) == 0 && status.st_size == address.bytes)
      memory.map(static_cast<std::size_t>(address.bytes));
    memory.close();
    if (memory && std::memcmp(memory.data(), &sign, sizeof sign) != 0) memory = SharedMemory();
    return memory;
  }

  Address address() const { return {getpid(), descriptor_, static_cast<std::int64_t>(bytes_)}; }
  /// Others cannot find it any more; who has it keeps it.
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

  explicit operator bool() const { return data_ != nullptr; }
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  static constexpr const char* name = "parallel";

  void map(std::size_t bytes) {
    void* const there = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (there == MAP_FAILED) return;
    data_ = there;
    bytes_ = bytes;
  }

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace parallel::internals
