// Safetensors: read as Python writes them and written as Python does, byte for byte; what is damaged is one sentence.
#include <numeric>
#include <sys/resource.h>

#include <parallel/file/safetensors.hpp>
#include <parallel/file/write_safetensors.hpp>

#include "files.hpp"

using namespace parallel;
using files::Folder;
using files::said;

namespace {

/// Written anew from what was read.
void copy(const Safetensors& from, const std::string& to, std::size_t piece) {
  std::vector<FileEntry> entries;
  for (std::size_t i = from.size(); i-- > 0;) entries.push_back(from[i]);
  write_safetensors(to, entries,
                    [&](const FileEntry& entry, auto& sink) {
                      const FileTensor tensor = from[entry.name];
                      CHECK(static_cast<const FileEntry&>(tensor) == entry);
                      for (std::size_t at = 0; at < tensor.bytes.size(); at += piece)
                        sink(tensor.bytes.subspan(at, std::min(piece, tensor.bytes.size() - at)));
                    },
                    {from.metadata().begin(), from.metadata().end()});
}

/// A file with this header, and so many bytes behind it.
std::string with(const std::string& header, std::size_t behind = 0) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(behind, '\1');
}

TEST_CASE("what is written is what Python writes") {
  const Folder folder;
  for (const char* name : {"types", "names", "empty", "small"}) {
    CAPTURE(name);
    const std::string file = files::fixture(name + std::string(".safetensors"));
    for (const std::size_t piece : {1U, 7U, 1U << 20}) {
      copy(Safetensors(file), folder / "copy", piece);
      CHECK(files::read(folder / "copy") == files::read(file));
    }
  }
  CHECK(folder.count() == 1);  // nothing lies beside it
}

template <class T>
void counts_up(const Safetensors& file, const std::string& name) {
  const FileTensor tensor = file["of " + name];
  CHECK(tensor.shape == std::vector<std::int64_t>{2, 3});
  const FileView<T> all = tensor.as<T>();
  REQUIRE(all.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(all[i] == T(static_cast<std::uint8_t>(i + 1)));
}

TEST_CASE("elements are those of the file, and of its type") {
  const std::string name = files::fixture("types.safetensors");
  const Safetensors file(name);
  CHECK(file.size() == 20);
  counts_up<std::uint8_t>(file, "uint8");
  counts_up<std::uint8_t>(file, "bool");
  counts_up<std::int8_t>(file, "int8");
  counts_up<std::int16_t>(file, "int16");
  counts_up<std::uint16_t>(file, "uint16");
  counts_up<int>(file, "int32");
  counts_up<unsigned>(file, "uint32");
  counts_up<long>(file, "int64");
  counts_up<unsigned long long>(file, "uint64");
  counts_up<float>(file, "float32");
  counts_up<double>(file, "float64");
  counts_up<std::complex<float>>(file, "complex64");
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(static_cast<float>(file["of float16"].as<float16>()[i]) == static_cast<float>(i + 1));
    CHECK(file["of bfloat16"].as<bfloat16>()[i].bits == i + 1);
  }
  CHECK(file["of float4_e2m1fn_x2"].shape == std::vector<std::int64_t>{2, 6});  // as it was given half as many
  CHECK(file["of float4_e2m1fn_x2"].bytes.size() == 6);
  CHECK(file.metadata().at("format") == "pt");
  CHECK(file.contains("of int8"));
  CHECK(!file.contains("of int"));
  const auto other = said(name, [&] { file["of float16"].as<float>(); });
  CHECK(other.sentence ==
        ": the tensor of float16 has elements of F16, but F32 was asked for; ask for what the file has, and convert");
  CHECK(other.code == exit_code::bad_data);
  CHECK(said(name, [&] { file["of int"]; }).sentence ==
        ": it has no tensor of int, among its 20; nearest are of int8, of int64, of int32");
}

TEST_CASE("a view outlives its file's object, and elements may lie anywhere") {
  const Folder folder;
  const auto view = [&] { return Safetensors(files::fixture("small.safetensors"))["w"].as<float>(); }();
  CHECK(std::accumulate(view.begin(), view.end(), 0.0F) == 10);
  std::string bytes = with(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                           R"("b":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})");
  const float numbers[] = {1.5F, -2.5F};
  bytes += 'x' + std::string(reinterpret_cast<const char*>(numbers), 8);
  files::write(folder / "odd", bytes);
  const auto odd = Safetensors(folder / "odd")["b"].as<float>();
  CHECK((odd[0] == 1.5F && odd[1] == -2.5F));
}

TEST_CASE("what is damaged is one sentence") {
  const Folder folder;
  const std::string file = folder / "file";
  const auto sentence = [&](const std::string& bytes) {
    files::write(file, bytes);
    const auto s = said(file, [&] { Safetensors{file}; });
    CHECK(s.code == (s.sentence.empty() ? 0 : exit_code::bad_data));
    return s.sentence;
  };
  const auto has = [&](const std::string& bytes, const std::string& part) {
    const std::string s = sentence(bytes);
    CAPTURE(s);
    CHECK((part.empty() ? s.empty() : s.find(part) != std::string::npos));
  };
  const auto tensor = [](const std::string& name, const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  };
  const std::string one = tensor("a", "U8", "[2]", "[0,2]");

  has(with("{" + one + "}", 2), "");
  has(with("{" + one + "} \n ", 2), "");
  has("", "it has 0 bytes");
  has("1234567", "it has 7 bytes");
  has(std::string("\x01\0\0\0\0\0\0\0", 8),
      "the file ends before; it was cut off, or is no safetensors, as a pointer of Git LFS is none: fetch or write it again");
  has(std::string(8, '\xff'), "18446744073709551615 bytes, but the file ends before");
  has(with(""), "no {");
  has(with(" {}"), "no {");
  has(with("{}x"), "ceases to be JSON");
  has(with("{\"\xff\":1}"), "ceases to be JSON");
  has(with(R"({"\ud800":1})"), "ceases to be JSON");
  has(with("{" + one + "," + one + "}", 2), "begins at 0, but what is before it ends at 2");
  has(with("{" + tensor("a", "U8", "[0]", "[0,0]") + "," + tensor("a", "U8", "[0]", "[0,0]") + "}"), "two tensors 'a'");
  has(with("{" + one + "}", 1), "tensors end at 2, but behind its header it has 1 bytes");
  has(with("{" + one + "}", 3), "tensors end at 2, but behind its header it has 3 bytes");
  has(with("{}", 1), "tensors end at 0");
  has(with("{" + tensor("a", "U8", "[2]", "[1,3]") + "}", 3), "begins at 1, but what is before it ends at 0");
  has(with("{" + one + "," + tensor("b", "U8", "[2]", "[3,5]") + "}", 5), "begins at 3");
  has(with("{" + tensor("a", "U8", "[2]", "[0,3]") + "}", 3), "has 2 bytes by its shape");
  has(with("{" + tensor("a", "U8", "[2]", "[2,0]") + "}", 2), "has 2 bytes by its shape");
  has(with("{" + tensor("a", "U9", "[2]", "[0,2]") + "}", 2), "a dtype that safetensors has not: 'U9'");
  has(with("{" + tensor("a", "F4", "[3]", "[0,2]") + "}", 2), "do not fill their last byte");
  has(with("{" + tensor("a", "F6_E2M3", "[4]", "[0,3]") + "}", 3), "");
  has(with("{" + tensor("a", "U8", "[4294967296,4294967296]", "[0,0]") + "}"), "can be counted");
  has(with("{" + tensor("a", "F64", "[2305843009213693952]", "[0,0]") + "}"), "can be counted");
  has(with("{" + tensor("a", "U8", "[9223372036854775808,0]", "[0,0]") + "}"), "shape that is none");
  has(with("{" + tensor("a", "U8", "[-1]", "[0,0]") + "}"), "has -1 in its shape");
  has(with("{" + tensor("a", "U8", "[1.0]", "[0,1]") + "}", 1), "has 1.0 in its shape");
  has(with("{" + tensor("a", "U8", "[[1]]", "[0,1]") + "}", 1), "an array in its shape");
  has(with("{" + tensor("a", "U8", "[1]", "[0,1,2]") + "}", 1), "has 2 in its data_offsets");
  has(with("{" + tensor("a", "U8", "[1]", "[0]") + "}", 1), "not two numbers");
  has(with("{" + tensor("a", "U8", "[1]", "[0,18446744073709551616]") + "}", 1), "in its data_offsets");
  has(with("{" + tensor("a", "U8", "[1]", "1") + "}", 1), "has 1 as its data_offsets");
  has(with(R"({"a":{"dtype":["U8"]}})"), "an array as its dtype");
  has(with(R"({"a":{"dtype":"U8","dtype":"U8"}})"), "has its dtype twice");
  has(with(R"({"a":{"dtype":"U8"}})"), "has no shape");
  has(with(R"({"a":{"dtype":"U8","size":3}})"), "a field that safetensors has not, 'size'");
  has(with(R"({"a":null})"), "null where tensors are described");
  has(with(R"({"__metadata__":{"a":1}})"), "has 1; expected are strings alone");
  has(with(R"({"__metadata__":{"a":{}}})"), "an object; expected are strings alone");
  has(with(R"({"__metadata__":{"a":"1","a":"2"}})"), "its __metadata__ has 'a' twice");
  has(with(R"({"__metadata__":{},"__metadata__":{}})"), "__metadata__ twice");
  has(with("{\"a\":" + std::string(1'000'000, '[')), "an array where tensors are described");
  has(with("{\"a\":" + std::string(1'000'000, '{')), "ceases to be JSON");
  CHECK(said(folder / "none", [&] { Safetensors{folder / "none"}; }).code == exit_code::missing_input);
  CHECK(said(folder / "", [&] { Safetensors{folder / ""}; }).code == exit_code::missing_input);
}

TEST_CASE("a byte that is another, or is not there: a sentence, or what a reader cannot know") {
  const Folder folder;
  const std::string file = folder / "file", whole = files::read(files::fixture("small.safetensors"));
  const std::size_t header = 8 + static_cast<unsigned char>(whole[0]);
  long refused = 0, read = 0;
  const auto one = [&](const std::string& bytes) {
    files::write(file, bytes);
    const auto s = said(file, [&] {
      const Safetensors all(file);
      std::size_t sum = 0;
      for (std::size_t i = 0; i < all.size(); ++i) sum += all[i].bytes.size();
      CHECK(sum == bytes.size() - 8 - static_cast<unsigned char>(bytes[0]));
    });
    CHECK((s.code == 0 || (s.code == exit_code::bad_data && s.sentence.size() > 10)));
    ++(s.code == 0 ? read : refused);
  };
  for (std::size_t at = 0; at < header; ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(byte);
      one(bytes);
    }
    one(whole.substr(0, at));
    one(whole.substr(0, at) + whole.substr(at + 1));
  }
  MESSAGE(refused << " refused, " << read << " read");  // names and texts may be others
  CHECK(refused > 20 * read);
}

TEST_CASE("a header of a million tensors takes no more than twice its memory") {
  const Folder folder;
  {
    std::ofstream file(folder / "many", std::ios::binary);
    const auto line = [](long i) {
      return (i > 0 ? ",\"" : "\"") + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
    };
    std::uint64_t length = 2;
    for (long i = 0; i < 1'000'000; ++i) length += line(i).size();
    file.write(reinterpret_cast<const char*>(&length), 8) << "{";
    for (long i = 0; i < 1'000'000; ++i) file << line(i);
    file << "}";
  }
  const auto most = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss * 1024L;
  };
  const auto size = static_cast<long>(std::filesystem::file_size(folder / "many"));
  const long before = most();
  const Safetensors many(folder / "many");
  const long took = most() - before;
  MESSAGE(size << " bytes of a header, " << took << " bytes taken");
  CHECK(took <= 3 * size);  // of which the mapped file is one
  CHECK(many.size() == 1'000'000);
  CHECK(many["999999"].shape == std::vector<std::int64_t>{0});
}

TEST_CASE("what cannot be written leaves the file as it was") {
  const Folder folder;
  const std::string file = folder / "file";
  const std::vector<float> six(6, 1.0F);
  const auto all = [&](const FileEntry&, auto& sink) { sink(six); };
  write_safetensors(file, {{"w", FileDType::F32, {2, 3}}}, all);
  const std::string was = files::read(file);
  const auto refused = [&](const std::vector<FileEntry>& entries, auto write) {
    const auto s = said(file, [&] { write_safetensors(file, entries, write); });
    CHECK(files::read(file) == was);
    CHECK(folder.count() == 1);
    return s.sentence;
  };
  CHECK(refused({{"w", FileDType::F32, {2, 4}}}, all) ==
        ": the tensor 'w', which is to be written, has 32 bytes by its shape, but 24 were given");
  CHECK(refused({{"w", FileDType::F32, {2, 2}}}, all).ends_with("has 16 bytes by its shape, but 24 were given"));
  CHECK(refused({{"w", FileDType::I32, {2, 3}}}, all).ends_with("is I32, but elements of another type were given"));
  CHECK(refused({{"w", FileDType::F32, {-1}}}, all).ends_with("has a shape that is none"));
  CHECK(refused({{"w", FileDType::F32, {6}}, {"w", FileDType::F32, {6}}}, all).ends_with("are called 'w'"));
  CHECK(refused({{"\xff", FileDType::F32, {6}}}, all).ends_with("is no UTF-8"));
  CHECK(refused({{"__metadata__", FileDType::F32, {6}}}, all).ends_with("keep for texts"));
  struct Stop {};
  CHECK_THROWS_AS(refused({{"w", FileDType::F32, {6}}}, [](const FileEntry&, FileSink&) { throw Stop{}; }), Stop);
  CHECK(folder.count() == 1);
  const auto nowhere = said(folder / "no/file", [&] { write_safetensors(folder / "no/file", {}, all); });
  CHECK(nowhere.code == exit_code::io);
  const auto full = said("/dev/full", [&] { write_safetensors("/dev/full", {{"w", FileDType::F32, {2, 3}}}, all); });
  CHECK(full.code == exit_code::io);
}

}  // namespace
