// What readers of files take in memory, beside the file, which is mapped: nothing that grows with it, or what
// docs/files.md says, so many times its size.
#include <filesystem>
#include <fstream>
#include <numeric>

#include <parallel/file/csv.hpp>
#include <parallel/file/idx.hpp>
#include <parallel/file/llmc.hpp>
#include <parallel/file/npy.hpp>
#include <parallel/file/npz.hpp>
#include <parallel/file/safetensors.hpp>
#include <parallel/file/sharded_safetensors.hpp>
#include <parallel/file/tokenizer.hpp>
#include <parallel/file/tokens.hpp>
#include <parallel/file/write_safetensors.hpp>

#include "files.hpp"
#include "news.hpp"

using namespace parallel;
using namespace parallel::internals;
using files::Folder;

namespace {

constexpr std::int64_t MB = 1'000'000, little = 20'000;  // bytes

/// What a reader takes at most, per byte of its files.
template <class F>
double taken_per_byte(const std::string& what, const std::vector<std::string>& files, F read) {
  std::int64_t size = 0;
  for (const std::string& file : files) size += static_cast<std::int64_t>(std::filesystem::file_size(file));
  const std::int64_t taken = news::taken_by(read);
  MESSAGE(what << ": " << taken << " bytes, its files have " << size);
  CHECK(size > 2 * MB);
  return static_cast<double>(taken - little) / static_cast<double>(size);
}
/// A file that begins so and goes on with zeros, which take no room on the disk.
void write_begin(const std::string& file, const std::string& begin, std::int64_t size) {
  files::write(file, begin);
  std::filesystem::resize_file(file, static_cast<std::uintmax_t>(size));
}
const std::vector<float> row(1000, 0.5F);

/// A vocabulary of so many tokens: bytes, and what two of them merge to, letter behind letter.
struct Words {
  std::vector<std::string> tokens{}, merges{};
  explicit Words(std::size_t size) {
    const auto alphabet = byte_alphabet();
    tokens.assign(alphabet.begin(), alphabet.end());
    const std::size_t first = tokens.size();
    for (std::size_t i = 0; tokens.size() < size; ++i) {
      const std::string left = i < 26 * 26 ? tokens['a' + i / 26] : tokens[first + i / 26 - 26],
                        right = tokens['a' + i % 26];
      merges.push_back(left + ' ' + right);
      tokens.push_back(left + right);
    }
  }
  /// What a token stands for.
  std::string bytes(std::size_t i) const { return i < 256 ? std::string(1, static_cast<char>(i)) : tokens[i]; }
};
std::string base64(const std::string& bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string all;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    const std::size_t there = std::min(bytes.size() - at, std::size_t{3});
    for (std::size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < there ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) all += i <= there ? digits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return all;
}

}  // namespace

TEST_CASE("what is mapped takes nothing that grows with the file") {
  const Folder folder;
  const std::string file = folder / "file";
  const auto nothing = [&](const std::string& what, const std::string& name, auto read) {
    CHECK(taken_per_byte(what, {name}, [&] { read(name); }) <= 0);
  };
  const auto ten_million = [](const FileEntry&, FileSink& sink) {
    for (int i = 0; i < 10'000; ++i) sink(row);
  };
  write_safetensors(folder / "model.safetensors", std::vector<FileEntry>{{"w", FileDType::F32, {10'000'000}}},
                    ten_million);
  nothing("safetensors", folder / "model.safetensors", [](const std::string& f) {
    const FileView<float> w = Safetensors(f)["w"].as<float>();
    CHECK(std::accumulate(w.begin(), w.end(), 0.0) == 5e6);
  });
  files::write(folder / "index.json", R"({"weight_map":{"w":"model.safetensors"}})");
  nothing("sharded", folder / "model.safetensors",
          [&](const std::string&) { CHECK(ShardedSafetensors(folder / "index.json")["w"].as<float>()[7] == 0.5F); });
  write_begin(file, npy::written(FileDType::F32, {1000, 10'000}), 40 * MB + 128);
  nothing(".npy", file, [](const std::string& f) { CHECK(read_npy(f).as<float>().size() == 10'000'000); });
  write_npz(file, std::vector<FileEntry>{{"w", FileDType::F32, {10'000'000}}}, ten_million);
  nothing(".npz", file, [](const std::string& f) { CHECK(Npz(f)["w"].elements() == 10'000'000); });
  write_begin(file, std::string("\0\0\x08\x03\0\x03\x0d\x40\0\0\0\x1c\0\0\0\x1c", 16), 200'000 * 28 * 28 + 16);
  nothing("IDX", file, [](const std::string& f) {
    CHECK(read_idx(f).shape == std::vector<std::int64_t>{200'000, 28, 28});
  });
  write_begin(file, "", 40 * MB);
  nothing("tokens", file, [](const std::string& f) { CHECK(TokenFile(f, TokenWidth::two).size() == 20'000'000); });
  const LlmcSizes sizes{
      .context = 64, .vocabulary = 50'000, .layers = 2, .heads = 2, .channels = 128, .padded = 50'048};
  const llmc::ModelLayout layout("", sizes, FileDType::F32);
  write_begin(file, layout.bytes(), layout.begin(layout.tensors().size()));
  nothing("llm.c", file, [](const std::string& f) { CHECK(LlmcModel(f)["wte"].as<float>().size() == 50'000 * 128); });
}

TEST_CASE("elements that lie at odd addresses are copied once") {
  const Folder folder;
  std::string bytes = "\"w\":{\"dtype\":\"F64\",\"shape\":[1000000],\"data_offsets\":[0,8000000]}}";
  bytes = "{" + std::string(bytes.size() % 2 == 0 ? 0 : 1, ' ') + bytes;
  write_begin(folder / "file", little_endian(std::uint64_t{bytes.size()}) + bytes,
              8 * MB + 8 + static_cast<std::int64_t>(bytes.size()));
  CHECK(taken_per_byte("safetensors at odd addresses", {folder / "file"},
                       [&] { CHECK(Safetensors(folder / "file")["w"].as<double>().size() == 1'000'000); }) <= 1);
}

TEST_CASE("a table takes its numbers") {
  const Folder folder;
  const std::string file = folder / "file";
  {
    std::ofstream out(file);
    out << "a,b,c,d\n";
    for (int i = 0; i < 2'500'000; ++i) out << "1,2,3,4\n";
  }
  CHECK(taken_per_byte("CSV of floats", {file}, [&] { CHECK(read_csv<float>(file).rows == 2'500'000); }) <= 2);
  CHECK(taken_per_byte("CSV of doubles", {file}, [&] { read_csv<double>(file); }) <= 4);
  CHECK(taken_per_byte("CSV, one column", {file}, [&] { read_csv<float>(file, {.columns = {"c"}}); }) <= 0.5);
  files::write(file, std::string(6 * MB, '\n') + "1\r2\r\r3");
  CHECK(taken_per_byte("CSV of empty lines", {file}, [&] {
          CHECK(read_csv<float>(file, {.header = false}).values == std::vector<float>{1, 2, 3});
        }) <= 0);
}

TEST_CASE("a tokenizer takes its tables") {
  const Folder folder;
  const std::string file = folder / "file", merges = folder / "merges";
  const Words of(200'000);
  nlohmann::json all, vocabulary;
  for (std::size_t i = 0; i < of.tokens.size(); ++i) vocabulary[of.tokens[i]] = i;
  all["model"] = {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", of.merges}};
  all["pre_tokenizer"] = {{"type", "ByteLevel"}};
  files::write(file, all.dump(2));
  const auto check_size = [&](const Tokenizer& read) { CHECK(read.size() == of.tokens.size()); };
  CHECK(taken_per_byte("tokenizer.json", {file}, [&] { check_size(Tokenizer(file)); }) <= 2);
  files::write(file, vocabulary.dump());
  std::string lines;
  for (const std::string& merge : of.merges) lines += merge + '\n';
  files::write(merges, lines);
  CHECK(taken_per_byte("encoder.json and vocab.bpe", {file, merges}, [&] { check_size(Tokenizer(file, merges)); }) <=
        2);
  std::string tiktoken;
  for (std::size_t i = 0; i < of.tokens.size(); ++i) tiktoken += base64(of.bytes(i)) + ' ' + std::to_string(i) + '\n';
  files::write(file, tiktoken);
  CHECK(taken_per_byte(".tiktoken", {file}, [&] { check_size(Tokenizer(Tiktoken{file})); }) <= 2);
}
TEST_CASE("a tokenizer takes no more where a file is another one") {
  const Folder folder;
  const std::string file = folder / "file";
  const auto repeated = [](const std::string& begin, const std::string& what, const std::string& end) {
    std::string all = begin;
    while (all.size() < 3 * MB) all += what + ',';
    all.back() = ' ';
    return all + end;
  };
  const std::string whole = R"("model":{"type":"BPE","vocab":{},"merges":[]},"pre_tokenizer":{"type":"ByteLevel"})";
  const auto taken = [&](const std::string& what, const std::string& text, bool is_read) {
    files::write(file, text);
    return taken_per_byte(what, {file}, [&] {
      bool was_read = true;
      try {
        const Tokenizer tokenizer(file);
      } catch (const Failure&) {
        was_read = false;
      }
      CHECK(was_read == is_read);
    });
  };
  CHECK(taken("unknown", repeated("{\"other\":[", "1", "]," + whole + "}"), true) <= 0);
  CHECK(taken("unknown, nested", repeated("{\"other\":[", "{\"a\":[1]}", "]," + whole + "}"), true) <= 0.05);
  CHECK(taken("unknown of an added token",
              repeated("{" + whole + R"(,"added_tokens":[{"id":0,"content":"x",)", R"("a":1)", "}]}"), true) <= 0);
  CHECK(taken("settings", repeated("{" + whole + ",\"post_processor\":{\"single\":[", "{}", "]}}"), false) <= 0.4);
  CHECK(taken("a merge", repeated("{\"model\":{\"merges\":[[", "\"a\"", "]]}}"), false) <= 0);
  CHECK(taken("depth", std::string(3 * MB, '['), false) <= 0);
  std::string added = "{" + whole + ",\"added_tokens\":[";
  for (int i = 0; i < 100'000; ++i)
    added += (i > 0 ? ",{\"id\":" : "{\"id\":") + std::to_string(i) + ",\"content\":\"<" + std::to_string(i) + ">\"}";
  CHECK(taken("added tokens", added + "]}", true) <= 2);
}
