// NumPy's .npz: arrays by name in an archive, which is a zip (APPNOTE 6.3) of .npy files that are not compressed.
#pragma once
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parallel/file/crc.hpp>
#include <parallel/file/file_sink.hpp>
#include <parallel/file/named_tensors.hpp>
#include <parallel/file/npy.hpp>

namespace parallel::internals {

/// The format of archives in numbers.
namespace zip {
inline constexpr std::uint32_t local = 0x04034b50, central = 0x02014b50, end = 0x06054b50, end64 = 0x06064b50,
                               locator64 = 0x07064b50;
inline constexpr std::size_t local_bytes = 30, central_bytes = 46, end_bytes = 22, end64_bytes = 56, locator_bytes = 20;
inline constexpr std::uint32_t in_extra = 0xffffffff;  ///< a size that stands in 64 bits elsewhere
inline constexpr std::uint16_t extra64 = 1;
inline constexpr std::string_view ending = ".npy";
}  // namespace zip

/// What numpy.savez wrote: its arrays, mapped, by their names. Sums of the archive are not looked at, so that what is
/// not read is not loaded.
class Npz : public NamedTensors {
 public:
  /// Throws Failure: missing_input where there is no such file; bad_data where it is damaged, compressed
  /// (numpy.savez_compressed) or encrypted, or has what read_npy does not read.
  explicit Npz(const std::string& file) : NamedTensors(file), in_(std::make_shared<const MappedFile>(file)) {
    const std::size_t bytes = in_->bytes().size();
    std::size_t at = end_of_archive();
    std::uint64_t count = number<std::uint16_t>(at + 10), begin = number<std::uint32_t>(at + 16);
    if ((count == 0xffff || begin == zip::in_extra) && at >= zip::locator_bytes &&
        number<std::uint32_t>(at - zip::locator_bytes) == zip::locator64) {
      const auto end64 = number<std::uint64_t>(at - zip::locator_bytes + 8);
      check(end64, zip::end64_bytes, zip::end64, "its end of 64 bits");
      count = number<std::uint64_t>(static_cast<std::size_t>(end64) + 32);
      begin = number<std::uint64_t>(static_cast<std::size_t>(end64) + 48);
    }
    at = static_cast<std::size_t>(std::min<std::uint64_t>(begin, bytes));
    for (std::uint64_t i = 0; i < count; ++i) at = read_entry(at);
    finish();
  }

 private:
  template <class Number>
  Number number(std::size_t at) const {
    return in_->number<Number>(at);
  }
  /// That so many bytes are there, and begin as they should.
  void check(std::uint64_t at, std::size_t bytes, std::uint32_t mark, const std::string& what) const {
    if (at > in_->bytes().size() || bytes > in_->bytes().size() - at ||
        number<std::uint32_t>(static_cast<std::size_t>(at)) != mark)
      throw damaged(file(), what + " is said to be at " + std::to_string(at) + ", but is not there");
  }
  std::size_t end_of_archive() const {
    const std::size_t bytes = in_->bytes().size();
    for (std::size_t behind = zip::end_bytes; behind <= bytes && behind <= zip::end_bytes + 0xffff; ++behind)
      if (number<std::uint32_t>(bytes - behind) == zip::end) return bytes - behind;
    throw damaged(file(), "it has no end as archives have; it is no .npz, or was cut off");
  }
  std::size_t read_entry(std::size_t at) {
    check(at, zip::central_bytes, zip::central, "the next of its arrays");
    const auto name_size = number<std::uint16_t>(at + 28), extra_size = number<std::uint16_t>(at + 30),
               comment_size = number<std::uint16_t>(at + 32);
    const std::size_t next = at + zip::central_bytes + name_size + extra_size + comment_size;
    if (next > in_->bytes().size()) throw damaged(file(), "it ends within the names of its arrays");
    const std::string_view called = in_->text().substr(at + zip::central_bytes, name_size);
    if (!called.ends_with(zip::ending))
      throw damaged(file(), "it has a file '" + std::string(called) + "'; arrays end in .npy");
    const std::string name(called.substr(0, called.size() - zip::ending.size()));
    if (number<std::uint16_t>(at + 8) & 1) throw damaged(file(), "its array " + name + " is encrypted");
    if (number<std::uint16_t>(at + 10) != 0)
      throw damaged(file(), "its array " + name + " is compressed; in Python, numpy.savez writes it as it is");
    std::uint64_t size = number<std::uint32_t>(at + 24), stored = number<std::uint32_t>(at + 20),
                  local = number<std::uint32_t>(at + 42);
    read_extra(at + zip::central_bytes + name_size, extra_size, {&size, &stored, &local});
    check(local, zip::local_bytes, zip::local, "its array " + name);
    const std::uint64_t begin = local + zip::local_bytes + number<std::uint16_t>(static_cast<std::size_t>(local) + 26) +
                                number<std::uint16_t>(static_cast<std::size_t>(local) + 28);
    if (size != stored || begin > in_->bytes().size() || size > in_->bytes().size() - begin)
      throw damaged(file(), "its array " + name + " has " + std::to_string(size) + " bytes, but the file ends before");
    const auto there = in_->bytes().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
    FileTensor array = npy::read(file() + ": " + std::string(called), in_, there);
    array.name = name;
    add(std::move(array));
    return next;
  }
  /// What of these does not fit in 32 bits stands there, one behind the other.
  void read_extra(std::size_t at, std::size_t size, std::array<std::uint64_t*, 3> numbers) const {
    for (const std::size_t end = at + size; at + 4 <= end;) {
      const auto kind = number<std::uint16_t>(at), length = number<std::uint16_t>(at + 2);
      at += 4;
      std::size_t field = at;
      if (kind == zip::extra64)
        for (std::uint64_t* const n : numbers)
          if (*n == zip::in_extra && field + 8 <= std::min(end, at + length)) {
            *n = number<std::uint64_t>(field);
            field += 8;
          }
      at += length;
    }
  }

  std::shared_ptr<const MappedFile> in_;
};

/// Writes FILE as numpy.savez does, byte for byte, whole or not at all. `write(entry, sink)` is called for each array
/// in their order, as write_safetensors does. Throws Failure: io where it cannot be written; bad_data where names are
/// equal, a shape is none, .npy has not the element type, `write` gave more or fewer bytes than the shape has, or all
/// are 65535 arrays or 4 GiB.
template <class Write>
void write_npz(const std::string& file, const std::vector<FileEntry>& arrays, Write write) {
  const auto refused = [&](const FileEntry& t, const std::string& why) {
    return damaged(file, "the array '" + t.name + "', which is to be written, " + why);
  };
  check_names(file, arrays, "arrays");
  if (arrays.size() >= 0xffff) throw damaged(file, "an archive has fewer than 65535 arrays; write several");

  NewFile out(file, file);
  std::string directory;
  std::uint64_t at = 0;
  for (const FileEntry& t : arrays) {
    const auto elements = elements_of(t.shape);
    const auto bytes = elements ? bytes_of(t.dtype, *elements) : std::nullopt;
    if (!bytes) throw refused(t, "has a shape that is none");
    if (std::none_of(std::begin(npy::spellings), std::end(npy::spellings), [&](auto& s) { return s.dtype == t.dtype; }))
      throw refused(t, "is " + std::string(name_of(t.dtype)) + ", which .npy has not; convert, or write safetensors");
    const std::string name = t.name + std::string(zip::ending), header = npy::written(t.dtype, t.shape);
    if (name.size() > 0xffff) throw refused(t, "has too long a name");
    const std::uint64_t size = header.size() + static_cast<std::uint64_t>(*bytes);
    constexpr std::uint64_t most = zip::in_extra;
    if (size >= most || at + size + name.size() + 1024 >= most)
      throw damaged(file, "an archive has fewer than 4 GiB; write several, or safetensors");
    // 45: read by programs that know 64 bits, as which NumPy writes sizes; no time, which would make files differ
    constexpr std::uint16_t version = 45, stored = 0, time = 0, date = 33, unix = 3 << 8;
    const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
    const std::uint16_t flags = std::all_of(name.begin(), name.end(), is_ascii) ? 0 : 0x800;  // UTF-8
    const auto name_size = static_cast<std::uint16_t>(name.size());
    const auto begin = [&](std::uint32_t sum) {
      const std::string local = little_endian(zip::local, version, flags, stored, time, date, sum, zip::in_extra,
                                              zip::in_extra, name_size, std::uint16_t{20}) +
                                name + little_endian(zip::extra64, std::uint16_t{16}, size, size);
      out.write(local.data(), local.size());
      return local.size();
    };
    const std::size_t before = begin(0);
    Crc32 sum;
    out.write(header.data(), header.size());
    sum.add(header.data(), header.size());
    FileSink sink(out, t.dtype, *bytes, [&](const void* of, std::size_t count) { sum.add(of, count); });
    write(t, sink);
    if (const std::string why = sink.wrong(); !why.empty()) throw refused(t, why);
    const auto seek = [&](std::uint64_t to) {
      if (std::fseek(out.stream(), static_cast<long>(to), SEEK_SET) != 0)
        throw Failure(file + " cannot be written: it is no file in which one can go back", exit_code::io);
    };
    seek(at);
    begin(sum.value());
    seek(at + before + size);
    const auto size32 = static_cast<std::uint32_t>(size);
    directory +=
        little_endian(zip::central, static_cast<std::uint16_t>(version | unix), version, flags, stored, time, date,
                      sum.value(), size32, size32, name_size, std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0},
                      std::uint16_t{0}, std::uint32_t{0600} << 16, static_cast<std::uint32_t>(at)) +
        name;
    at += before + size;
  }
  const auto count = static_cast<std::uint16_t>(arrays.size());
  directory +=
      little_endian(zip::end, std::uint16_t{0}, std::uint16_t{0}, count, count,
                    static_cast<std::uint32_t>(directory.size()), static_cast<std::uint32_t>(at), std::uint16_t{0});
  out.write(directory.data(), directory.size());
  out.put_in_place();
}

}  // namespace parallel::internals

namespace parallel {
using internals::Npz;
using internals::write_npz;
}  // namespace parallel
