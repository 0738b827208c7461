// Tokenizers: the tokens are those of Hugging Face's library, text by text, and the text comes back.
#include <fstream>

#include <parallel/file/tokenizer.hpp>

#include "files.hpp"

using namespace parallel;
using files::Folder;
using files::said;

namespace {

using Json = nlohmann::json;

TEST_CASE("texts are the tokens that Python's library makes of them") {
  std::map<std::string, Tokenizer> tokenizers;
  for (const char* name : {"gpt2", "prefixed", "llama3", "qwen2"})
    tokenizers.emplace(name, Tokenizer(files::fixture(name + std::string(".tokenizer.json"))));
  const Tokenizer of_two(files::fixture("vocab.json"), files::fixture("merges.txt"));
  std::ifstream cases(files::fixture("tokenized.jsonl"));
  long texts = 0, tokens = 0, wrong = 0;
  for (std::string line; std::getline(cases, line); ++texts) {
    const Json of = Json::parse(line);
    const auto& tokenizer = tokenizers.at(of["of"].get<std::string>());
    const auto text = of["text"].get<std::string>();
    const auto expected = of["plain"].get<std::vector<int>>();
    tokens += static_cast<long>(expected.size());
    const bool same = tokenizer.encode(text, false) == expected && tokenizer.encode(text) == of["ids"] &&
                      (of["of"] != "gpt2" || of_two.encode(text) == expected);
    if (!same && ++wrong <= 3) MESSAGE(line << "\n" << Json(tokenizer.encode(text)).dump());
    const std::string back = tokenizer.decode(expected);
    CHECK(back == of["back"]);
    CHECK((back == text || of["of"] == "prefixed"));
  }
  MESSAGE(texts << " texts, " << tokens << " tokens");
  CHECK(texts >= 500);
  CHECK(wrong == 0);
}

TEST_CASE("texts are the tokens that tiktoken makes of them") {
  const std::string file = files::fixture("vocabulary.tiktoken");
  const std::map<std::string, int> specials{{"<|endoftext|>", 0}, {"<|end|>", 1000}};
  const Tokenizer gpt2(Tiktoken{file, Pieces::gpt2, specials}), llama3(Tiktoken{file, Pieces::llama3, specials});
  std::ifstream cases(files::fixture("tiktokenized.jsonl"));
  long texts = 0, wrong = 0;
  for (std::string line; std::getline(cases, line); ++texts) {
    const Json of = Json::parse(line);
    const Tokenizer& tokenizer = of["of"] == "gpt2" ? gpt2 : llama3;
    const std::vector<int> expected = of["ids"];
    const auto text = of["text"].get<std::string>();
    if (tokenizer.encode(text) != expected && ++wrong <= 3)
      MESSAGE(line << "\n" << Json(tokenizer.encode(text)).dump());
    CHECK(tokenizer.decode(expected) == text);
  }
  CHECK(texts >= 300);
  CHECK(wrong == 0);

  const Folder folder;
  const std::string other = folder / "file";
  const auto says = [&](const std::string& lines, const std::map<std::string, int>& special = {}) {
    files::write(other, lines);
    return said(other, [&] { Tokenizer{Tiktoken{other, Pieces::gpt2, special}}; }).sentence;
  };
  CHECK(says("YQ== 0\r\n\nYWI= 1\nYWJj 2").empty());
  for (const char* line : {"YQ=", "YQ==", "YQ== ", "YQ== x", "YQ== -1", "YQ== 1 ", "YQ== 3000000000", " 1", "Y=== 1",
                           "YQ==YQ== 1", "Y=Q= 1", "YQ\xc3\xa9 1"})
    CHECK(says(line) == ": line 1 is no token in base64 and its number");
  CHECK(says(std::string(1368, 'A') + " 0").empty());
  CHECK(says("YQ== 20000") == ": a token has the number 20000, though there are but 1");
  CHECK(says("YQ== 0\nYQ== 1") == ": line 2 has a token that is there before");
  CHECK(says("YQ== 0\nYg== 0") == ": line 2 has the number 0, as one before");
  CHECK(says("YQ== 0", {{"x", 0}}) == ": the special token 'x', 0, is one of its tokens, or none");
  CHECK(said(folder / "none", [&] { Tokenizer{Tiktoken{folder / "none"}}; }).code == exit_code::missing_input);
}

TEST_CASE("pieces are those of each expression; whole words go before merges where the file says so") {
  const auto pieces = [](const std::string& text, internals::Pieces how) {
    std::string all;
    internals::PieceReader reader(text, how);
    while (const auto piece = reader.next()) all += (all.empty() ? "" : "|") + std::string(*piece);
    return all;
  };
  const std::string text = "12345 x'\u017fy'LLz";
  CHECK(pieces(text, internals::Pieces::gpt2) == "12345| x|'|\u017fy|'|LLz");
  CHECK(pieces(text, internals::Pieces::llama3) == "123|45| x|'\u017f|y|'LL|z");
  CHECK(pieces(text, internals::Pieces::qwen2) == "1|2|3|4|5| x|'\u017f|y|'LL|z");
  const Folder folder;
  Json json = Json::parse(files::read(files::fixture("llama3.tokenizer.json")));
  json["model"]["merges"] = Json::array();
  files::write(folder / "file", json.dump());
  CHECK(Tokenizer(folder / "file").encode(" the", false).size() == 1);
  json["model"]["ignore_merges"] = false;
  files::write(folder / "file", json.dump());
  CHECK(Tokenizer(folder / "file").encode(" the", false).size() == 4);
}

TEST_CASE("bytes that are no text come back; tokens are found by name") {
  const Tokenizer tokenizer(files::fixture("gpt2.tokenizer.json"));
  CHECK(tokenizer.size() == 500);
  CHECK(tokenizer.find("<|endoftext|>") == 0);
  CHECK(tokenizer.find("\u0120the").has_value());
  CHECK(!tokenizer.find("not a token").has_value());
  std::string bytes;
  for (int i = 0; i < 3000; ++i) bytes += static_cast<char>(i * i * 31 >> 3);
  CHECK(tokenizer.decode(tokenizer.encode(bytes)) == bytes);
  const std::string one(200'000, 'a');  // in the time of its length
  CHECK(tokenizer.decode(tokenizer.encode(one)) == one);
  const std::string file = files::fixture("gpt2.tokenizer.json");
  const std::vector<int> none{0, 500};
  CHECK(said(file, [&] { tokenizer.decode(none); }).sentence == ": it has no token 500");
}

TEST_CASE("what is not computed is refused in a sentence") {
  const Folder folder;
  const std::string file = folder / "file";
  const Json whole = Json::parse(files::read(files::fixture("llama3.tokenizer.json")));
  const auto says = [&](const std::string& place, const Json& value) {
    Json other = whole;
    other[Json::json_pointer(place)] = value;
    files::write(file, other.dump());
    const auto s = said(file, [&] { Tokenizer{file}; });
    CHECK(s.code == (s.sentence.empty() ? 0 : exit_code::bad_data));
    return s.sentence;
  };
  CHECK(says("/version", "1.0").empty());
  CHECK(says("/normalizer", {{"type", "NFC"}}) == ": it has a normalizer, NFC, which is not computed here");
  CHECK(says("/model/type", "WordPiece") == ": its model is WordPiece; BPE is read");
  CHECK(says("/model/byte_fallback", true) == ": its model has byte_fallback, which is not computed here");
  CHECK(says("/model/unk_token", "<unk>") == ": its model has unk_token, which is not computed here");
  CHECK(says("/model/vocab", 3) == ": it has no vocabulary");
  CHECK(says("/model/vocab/A", -1) == ": the token 'A' has a number that is none");
  CHECK(says("/model/vocab/A", 7) == ": two tokens have the number 7");
  CHECK(says("/model/merges/0", "\u0120 nothing") ==
        ": its merge 0, of '\u0120' and 'nothing', is of tokens that the vocabulary has not");
  CHECK(says("/model/merges/1", 3) == ": its merge 1 is no pair of texts");
  CHECK(says("/model/merges/0", "a b c") == ": its merge 0 is no pair of tokens with a space between");
  CHECK(says("/pre_tokenizer/pretokenizers/0/pattern/Regex", "a+") ==
        ": its pre_tokenizer cuts texts by a+; the expressions of GPT-2, Llama 3 and Qwen 2 are read");
  CHECK(says("/pre_tokenizer", {{"type", "Whitespace"}}) ==
        ": its pre_tokenizer is Whitespace; ByteLevel is read, alone or behind a Split");
  CHECK(says("/pre_tokenizer", nullptr) ==
        ": its pre_tokenizer is of no type; ByteLevel is read, alone or behind a Split");
  CHECK(says("/added_tokens/0/lstrip", true) ==
        ": the added token '<|endoftext|>' has lstrip, which is not computed here");
  CHECK(says("/post_processor", {{"type", "BertProcessing"}}) ==
        ": its post_processor is BertProcessing; ByteLevel and TemplateProcessing are read");
  files::write(file, "{\"model\":");
  CHECK(said(file, [&] { Tokenizer{file}; }).sentence == ": it is no JSON, or none of names and values");
  files::write(file, R"({"a": 0})");
  CHECK(said(file, [&] { Tokenizer{file}; }).sentence ==
        ": it is no tokenizer.json, which has a model; a vocabulary, as vocab.json or encoder.json, is read with its "
        "merges: Tokenizer(\"vocab.json\", \"merges.txt\")");
  CHECK(said(folder / "none", [&] { Tokenizer{folder / "none"}; }).code == exit_code::missing_input);
  files::write(file, R"({"a": 0, "a": 1})");
  files::write(folder / "merges", "");
  CHECK(said(file, [&] { Tokenizer(file, folder / "merges"); }).sentence == ": the token 'a' is there twice");
  files::write(file, R"({"a": 0})");
  files::write(folder / "merges", "#version: 0.2\na b\n");
  CHECK(said(folder / "merges", [&] { Tokenizer(file, folder / "merges"); }).sentence ==
        ": its merge 0, of 'a' and 'b', is of tokens that the vocabulary has not");
  files::write(folder / "merges", "");
  CHECK(said(folder / "merges", [&] { Tokenizer(file, folder / "merges").encode("b"); }).sentence ==
        ": it has no token for the byte 98, which a text has");
}

}  // namespace
