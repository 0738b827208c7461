// Goes through a tokenizer.json and hands on its tokens and merges one by one, so that no more of it is held at once
// than its settings. Needs nlohmann-json.
#pragma once
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <parallel/file/mapped_file.hpp>

namespace parallel::internals {

/// A file of JSON, gone through as often as is wanted.
class TokenizerJson {
 public:
  using Json = nlohmann::json;
  static constexpr int most_settings = 10'000;  ///< values; files have some tens
  static constexpr int deepest = 16;

  /// Throws Failure(missing_input).
  explicit TokenizerJson(const std::string& file) : in_(file) {}

  /// Hugging Face's. Calls `token(text, number)` for what stands in model.vocab, `merge(left, right)` for each pair of
  /// model.merges, and `added(object)` for each of added_tokens, in the order of the file, and returns what else is
  /// known here. Throws Failure(bad_data).
  template <class Token, class Merge, class Added>
  Json settings(Token token, Merge merge, Added added) const {
    std::string first, second, text;  // names within the whole, within the model, of a token
    long merges = 0;
    int values = 0, of_pair = 0;
    const auto in_vocabulary = [&](Event event, Json& value) {
      if (event == Event::key)
        text = value.get_ref<const std::string&>();
      else
        token(text, number(value, text));
      return false;
    };
    const auto in_merges = [&](int depth, Event event, Json& value) {
      const bool is_text = event == Event::value && value.is_string();
      if (event == Event::array_start && depth == 3) {
        of_pair = 0;
        return true;
      }
      if (is_text && depth == 4 && ++of_pair <= 2) return true;
      if (is_text && depth == 3) {
        const std::string_view pair = value.get_ref<const std::string&>();
        const std::size_t space = pair.find(' ');
        if (space == std::string_view::npos || pair.find(' ', space + 1) != std::string_view::npos)
          throw damaged(in_.file(),
                        "its merge " + std::to_string(merges) + " is no pair of tokens with a space between");
        merge(pair.substr(0, space), pair.substr(space + 1));
      } else if (event == Event::array_end && of_pair == 2) {
        merge(value[0].get_ref<const std::string&>(), value[1].get_ref<const std::string&>());
      } else {
        throw damaged(in_.file(), "its merge " + std::to_string(merges) + " is no pair of texts");
      }
      ++merges;
      return false;
    };
    const auto in_added = [&](int depth, Event event, Json& value) {
      if (event == Event::key && depth == 3)
        return std::find(of_added.begin(), of_added.end(), value.get_ref<const std::string&>()) != of_added.end();
      if (depth > 2) return event == Event::value && depth == 3;
      if (event == Event::object_start) return true;
      added(static_cast<const Json&>(value));
      return false;
    };
    return walked([&](int depth, Event event, Json& value) {
      if (event == Event::key && depth == 1) {
        first = value.get_ref<const std::string&>();
        second.clear();
      }
      if (std::find(sections.begin(), sections.end(), first) == sections.end()) return depth == 0;
      if (event == Event::key && depth == 2) second = value.get_ref<const std::string&>();
      if (first == "model" && second == "vocab" && depth > 2) return in_vocabulary(event, value);
      if (first == "model" && second == "merges" && depth > 2) return in_merges(depth, event, value);
      if (first == "added_tokens" && depth > 1) return in_added(depth, event, value);
      const bool begins = event == Event::value || event == Event::object_start || event == Event::array_start;
      if (begins && ++values > most_settings)
        throw damaged(in_.file(), "it has more than " + std::to_string(most_settings) + " settings");
      return true;
    });
  }

  /// GPT-2's encoder.json: calls `token(text, number)` for all that stands in it. Throws Failure(bad_data).
  template <class Token>
  void tokens(Token token) const {
    std::string text;
    walked([&](int depth, Event event, Json& value) {
      if (depth == 0) return true;
      if (event == Event::key)
        text = value.get_ref<const std::string&>();
      else
        token(text, number(value, text));
      return false;
    });
  }

  /// Of a token. Throws Failure(bad_data).
  int number(const Json& value, const std::string& token) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<int>::max()})
      throw damaged(in_.file(), "the token '" + token + "' has a number that is none");
    return value.get<int>();
  }

 private:
  using Event = Json::parse_event_t;
  static constexpr std::array<std::string_view, 5> sections{"normalizer", "model", "added_tokens", "pre_tokenizer",
                                                            "post_processor"};
  static constexpr std::array<std::string_view, 6> of_added{"content", "id",     "single_word",
                                                            "lstrip",  "rstrip", "normalized"};
  /// What is left where `keeps` says of each value, name, beginning and end whether it is kept.
  template <class F>
  Json walked(F keeps) const {
    const std::string_view text = in_.text();
    Json all = Json::parse(
        text.begin(), text.end(),
        [&](int depth, Event event, Json& value) {
          if (depth > deepest) throw damaged(in_.file(), "it is nested deeper than tokenizers are");
          return keeps(depth, event, value);
        },
        false);
    if (!all.is_object()) throw damaged(in_.file(), "it is no JSON, or none of names and values");
    return all;
  }

  MappedFile in_;
};

}  // namespace parallel::internals
