// Byte-level BPE (Sennrich et al., 2016; Radford et al., 2019), as Hugging Face's tokenizers compute it. Needs
// nlohmann-json.
#pragma once
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parallel/file/vocabulary.hpp>

namespace parallel::internals {

/// Texts to tokens and back. It is only read, so threads may share it.
class Tokenizer {
 public:
  /// Hugging Face's tokenizer.json, of a byte-level BPE: GPT-2's, Llama 3's, Qwen 2's and what was trained like them.
  /// Throws Failure: missing_input where there is no such file; bad_data where it is damaged, or has what is not
  /// computed here: other models, normalizers, expressions that cut texts.
  explicit Tokenizer(const std::string& json_file) : known_(json_file) {}
  /// GPT-2's files, encoder.json and vocab.bpe (also called vocab.json and merges.txt).
  Tokenizer(const std::string& encoder_json, const std::string& vocab_bpe) : known_(encoder_json, vocab_bpe) {}
  /// Throws Failure as the others; bad_data, too, where two tokens, or special ones, have one number or text.
  explicit Tokenizer(const Tiktoken& of) : known_(of) {}

  /// How many tokens there are; a model's vocabulary is at least as large as the largest of them and one.
  std::size_t size() const { return known_.tokens.size(); }
  /// The number of a token as the vocabulary writes it, "<|endoftext|>".
  std::optional<int> find(std::string_view token) const { return known_.tokens.find_spelled(token); }

  /// A text's tokens, those that its bytes spell where they are no UTF-8. Special tokens that stand in the text are
  /// found. `specials`: with those that the file's post_processor puts about a text, as Llama 3's first one.
  std::vector<int> encode(std::string_view text, bool specials = true) const {
    std::vector<int> tokens;
    if (specials) tokens = known_.before;
    encode_between(text, known_.added, tokens);
    if (specials) tokens.insert(tokens.end(), known_.behind.begin(), known_.behind.end());
    return tokens;
  }
  /// The bytes of tokens, which may end within a character. Throws Failure(bad_data) for a number that is no token.
  std::string decode(std::span<const int> tokens) const {
    std::string text;
    for (const int token : tokens) {
      if (!known_.tokens.has(token)) throw damaged(known_.file, "it has no token " + std::to_string(token));
      text += known_.tokens.text(token);
    }
    return text;
  }

 private:
  /// What stands between the added tokens of the lists, of which the first goes before the second.
  void encode_between(std::string_view text, std::span<const AddedTokens> lists, std::vector<int>& tokens) const {
    if (lists.empty()) return encode_plain(text, tokens);
    while (!text.empty()) {
      const auto [begin, which] = lists[0].first(text, known_.tokens);
      encode_between(text.substr(0, begin), lists.subspan(1), tokens);
      if (which < 0) return;
      tokens.push_back(which);
      text.remove_prefix(begin + known_.tokens.text(which).size());
    }
  }
  void encode_plain(std::string_view text, std::vector<int>& tokens) const {
    std::string with_space;
    if (known_.prefix_space && !text.empty() && !text.starts_with(' ')) text = with_space = " " + std::string(text);
    PieceReader pieces(text, known_.pieces);
    while (const auto piece = pieces.next()) merge(*piece, tokens);
  }
  /// The pair of the lowest rank first, of several the leftmost, until none merges.
  void merge(std::string_view piece, std::vector<int>& tokens) const {
    if (known_.whole_words) {
      if (const auto whole = known_.tokens.find(piece)) return tokens.push_back(*whole);
    }
    struct Symbol {
      int token;
      std::size_t before, next;
    };
    constexpr std::size_t none = ~std::size_t{0};
    std::vector<Symbol> symbols(piece.size());
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const int token = known_.bytes[static_cast<unsigned char>(piece[i])];
      if (token < 0)
        throw damaged(known_.file, "it has no token for the byte " +
                                       std::to_string(static_cast<unsigned char>(piece[i])) + ", which a text has");
      symbols[i] = {token, i == 0 ? none : i - 1, i + 1 == piece.size() ? none : i + 1};
    }
    using Candidate = std::pair<int, std::size_t>;  // rank, place
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
    const auto rank_at = [&](std::size_t i) {
      if (symbols[i].next == none) return -1;
      return known_.merges.rank(known_.tokens, symbols[i].token, symbols[symbols[i].next].token);
    };
    const auto look = [&](std::size_t i) {
      if (const int rank = rank_at(i); rank >= 0) candidates.emplace(rank, i);
    };
    for (std::size_t i = 0; i < symbols.size(); ++i) look(i);
    while (!candidates.empty()) {
      const auto [rank, i] = candidates.top();
      candidates.pop();
      if (symbols[i].token < 0 || rank_at(i) != rank) continue;  // it, or what follows it, is part of another
      const int token = Merges::merged(known_.tokens, symbols[i].token, symbols[symbols[i].next].token);
      const std::size_t gone = symbols[i].next, next = symbols[gone].next;
      symbols[i] = {token, symbols[i].before, next};
      symbols[gone].token = -1;
      if (next != none) symbols[next].before = i;
      if (symbols[i].before != none) look(symbols[i].before);
      look(i);
    }
    for (std::size_t i = 0; i != none && !symbols.empty(); i = symbols[i].next) tokens.push_back(symbols[i].token);
  }

  Vocabulary known_;
};

}  // namespace parallel::internals

namespace parallel {
using internals::Pieces;
using internals::Tiktoken;
using internals::Tokenizer;
}  // namespace parallel
