// A fact that ranks must have alike: a hash of it, and how it reads.
#pragma once
#include <algorithm>
#include <bit>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <parallel/meta/letters.hpp>
#include <parallel/meta/library.hpp>

namespace parallel::internals {

/// Something that ranks must have alike: what it is, a hash of it, and how it reads where it differs, a line for each
/// part. Equal hashes are equal facts; `text` is only called where hashes differ.
struct Fact {
  std::string what{};
  std::uint64_t hash = 0;
  std::function<std::string()> text{};
  bool always = false;  ///< no exception can be made: ranks that differ in it compute something else
};
/// The fact, of which PARALLEL_MAY_DIFFER can make no exception.
inline Fact always(Fact f) {
  f.always = true;
  return f;
}

namespace agreeing {

/// Of words and names: FNV-1a's step for 64 bits at once, turned between them, so that no two high bits cancel out.
class Hash {
 public:
  void word(std::int64_t w) { value_ = (std::rotl(value_, 23) ^ static_cast<std::uint64_t>(w)) * 0x100000001b3; }
  /// Memory, eight bytes at a time; the last are filled up with zeros. Of much memory every eighth word by itself:
  /// words of one hash wait for each other, longer than for memory.
  void bytes(std::span<const std::byte> all) {
    constexpr std::size_t lanes = 8, size = sizeof(std::int64_t);
    const auto word_at = [&](std::size_t i, std::size_t bytes) {
      std::int64_t w = 0;
      std::memcpy(&w, all.data() + i, bytes);
      return w;
    };
    Hash of[lanes];
    std::size_t i = 0;
    for (; i + lanes * size <= all.size(); i += lanes * size)
      for (std::size_t k = 0; k < lanes; ++k) of[k].word(word_at(i + k * size, size));
    if (i > 0)
      for (const Hash& lane : of) word(static_cast<std::int64_t>(lane.value_));
    for (; i < all.size(); i += size) word(word_at(i, std::min(size, all.size() - i)));
  }
  void number(double x) { word(std::bit_cast<std::int64_t>(x)); }
  void name(std::string_view text) {
    for (const char c : text) word(static_cast<unsigned char>(c));
    word(-1);
  }
  void end_of_line() { word(-2); }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

/// The same calls as words that a person reads.
class Text {
 public:
  void word(std::int64_t w) { append(std::to_string(w)); }
  void number(double x) {
    char digits[32];  // the shortest that is this number and no other
    append({digits, static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, x).ptr - digits)});
  }
  void name(std::string_view text) { append(text); }
  void end_of_line() {
    all_ += "\n";
    begun_ = false;
  }
  const std::string& value() const { return all_; }

 private:
  void append(std::string_view text) {
    if (begun_) all_ += " ";
    all_ += text;
    begun_ = true;
  }
  std::string all_{};
  bool begun_ = false;
};

}  // namespace agreeing

/// A fact that is a number or a word.
PARALLEL_INLINE Fact fact(std::string what, std::string_view value);
PARALLEL_INLINE Fact fact(std::string what, double value);
template <std::integral Whole>
Fact fact(std::string what, Whole value) {
  return fact(std::move(what), std::string_view(std::to_string(value)));
}

/// Of elements of so many bytes.
PARALLEL_INLINE Fact fact_of_bytes(std::string what, std::span<const std::byte> bytes, std::size_t size);
/// What data is cut from: its size, and a sample of it, 64 pages of 4 KiB evenly spread. `elements`: a span of any
/// numbers.
template <class T>
Fact fact_of_data(std::string what, std::span<const T> elements) {
  return fact_of_bytes(std::move(what), std::as_bytes(elements), sizeof(T));
}

}  // namespace parallel::internals

namespace parallel {
using internals::always;
using internals::Fact;
using internals::fact;
using internals::fact_of_data;
}  // namespace parallel

#ifndef PARALLEL_LIBRARY
#include <parallel/communicator/fact.ipp>
#endif
