// How byte-level tokenizers cut a text before they merge: the regular expressions of GPT-2, Llama 3 and Qwen 2, by
// hand.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <parallel/file/unicode_classes.hpp>
#include <parallel/meta/letters.hpp>

namespace parallel::internals {

/// A byte that is no UTF-8 stands for itself, as a character of no class.
struct Character {
  char32_t code;
  std::size_t size;  ///< bytes
};
inline Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U; };
  const auto first = byte(0);
  const std::size_t size = first < 0x80   ? 1
                           : first < 0xc2 ? 0
                           : first < 0xe0 ? 2
                           : first < 0xf0 ? 3
                           : first < 0xf5 ? 4
                                          : 0;
  char32_t code = size == 1 ? first : first & (0x7FU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0xfffd, 1};
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool none = size == 0 || (size == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
                    (size == 4 && (code < 0x10000 || code > 0x10ffff));
  return none ? Character{0xfffd, 1} : Character{code, size};
}

enum class Pieces {
  gpt2,
  llama3,  ///< up to three digits are a piece
  qwen2    ///< each digit is
};
/// As tokenizer.json has them.
struct PiecesPattern {
  Pieces pieces;
  std::string_view pattern;
};
inline constexpr PiecesPattern pieces_patterns[] = {
    {Pieces::gpt2, R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {Pieces::llama3, R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
                     R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Pieces::qwen2, R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
                    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};

/// Goes through a text, piece by piece.
class PieceReader {
 public:
  PieceReader(std::string_view text, Pieces how) : text_(text), how_(how) {}
  /// The next piece; none at the end. The pieces, one behind the other, are the text.
  std::optional<std::string_view> next() {
    if (at_ == text_.size()) return std::nullopt;
    const std::size_t begin = at_;
    at_ = end_of_piece(begin);
    return text_.substr(begin, at_ - begin);
  }

 private:
  using Class = CharacterClass;
  bool ends(std::size_t at) const { return at >= text_.size(); }
  Class class_at(std::size_t at) const { return class_of(character_at(text_, at).code); }
  bool is(std::size_t at, Class c) const { return !ends(at) && class_at(at) == c; }
  std::size_t behind(std::size_t at) const { return at + character_at(text_, at).size; }
  bool ends_line(std::size_t at) const { return !ends(at) && (text_[at] == '\n' || text_[at] == '\r'); }
  /// Behind as many of a class as there are, up to `most`.
  std::size_t run(std::size_t at, Class c, std::size_t most = ~std::size_t{0}) const {
    for (; most > 0 && is(at, c); --most) at = behind(at);
    return at;
  }

  /// Behind 's, 't, 're, 've, 'm, 'll or 'd; `at` where none stands there. Of either case but in GPT-2's, where it is
  /// lower case.
  std::size_t contraction(std::size_t at) const {
    if (text_[at] != '\'') return at;
    const auto letter = [&](std::size_t i) -> char32_t {
      if (ends(i)) return 0;
      const char32_t c = character_at(text_, i).code;
      if (how_ == Pieces::gpt2) return c;
      return c >= 'A' && c <= 'Z' ? c + 32 : c == 0x17f ? U's' : c;  // the long s is an s of another case
    };
    const char32_t first = letter(at + 1);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return behind(at + 1);
    const char32_t second = first == 0 ? 0 : letter(behind(at + 1));
    const bool two =
        (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
    return two ? behind(behind(at + 1)) : at;
  }

  std::size_t end_of_piece(std::size_t at) const {
    if (const std::size_t end = contraction(at); end != at) return end;
    const std::size_t behind_space = text_[at] == ' ' ? at + 1 : at;
    if (how_ == Pieces::gpt2) {
      if (is(behind_space, Class::letter)) return run(behind_space, Class::letter);
      if (is(behind_space, Class::number)) return run(behind_space, Class::number);
    } else {
      if (is(at, Class::letter)) return run(at, Class::letter);
      if (!is(at, Class::number) && !ends_line(at) && is(behind(at), Class::letter))
        return run(behind(at), Class::letter);
      if (is(at, Class::number)) return run(at, Class::number, how_ == Pieces::llama3 ? 3 : 1);
    }
    if (is(behind_space, Class::other)) {
      std::size_t end = run(behind_space, Class::other);
      while (how_ != Pieces::gpt2 && ends_line(end)) ++end;
      return end;
    }
    // white space: up to its last end of a line; else but the last, which belongs to what follows
    std::size_t end = at, last = at, behind_line = at;
    while (is(end, Class::space)) {
      last = end;
      end = behind(end);
      if (ends_line(last)) behind_line = end;
    }
    if (how_ != Pieces::gpt2 && behind_line != at) return behind_line;
    return ends(end) || last == at ? end : last;
  }

  std::string_view text_;
  Pieces how_;
  std::size_t at_ = 0;
};

}  // namespace parallel::internals
