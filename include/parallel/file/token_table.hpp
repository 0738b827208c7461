// The texts and numbers of a vocabulary's tokens, found by either, in little memory.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <parallel/file/pieces.hpp>

namespace parallel::internals {

/// How files of vocabularies write bytes: each as a character that can be seen, most as themselves.
inline std::array<std::string, 256> byte_alphabet() {
  std::array<std::string, 256> all;
  unsigned next = 256;
  for (unsigned b = 0; b < 256; ++b) {
    const bool seen = (b >= '!' && b <= '~') || (b >= 0xa1 && b != 0xad);
    const unsigned code = seen ? b : next++;
    if (code < 0x80)
      all[b] = static_cast<char>(code);
    else
      all[b] = {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
  }
  return all;
}
/// The bytes that are written so; none where a character of it is not of that alphabet.
inline std::optional<std::string> bytes_of_spelled(std::string_view spelled) {
  static const auto byte_of_code = [] {
    std::array<int, 512> all;
    all.fill(-1);
    const auto alphabet = byte_alphabet();
    for (int b = 0; b < 256; ++b) all[character_at(alphabet[static_cast<unsigned char>(b)], 0).code] = b;
    return all;
  }();
  std::string bytes;
  for (std::size_t at = 0; at < spelled.size();) {
    const Character c = character_at(spelled, at);
    if (c.code >= byte_of_code.size() || byte_of_code[c.code] < 0) return std::nullopt;
    bytes += static_cast<char>(byte_of_code[c.code]);
    at += c.size;
  }
  return bytes;
}

/// Numbers of things that are found by a hash: five bytes for each.
class HashedNumbers {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  void make_room(std::size_t count) { numbers_.assign(count + count / 4 + 1, none); }
  /// The number of which `is` holds, or the place where it would stand.
  template <class F>
  std::uint32_t& find(std::uint64_t hash, F is) {
    return numbers_[place(hash, is)];
  }
  template <class F>
  std::uint32_t find(std::uint64_t hash, F is) const {
    return numbers_[place(hash, is)];
  }

 private:
  template <class F>
  std::size_t place(std::uint64_t hash, F is) const {
    std::size_t at = static_cast<std::size_t>((hash >> 32) * numbers_.size() >> 32);
    while (numbers_[at] != none && !is(numbers_[at])) at = at + 1 == numbers_.size() ? 0 : at + 1;
    return at;
  }
  std::vector<std::uint32_t> numbers_ = {none};
};

/// Tokens stand at their numbers, which may have gaps.
class TokenTable {
 public:
  enum class Kind : std::uint8_t {
    bytes,
    text  ///< one that the alphabet of bytes does not write, and stands for itself
  };
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;  ///< of all texts, less one

  /// For so many of so many bytes in all, the numbers of which end before `end`.
  void make_room(std::size_t count, std::size_t bytes, std::size_t end) {
    bytes_.reserve(bytes);
    tokens_.resize(end);
    numbers_.make_room(count);
  }
  std::size_t size() const { return size_; }
  bool has(int id) const {
    return id >= 0 && static_cast<std::size_t>(id) < tokens_.size() && tokens_[static_cast<std::size_t>(id)].is_there;
  }
  /// Of a token that is there.
  std::string_view text(int id) const {
    const Token& token = tokens_[static_cast<std::size_t>(id)];
    return std::string_view(bytes_).substr(token.begin, token.size);
  }
  std::optional<int> find(std::string_view text, Kind kind = Kind::bytes) const {
    const std::uint32_t found = numbers_.find(hash(text), Is{*this, text, kind});
    return found == HashedNumbers::none ? std::nullopt : std::optional(static_cast<int>(found));
  }
  /// As a vocabulary writes it.
  std::optional<int> find_spelled(std::string_view token) const {
    const auto bytes = bytes_of_spelled(token);
    const auto found = bytes ? find(*bytes) : std::nullopt;
    return found ? found : find(token, Kind::text);
  }
  /// A new number and a new text, for which there is room.
  void add(std::string_view text, Kind kind, int id) {
    Token& token = tokens_[static_cast<std::size_t>(id)];
    token.begin = static_cast<std::uint32_t>(bytes_.size());
    token.size = text.size() & (most_bytes - 1);
    token.kind = kind;
    token.is_there = true;
    bytes_ += text;
    numbers_.find(hash(text), Is{*this, text, kind}) = static_cast<std::uint32_t>(id);
    ++size_;
  }

 private:
  struct Token {
    std::uint32_t begin = 0, size : 30 = 0;
    Kind kind : 1 = Kind::bytes;
    bool is_there : 1 = false;
  };
  static_assert(sizeof(Token) == 8);
  struct Is {
    const TokenTable& table;
    std::string_view text;
    Kind kind;
    bool operator()(std::uint32_t id) const {
      return table.tokens_[id].kind == kind && table.text(static_cast<int>(id)) == text;
    }
  };
  static std::uint64_t hash(std::string_view text) { return std::hash<std::string_view>{}(text); }
  std::string bytes_{};
  std::vector<Token> tokens_{};
  HashedNumbers numbers_{};
  std::size_t size_ = 0;
};

}  // namespace parallel::internals
