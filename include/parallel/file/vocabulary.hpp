// A vocabulary of byte strings and how pairs of them merge, as Hugging Face, GPT-2 and tiktoken write it. Needs
// nlohmann-json.
#pragma once
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <parallel/file/mapped_file.hpp>
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

/// A vocabulary as tiktoken has it, lines of a token in base64 and its number: r50k_base.tiktoken, or Llama 3's
/// tokenizer.model. How texts are cut, and special tokens, the file does not say.
struct Tiktoken {
  std::string file;
  Pieces pieces = Pieces::gpt2;           ///< of r50k_base and p50k_base; cl100k_base and Llama 3 have Pieces::llama3
  std::map<std::string, int> specials{};  ///< {{"<|endoftext|>", 50256}}
};

/// Tokens that are found in a text before it is cut, and the bytes with which they begin.
struct AddedTokens {
  struct Added {
    std::string text;
    int id;
  };
  std::vector<Added> all{};
  std::array<bool, 256> begins{};
  void add(const std::string& text, int id) {
    all.push_back({text, id});
    begins[static_cast<unsigned char>(text[0])] = true;
  }
  /// Where the first of them stands, and which; of several there the longest.
  std::pair<std::size_t, const Added*> first(std::string_view text) const {
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (!begins[static_cast<unsigned char>(text[at])]) continue;
      const Added* longest = nullptr;
      for (const Added& a : all)
        if (text.substr(at).starts_with(a.text) && (longest == nullptr || a.text.size() > longest->text.size()))
          longest = &a;
      if (longest != nullptr) return {at, longest};
    }
    return {text.size(), nullptr};
  }
};

/// What such files say, and how texts are cut before their pieces merge.
struct Vocabulary {
  struct Merge {
    int rank, token;
  };

  std::string file;
  std::map<std::string, int, std::less<>> ids{};  ///< as the vocabulary writes them
  std::unordered_map<int, std::string> texts{};   ///< as texts have them
  std::unordered_map<std::uint64_t, Merge> merges{};
  std::array<std::string, 256> alphabet = byte_alphabet();
  std::array<int, 256> bytes{};
  std::array<AddedTokens, 2> added{};  ///< special ones, and those that a normalizer would change
  std::vector<int> before{}, behind{};
  Pieces pieces = Pieces::gpt2;
  bool prefix_space = false, whole_words = false;

  // Of the files that Tokenizer's constructors name, which say what they throw.
  explicit Vocabulary(const std::string& json_file) : file(json_file) {
    const Json all = parsed(json_file);
    if (const Json& normalizer = at(all, "normalizer"); !normalizer.is_null())
      throw damaged(file, "it has a normalizer, " + type_of(normalizer) + ", which is not computed here");
    const Json& model = at(all, "model");
    if (type_of(model) != "BPE") throw damaged(file, "its model is " + type_of(model) + "; BPE is read");
    for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"})
      if (const Json& value = at(model, key); !value.is_null() && value != "")
        throw damaged(file, "its model has " + std::string(key) + ", which is not computed here");
    if (at(model, "byte_fallback") == true)
      throw damaged(file, "its model has byte_fallback, which is not computed here");
    whole_words = at(model, "ignore_merges") == true;
    read_vocabulary(at(model, "vocab"));
    read_added(at(all, "added_tokens"));
    const Json& pairs = at(model, "merges");
    if (!pairs.is_array()) throw damaged(file, "its model has no list of merges");
    for (const Json& merge : pairs) {
      if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
        add_merge(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
      else if (merge.is_string())
        add_merge(merge.get_ref<const std::string&>());
      else
        throw damaged(file, "its merge " + std::to_string(rank) + " is no pair of texts");
    }
    read_cutting(at(all, "pre_tokenizer"));
    read_specials(at(all, "post_processor"));
  }
  Vocabulary(const std::string& encoder_json, const std::string& vocab_bpe) : file(encoder_json) {
    read_vocabulary(parsed(encoder_json));
    if (const auto end = ids.find(end_of_text); end != ids.end()) added[0].add(end->first, end->second);
    file = vocab_bpe;
    const MappedFile lines(vocab_bpe);
    std::string_view left = lines.text();
    for (bool first = true; !left.empty(); first = false) {
      std::string_view line = left.substr(0, left.find('\n'));
      left.remove_prefix(std::min(left.size(), line.size() + 1));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty() && !(first && line.starts_with("#version"))) add_merge(line);
    }
  }

  explicit Vocabulary(const Tiktoken& of) : file(of.file) {
    const MappedFile in(file);
    std::string_view left = in.text();
    for (std::size_t line = 1; !left.empty(); ++line) {
      const std::string_view now = left.substr(0, left.find('\n'));
      left.remove_prefix(std::min(left.size(), now.size() + 1));
      read_line(now.ends_with('\r') ? now.substr(0, now.size() - 1) : now, line);
    }
    find_bytes();
    add_all_merges();
    for (const auto& [text, id] : of.specials) {
      if (text.empty() || id < 0 || !ids.emplace(text, id).second || !texts.emplace(id, text).second)
        throw damaged(file,
                      "the special token '" + text + "', " + std::to_string(id) + ", is one of its tokens, or none");
      added[0].add(text, id);
    }
    pieces = of.pieces;
    whole_words = true;
  }

  std::string spelled(std::string_view text) const {
    std::string all;
    for (const char c : text) all += alphabet[static_cast<unsigned char>(c)];
    return all;
  }
  static std::uint64_t pair_of(int a, int b) {
    return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
  }

 private:
  using Json = nlohmann::json;
  static constexpr std::string_view end_of_text = "<|endoftext|>";

  static Json parsed(const std::string& file) {
    const MappedFile in(file);
    Json all = Json::parse(in.text().begin(), in.text().end(), nullptr, false);
    if (!all.is_object()) throw damaged(file, "it is no JSON, or none of names and values");
    return all;
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
  static int id_of(const std::string& file, const Json& number, const std::string& token) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<int>::max()})
      throw damaged(file, "the token '" + token + "' has a number that is none");
    return number.get<int>();
  }
  void read_vocabulary(const Json& vocabulary) {
    if (!vocabulary.is_object()) throw damaged(file, "it has no vocabulary");
    std::unordered_map<std::string_view, char> byte_of;
    for (std::size_t b = 0; b < 256; ++b) byte_of[alphabet[b]] = static_cast<char>(b);
    const auto text_of = [&](const std::string& token) {
      std::string text;
      for (std::size_t i = 0, size = 0; i < token.size(); i += size) {
        size = character_at(token, i).size;
        const auto byte = byte_of.find(std::string_view(token).substr(i, size));
        if (byte == byte_of.end()) return token;  // it is no bytes, but a text of its own
        text += byte->second;
      }
      return text;
    };
    for (const auto& [token, number] : vocabulary.items()) {
      const int id = id_of(file, number, token);
      ids.emplace(token, id);
      if (!texts.emplace(id, text_of(token)).second)
        throw damaged(file, "two tokens have the number " + std::to_string(id));
    }
    find_bytes();
  }
  void find_bytes() {
    for (std::size_t b = 0; b < 256; ++b) {
      const auto found = ids.find(alphabet[b]);
      bytes[b] = found == ids.end() ? -1 : found->second;
    }
  }
  /// Of tiktoken's file.
  void read_line(std::string_view line, std::size_t number) {
    if (line.empty()) return;
    const auto refused = [&](const std::string& why) {
      return damaged(file, "line " + std::to_string(number) + " " + why);
    };
    const std::size_t space = line.find(' ');
    const auto text = bytes_of_base64(line.substr(0, space));
    int id = -1;
    if (space != std::string_view::npos) {
      const char* const end = line.data() + line.size();
      if (const auto read = std::from_chars(line.data() + space + 1, end, id);
          read.ec != std::errc{} || read.ptr != end)
        id = -1;
    }
    if (!text || text->empty() || id < 0) throw refused("is no token in base64 and its number");
    if (text->size() > 1024) throw refused("has a token of more than 1024 bytes");  // each place to cut it is tried
    if (!ids.emplace(spelled(*text), id).second) throw refused("has a token that is there before");
    if (!texts.emplace(id, *text).second) throw refused("has the number " + std::to_string(id) + ", as one before");
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
  /// Any two tokens that together are a third merge, that of the lowest number first: so tiktoken merges.
  void add_all_merges() {
    std::unordered_map<std::string_view, int> numbers;
    for (const auto& [id, text] : texts) numbers.emplace(text, id);
    for (const auto& [id, whole] : texts) {
      const std::string_view text = whole;
      for (std::size_t cut = 1; cut < text.size(); ++cut) {
        const auto left = numbers.find(text.substr(0, cut)), right = numbers.find(text.substr(cut));
        if (left != numbers.end() && right != numbers.end()) merges[pair_of(left->second, right->second)] = {id, id};
      }
    }
  }
  void read_added(const Json& tokens) {
    for (const Json& token : tokens) {
      const Json& text = at(token, "content");
      if (!text.is_string() || text == "") throw damaged(file, "an added token has no content");
      const auto& content = text.get_ref<const std::string&>();
      for (const char* key : {"single_word", "lstrip", "rstrip"})
        if (at(token, key) == true)
          throw damaged(file, "the added token '" + content + "' has " + key + ", which is not computed here");
      const int id = id_of(file, at(token, "id"), content);
      const auto [known, is_new] = ids.emplace(content, id);
      if (known->second != id) throw damaged(file, "the token '" + content + "' has two numbers");
      if (is_new && !texts.emplace(id, content).second)
        throw damaged(file, "two tokens have the number " + std::to_string(id));
      added[at(token, "normalized") == true ? 1 : 0].add(content, id);
    }
  }
  void add_merge(std::string_view line) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      throw damaged(file, "its merge " + std::to_string(rank) + " is no pair of tokens with a space between");
    add_merge(line.substr(0, space), line.substr(space + 1));
  }
  void add_merge(std::string_view left, std::string_view right) {
    const std::string both = std::string(left) + std::string(right);
    const auto a = ids.find(left), b = ids.find(right), merged = ids.find(both);
    if (a == ids.end() || b == ids.end() || merged == ids.end())
      throw damaged(file, "its merge " + std::to_string(rank) + ", of '" + std::string(left) + "' and '" +
                              std::string(right) + "', is of tokens that the vocabulary has not");
    merges[pair_of(a->second, b->second)] = {rank++, merged->second};  // of equal ones the last counts
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
  void read_specials(const Json& how) {
    if (how.is_null() || type_of(how) == "ByteLevel") return;
    if (type_of(how) == "Sequence") {
      for (const Json& step : at(how, "processors")) {
        if (type_of(step) == "Sequence") throw damaged(file, "its post_processor has a Sequence in a Sequence");
        read_specials(step);
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
      for (const Json& id : numbers) (is_behind ? behind : before).push_back(id_of(file, id, "of the post_processor"));
    }
  }

  int rank = 0;  // of the next merge
};

}  // namespace parallel::internals
