// TensorBoard's event files, of scalars: records with checksums (TFRecord) around messages of protobuf (Event, Summary,
// SessionLog), both written by hand.
#pragma once
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include <parallel/file/appended_file.hpp>
#include <parallel/file/crc.hpp>
#include <parallel/file/little_endian.hpp>
#include <parallel/meta/failure.hpp>

namespace parallel::internals {

/// A number of a step, by its name: {"loss", 2.5}.
struct LoggedNumber {
  std::string_view name;
  double value = 0;
};

namespace events {
/// A checksum of data that hold checksums is masked (TFRecord).
inline std::string checksum(std::string_view bytes) {
  const std::uint32_t crc = Crc32c().add(bytes.data(), bytes.size()).value();
  return little_endian(((crc >> 15) | (crc << 17)) + 0xa282ead8U);
}
inline std::string record(std::string_view data) {
  const std::string length = little_endian(static_cast<std::uint64_t>(data.size()));
  return length + checksum(length) + std::string(data) + checksum(data);
}

inline std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number > 127; number >>= 7) bytes += static_cast<char>((number & 127) | 128);
  return bytes + static_cast<char>(number);
}
/// Fields of a message, by their numbers. What is 0 is left out, as protobuf does.
inline std::string field(int number, std::uint64_t value) {
  return value == 0 ? "" : varint(static_cast<std::uint64_t>(number) << 3) + varint(value);
}
inline std::string field(int number, double value) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 1) + little_endian(value);
}
inline std::string field(int number, float value) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 5) + little_endian(value);
}
inline std::string field(int number, std::string_view bytes) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

/// An event at a time, in seconds since 1970: what happened is a field of its own.
inline std::string event(double time, std::int64_t step, const std::string& what) {
  return record(field(1, time) + field(2, static_cast<std::uint64_t>(step)) + what);
}
/// The first event of a file.
inline std::string beginning(double time) { return event(time, 0, field(3, std::string_view("brain.Event:2"))); }
/// A session that starts with a step: what earlier files have of it and later ones is void.
inline std::string session(double time, std::int64_t step) {
  return event(time, step, field(7, std::string_view(field(1, std::uint64_t{1}))));
}
inline std::string scalars(double time, std::int64_t step, std::span<const LoggedNumber> numbers) {
  std::string summary;
  for (const auto& [name, value] : numbers)
    summary += field(1, std::string_view(field(1, name) + field(2, static_cast<float>(value))));
  return event(time, step, field(5, std::string_view(summary)));
}
}  // namespace events

inline double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// A file of scalars in a folder, under a name by which TensorBoard finds it: `tensorboard --logdir FOLDER`. Whoever
/// begins anew in the same folder begins a file of its own; TensorBoard shows all of a folder as one run.
class EventFile {
 public:
  /// `from`: the step that is logged first; TensorBoard drops what earlier files have of it and later ones. Throws
  /// Failure(io) where nothing can be written there.
  explicit EventFile(const std::string& folder, std::int64_t from = 0) : file_(made(folder)) {
    const double now = seconds_since_1970();
    if (!file_.append(events::beginning(now) + events::session(now, from)))
      throw Failure(folder + " cannot be written: " + std::strerror(errno), exit_code::io);
  }
  /// Whether it could be written: all of it, or nothing.
  bool add(std::int64_t step, std::span<const LoggedNumber> numbers) {
    return file_.append(events::scalars(seconds_since_1970(), step, numbers));
  }

 private:
  static AppendedFile made(const std::string& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    // Files are read in the order of their names: a later one has a later second.
    constexpr std::string_view begin = "events.out.tfevents.";
    long long second = static_cast<long long>(seconds_since_1970());
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
      if (const std::string name = at->path().filename().string(); name.starts_with(begin))
        if (std::int64_t its = 0;
            std::from_chars(name.data() + begin.size(), name.data() + name.size(), its).ec == std::errc{} &&
            its < std::int64_t{1} << 40)
          second = std::max(second, static_cast<long long>(its + 1));
    char host[256] = "host";
    ::gethostname(host, sizeof host - 1);
    char digits[32];
    std::snprintf(digits, sizeof digits, "%010lld", second);
    return AppendedFile(folder + "/" + std::string(begin) + digits + "." + host);
  }

  AppendedFile file_;
};

}  // namespace parallel::internals

namespace parallel {
using internals::EventFile;
using internals::LoggedNumber;
}  // namespace parallel
