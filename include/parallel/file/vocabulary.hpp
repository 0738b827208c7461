// A vocabulary of byte strings and how pairs of them merge, as Hugging Face, GPT-2 and tiktoken write it. Needs
// nlohmann-json.
#pragma once
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parallel/file/mapped_file.hpp>
#include <parallel/file/pieces.hpp>
#include <parallel/file/token_table.hpp>
#include <parallel/file/tokenizer_json.hpp>

namespace parallel::internals {

/// A vocabulary as tiktoken has it, lines of a token in base64 and its number: r50k_base.tiktoken, or Llama 3's
/// tokenizer.model. How texts are cut, and special tokens, the file does not say.
struct Tiktoken {
  std::string file;
  Pieces pieces = Pieces::gpt2;           ///< of r50k_base and p50k_base; cl100k_base and Llama 3 have Pieces::llama3
  std::map<std::string, int> specials{};  ///< {{"<|endoftext|>", 50256}}
};

/// Tokens that are found in a text before it is cut, and the bytes with which they begin.
struct AddedTokens {
  std::vector<int> all{};
  std::array<bool, 256> begins{};
  void add(std::string_view text, int id) {
    all.push_back(id);
    begins[static_cast<unsigned char>(text[0])] = true;
  }
  /// Where the first of them stands, and which, -1 where none does; of several there the longest.
  std::pair<std::size_t, int> first(std::string_view text, const TokenTable& tokens) const {
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (!begins[static_cast<unsigned char>(text[at])]) continue;
      std::size_t longest = 0;
      int which = -1;
      for (const int id : all)
        if (const std::string_view one = tokens.text(id); one.size() > longest && text.substr(at).starts_with(one)) {
          longest = one.size();
          which = id;
        }
      if (which >= 0) return {at, which};
    }
    return {text.size(), -1};
  }
};

/// Which two tokens merge, and when: as a file lists them, or, where none does, any two that together are a third.
class Merges {
 public:
  void make_room(std::size_t count) {
    pairs_.reserve(count);
    ranks_.make_room(count);
    listed_ = true;
  }
  /// The next of a list; of equal ones the last counts.
  void add(int left, int right) {
    const Pair pair{left, right};
    ranks_.find(pair.hash(), Is{*this, pair}) = static_cast<std::uint32_t>(pairs_.size());
    pairs_.push_back(pair);
  }
  /// The lower goes first; -1 where they do not merge.
  int rank(const TokenTable& tokens, int left, int right) const {
    if (!listed_) return whole(tokens, left, right).value_or(-1);  // so tiktoken merges
    const Pair pair{left, right};
    const std::uint32_t rank = ranks_.find(pair.hash(), Is{*this, pair});
    return rank == HashedNumbers::none ? -1 : static_cast<int>(rank);
  }
  /// What two become that do.
  static int merged(const TokenTable& tokens, int left, int right) { return whole(tokens, left, right).value(); }

 private:
  struct Pair {
    int left, right;
    bool operator==(const Pair&) const = default;
    std::uint64_t hash() const {
      const auto both = std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
      return (both ^ both >> 29) * 0x9e37'79b9'7f4a'7c15;
    }
  };
  struct Is {
    const Merges& merges;
    const Pair& pair;
    bool operator()(std::uint32_t rank) const { return merges.pairs_[rank] == pair; }
  };
  static std::optional<int> whole(const TokenTable& tokens, int left, int right) {
    const std::string_view a = tokens.text(left), b = tokens.text(right);
    std::array<char, 256> few;
    if (a.size() + b.size() > few.size()) return tokens.find(std::string(a) + std::string(b));
    std::copy(b.begin(), b.end(), std::copy(a.begin(), a.end(), few.begin()));
    return tokens.find({few.data(), a.size() + b.size()});
  }
  std::vector<Pair> pairs_{};
  HashedNumbers ranks_{};
  bool listed_ = false;
};

/// What such files say, and how texts are cut before their pieces merge. Of a file it takes at most twice the memory,
/// beside the longest of its strings and some that does not depend on it.
struct Vocabulary {
  std::string file;
  TokenTable tokens{};
  Merges merges{};
  std::array<int, 256> bytes{};
  std::array<AddedTokens, 2> added{};  ///< special ones, and those that a normalizer would change
  std::vector<int> before{}, behind{};
  Pieces pieces = Pieces::gpt2;
  bool prefix_space = false, whole_words = false;

  // Of the files that Tokenizer's constructors name, which say what they throw.
  explicit Vocabulary(const std::string& json_file) : file(json_file) {
    const TokenizerJson in(json_file);
    Room room;
    std::size_t merge_count = 0;
    const Json all = in.settings([&](std::string_view text, int id) { room.add(text.size(), id); },
                                 [&](std::string_view, std::string_view) { ++merge_count; },
                                 [&](const Json& token) { room.add(content_of(token).size(), id_of(in, token)); });
    check_settings(all);
    make_room(room);
    const auto nothing = [](auto&&...) {};
    in.settings([&](std::string_view text, int id) { add_token(text, id); }, nothing, nothing);
    find_bytes();
    merges.make_room(merge_count);
    in.settings(
        nothing, [&](std::string_view left, std::string_view right) { add_merge(left, right); }, nothing);
    in.settings(nothing, nothing, [&](const Json& token) { add_added(token, id_of(in, token)); });
    read_cutting(at(all, "pre_tokenizer"));
    read_specials(in, at(all, "post_processor"));
  }
  Vocabulary(const std::string& encoder_json, const std::string& vocab_bpe) : file(encoder_json) {
    const TokenizerJson in(encoder_json);
    Room room;
    in.tokens([&](std::string_view text, int id) { room.add(text.size(), id); });
    make_room(room);
    in.tokens([&](std::string_view text, int id) { add_token(text, id); });
    find_bytes();
    if (const auto end = tokens.find_spelled(end_of_text)) added[0].add(end_of_text, *end);
    file = vocab_bpe;
    const MappedFile lines(vocab_bpe);
    std::size_t count = 0;
    for_each_line(lines.text(), [&](std::string_view, std::size_t) { ++count; });
    merges.make_room(count);
    for_each_line(lines.text(), [&](std::string_view line, std::size_t number) {
      if (line.empty() || (number == 1 && line.starts_with("#version"))) return;
      const std::size_t space = line.find(' ');
      if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
        throw damaged(file, "its merge " + std::to_string(merges_read) + " is no pair of tokens with a space between");
      add_merge(line.substr(0, space), line.substr(space + 1));
    });
  }

  explicit Vocabulary(const Tiktoken& of) : file(of.file) {
    const MappedFile in(file);
    Room room;
    for_each_line(in.text(), [&](std::string_view line, std::size_t number) {
      if (line.empty()) return;
      const Line token = token_of(line, number);
      room.add(token.text.size(), token.id);
    });
    for (const auto& [text, id] : of.specials) room.add(text.size(), std::max(id, 0));
    make_room(room);
    for_each_line(in.text(), [&](std::string_view line, std::size_t number) {
      if (line.empty()) return;
      const auto [text, id] = token_of(line, number);
      if (tokens.find(text)) throw of_line(number, "has a token that is there before");
      if (tokens.has(id)) throw of_line(number, "has the number " + std::to_string(id) + ", as one before");
      tokens.add(text, TokenTable::Kind::bytes, id);
    });
    find_bytes();
    for (const auto& [text, id] : of.specials) {
      if (text.empty() || id < 0 || tokens.find_spelled(text) || tokens.has(id))
        throw damaged(file,
                      "the special token '" + text + "', " + std::to_string(id) + ", is one of its tokens, or none");
      tokens.add(text, TokenTable::Kind::text, id);
      added[0].add(text, id);
    }
    pieces = of.pieces;
    whole_words = true;
  }

 private:
  using Json = nlohmann::json;
  static constexpr std::string_view end_of_text = "<|endoftext|>";

  /// What tokens need.
  struct Room {
    std::size_t count = 0, bytes = 0, end = 0;
    void add(std::size_t size, int id) {
      ++count;
      bytes += size;
      end = std::max(end, static_cast<std::size_t>(id) + 1);
    }
  };
  void make_room(const Room& room) {
    if (room.end > 10'000 + 2 * room.count)
      throw damaged(file, "a token has the number " + std::to_string(room.end - 1) + ", though there are but " +
                              std::to_string(room.count));
    if (room.bytes >= TokenTable::most_bytes) throw damaged(file, "its tokens have more than a GiB of text");
    tokens.make_room(room.count, room.bytes, room.end);
  }
  /// Calls F with each line and its number, from 1.
  template <class F>
  static void for_each_line(std::string_view left, F f) {
    for (std::size_t number = 1; !left.empty(); ++number) {
      std::string_view line = left.substr(0, left.find('\n'));
      left.remove_prefix(std::min(left.size(), line.size() + 1));
      if (line.ends_with('\r')) line.remove_suffix(1);
      f(line, number);
    }
  }

  /// null where there is none.
  static const Json& at(const Json& object, const char* key) {
    static const Json none;
    const auto found = object.is_object() ? object.find(key) : object.end();
    return object.is_object() && found != object.end() ? *found : none;
  }
  static std::string type_of(const Json& object) {
    const Json& type = at(object, "type");
    return type.is_string() ? type.get<std::string>() : "of no type";
  }
  void check_settings(const Json& all) {
    if (const Json& normalizer = at(all, "normalizer"); !normalizer.is_null())
      throw damaged(file, "it has a normalizer, " + type_of(normalizer) + ", which is not computed here");
    const Json& model = at(all, "model");
    if (!model.is_object())
      throw damaged(file,
                    "it is no tokenizer.json, which has a model; a vocabulary, as vocab.json or encoder.json, is "
                    "read with its merges: Tokenizer(\"vocab.json\", \"merges.txt\")");
    if (type_of(model) != "BPE") throw damaged(file, "its model is " + type_of(model) + "; BPE is read");
    for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"})
      if (const Json& value = at(model, key); !value.is_null() && value != "")
        throw damaged(file, "its model has " + std::string(key) + ", which is not computed here");
    if (at(model, "byte_fallback") == true)
      throw damaged(file, "its model has byte_fallback, which is not computed here");
    if (!at(model, "vocab").is_object()) throw damaged(file, "it has no vocabulary");
    if (!at(model, "merges").is_array()) throw damaged(file, "its model has no list of merges");
    whole_words = at(model, "ignore_merges") == true;
  }
  void add_token(std::string_view spelled, int id) {
    const auto text = bytes_of_spelled(spelled);
    const auto kind = text ? TokenTable::Kind::bytes : TokenTable::Kind::text;
    const std::string_view of = text ? std::string_view(*text) : spelled;
    if (tokens.find(of, kind)) throw damaged(file, "the token '" + std::string(spelled) + "' is there twice");
    if (tokens.has(id)) throw damaged(file, "two tokens have the number " + std::to_string(id));
    tokens.add(of, kind, id);
  }
  void find_bytes() {
    for (std::size_t b = 0; b < 256; ++b) bytes[b] = tokens.find(std::string(1, static_cast<char>(b))).value_or(-1);
  }

  /// A line of tiktoken's file.
  struct Line {
    std::string text;
    int id;
  };
  Failure of_line(std::size_t number, const std::string& why) const {
    return damaged(file, "line " + std::to_string(number) + " " + why);
  }
  Line token_of(std::string_view line, std::size_t number) const {
    const std::size_t space = line.find(' ');
    auto text = bytes_of_base64(line.substr(0, space));
    int id = -1;
    if (space != std::string_view::npos) {
      const char* const end = line.data() + line.size();
      if (const auto read = std::from_chars(line.data() + space + 1, end, id);
          read.ec != std::errc{} || read.ptr != end)
        id = -1;
    }
    if (!text || text->empty() || id < 0) throw of_line(number, "is no token in base64 and its number");
    return {std::move(*text), id};
  }
  /// None where it is none.
  static std::optional<std::string> bytes_of_base64(std::string_view text) {
    if (text.size() % 4 != 0) return std::nullopt;
    std::string all;
    for (std::size_t at = 0; at < text.size(); at += 4) {
      std::uint32_t bits = 0;
      std::size_t there = 4;
      for (std::size_t i = 0; i < 4; ++i) {
        constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const std::size_t digit = digits.find(text[at + i]);
        const bool padding = text[at + i] == '=' && i > 1 && at + 4 == text.size();
        if (digit == std::string_view::npos ? !padding : there < 4) return std::nullopt;
        if (padding) there = std::min(there, i);
        bits = bits << 6 | (padding ? 0U : static_cast<std::uint32_t>(digit));
      }
      for (std::size_t i = 0; i + 1 < there; ++i) all += static_cast<char>(bits >> (16 - 8 * i) & 0xff);
    }
    return all;
  }

  const std::string& content_of(const Json& token) const {
    const Json& text = at(token, "content");
    if (!text.is_string() || text == "") throw damaged(file, "an added token has no content");
    return text.get_ref<const std::string&>();
  }
  int id_of(const TokenizerJson& in, const Json& token) const { return in.number(at(token, "id"), content_of(token)); }
  void add_added(const Json& token, int id) {
    const std::string& content = content_of(token);
    for (const char* key : {"single_word", "lstrip", "rstrip"})
      if (at(token, key) == true)
        throw damaged(file, "the added token '" + content + "' has " + key + ", which is not computed here");
    const auto known = tokens.find_spelled(content);
    if (known.value_or(id) != id) throw damaged(file, "the token '" + content + "' has two numbers");
    if (known && tokens.text(id) != content)
      throw damaged(file, "the added token '" + content + "' is one of bytes, too, which is not computed here");
    if (!known && tokens.has(id)) throw damaged(file, "two tokens have the number " + std::to_string(id));
    if (!known) tokens.add(content, TokenTable::Kind::text, id);
    added[at(token, "normalized") == true ? 1 : 0].add(content, id);
  }
  void add_merge(std::string_view left, std::string_view right) {
    const auto a = tokens.find_spelled(left), b = tokens.find_spelled(right);
    if (!a || !b || !tokens.find_spelled(std::string(left) + std::string(right)))
      throw damaged(file, "its merge " + std::to_string(merges_read) + ", of '" + std::string(left) + "' and '" +
                              std::string(right) + "', is of tokens that the vocabulary has not");
    ++merges_read;
    if (bytes_of_spelled(left) && bytes_of_spelled(right)) merges.add(*a, *b);  // no text begins as others
  }
  /// How texts are cut before they merge: GPT-2's expression, or one of `pieces_patterns` and then none.
  void read_cutting(const Json& how) {
    Json steps = type_of(how) == "Sequence" ? at(how, "pretokenizers") : Json::array({how});
    if (!steps.is_array() || steps.empty() || steps.size() > 2 || type_of(steps.back()) != "ByteLevel")
      throw damaged(file, "its pre_tokenizer is " + type_of(how) + "; ByteLevel is read, alone or behind a Split");
    const Json& level = steps.back();
    const bool cuts = !(at(level, "use_regex") == false);  // where it is not said it does
    prefix_space = at(level, "add_prefix_space") == true;
    if (steps.size() == 1) {
      if (!cuts) throw damaged(file, "its pre_tokenizer cuts texts nowhere, which is not computed here");
      return;
    }
    const Json& pattern = at(at(steps[0], "pattern"), "Regex");
    for (const PiecesPattern& known : pieces_patterns)
      if (type_of(steps[0]) == "Split" && at(steps[0], "behavior") == "Isolated" && at(steps[0], "invert") != true &&
          pattern == known.pattern && !cuts && !prefix_space) {
        pieces = known.pieces;
        return;
      }
    throw damaged(file, "its pre_tokenizer cuts texts by " +
                            (pattern.is_string() ? pattern.get<std::string>().substr(0, 300) : type_of(steps[0])) +
                            "; the expressions of GPT-2, Llama 3 and Qwen 2 are read");
  }
  /// What is put about a text: the special tokens of the template for a single one.
  void read_specials(const TokenizerJson& in, const Json& how) {
    if (how.is_null() || type_of(how) == "ByteLevel") return;
    if (type_of(how) == "Sequence") {
      for (const Json& step : at(how, "processors")) {
        if (type_of(step) == "Sequence") throw damaged(file, "its post_processor has a Sequence in a Sequence");
        read_specials(in, step);
      }
      return;
    }
    if (type_of(how) != "TemplateProcessing")
      throw damaged(file, "its post_processor is " + type_of(how) + "; ByteLevel and TemplateProcessing are read");
    bool is_behind = false;
    for (const Json& part : at(how, "single")) {
      if (at(part, "Sequence").is_object()) {
        is_behind = true;
        continue;
      }
      const Json& name = at(at(part, "SpecialToken"), "id");
      const Json& numbers = name.is_string()
                                ? at(at(at(how, "special_tokens"), name.get_ref<const std::string&>().c_str()), "ids")
                                : name;
      if (!numbers.is_array()) throw damaged(file, "its post_processor names a special token that it has not");
      for (const Json& id : numbers) (is_behind ? behind : before).push_back(in.number(id, "of the post_processor"));
    }
  }

  std::size_t merges_read = 0;
};

}  // namespace parallel::internals
