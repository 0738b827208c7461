// Which programs --program means: names are long, so a part that picks some of them is enough.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace planner {

/// What the text of --program picks among names: the one that is the text; else those that have it as words of theirs,
/// as "Gpt" is a word of "Training<Gpt, AdamW>(...)" but not of "Training<GptBlock, AdamW>(...)"; else those that have
/// it in them, in capitals or not. Blanks count nowhere. An empty text picks all.
class Choice {
 public:
  Choice(const std::string& text, const std::vector<std::string>& names) : text_(text) {
    for (const std::string& name : names) least_ = std::max(least_, closeness(name));
  }
  bool has(const std::string& name) const { return closeness(name) >= std::max(least_, 1); }

 private:
  int closeness(const std::string& name) const {
    const std::string part = plain(text_, false), whole = plain(name, false);
    if (part == whole) return 3;
    for (std::size_t at = whole.find(part); at != std::string::npos; at = whole.find(part, at + 1))
      if (is_edge(whole, at) && is_edge(whole, at + part.size())) return 2;
    return plain(name, true).find(plain(text_, true)) != std::string::npos ? 1 : 0;
  }
  static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  /// No word goes on from the character before to this one.
  static bool is_edge(std::string_view text, std::size_t at) {
    return at == 0 || at == text.size() || !is_letter(text[at - 1]) || !is_letter(text[at]);
  }
  static std::string plain(std::string_view text, bool lower) {
    std::string result;
    for (const char c : text)
      if (c != ' ') result += lower && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return result;
  }

  std::string text_;
  int least_ = 0;
};

}  // namespace planner
