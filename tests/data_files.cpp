// .npy as NumPy writes it, CSV, IDX, files of tokens: what is in them, and a sentence for what is damaged.
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include <parallel/file/csv.hpp>
#include <parallel/file/idx.hpp>
#include <parallel/file/npy.hpp>
#include <parallel/file/npz.hpp>
#include <parallel/file/raw.hpp>
#include <parallel/file/tokens.hpp>

#include "files.hpp"

using namespace parallel;
using files::Folder;
using files::said;

namespace {

/// What `read(file)` says of a file with these bytes.
template <class F>
std::string sentence(const Folder& folder, const std::string& bytes, F read) {
  const std::string file = folder / "file";
  files::write(file, bytes);
  const auto s = said(file, [&] { read(file); });
  CHECK(s.code == (s.sentence.empty() ? 0 : exit_code::bad_data));
  return s.sentence;
}
/// Each byte another, each missing, each end: nothing but sentences.
template <class F>
void damage(const Folder& folder, const std::string& whole, std::size_t header, F read) {
  long refused = 0, all = 0;
  const auto one = [&](const std::string& bytes) {
    refused += sentence(folder, bytes, read).empty() ? 0 : 1;
    ++all;
  };
  for (std::size_t at = 0; at < header; ++at) {
    for (int byte = 0; byte < 256; byte += 5) one(whole.substr(0, at) + static_cast<char>(byte) + whole.substr(at + 1));
    one(whole.substr(0, at));
    one(whole.substr(0, at) + whole.substr(at + 1));
  }
  MESSAGE(refused << " of " << all << " refused");
}

using Sizes = std::vector<std::int64_t>;

template <class T>
void same_as_numpy(const Folder& folder, const std::string& name, const Sizes& shape) {
  CAPTURE(name);
  const std::string file = files::fixture(name);
  const FileTensor tensor = read_npy(file);
  CHECK(tensor.shape == shape);
  const FileView<T> all = tensor.as<T>();
  REQUIRE(all.size() == static_cast<std::size_t>(tensor.elements()));
  std::vector<T> counted(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) counted[i] = T(static_cast<float>(i + 1));
  const auto same = [](const T& a, const T& b) { return std::memcmp(&a, &b, sizeof a) == 0; };
  CHECK(std::equal(all.begin(), all.end(), counted.begin(), same));
  write_npy(folder / "written", shape, counted);
  std::string written = files::read(folder / "written"), numpys = files::read(file);
  if (numpys[6] == 1) CHECK(written == numpys);
}

TEST_CASE(".npy") {
  const Folder folder;
  same_as_numpy<float>(folder, "f4.npy", {2, 3});
  same_as_numpy<double>(folder, "scalar.npy", {});
  same_as_numpy<std::int64_t>(folder, "vector.npy", {5});
  same_as_numpy<std::uint8_t>(folder, "none.npy", {0, 4});
  same_as_numpy<float16>(folder, "deep.npy", {1, 2, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  same_as_numpy<int>(folder, "version2.npy", {4});
  same_as_numpy<std::complex<float>>(folder, "version3.npy", {4});
  const auto refused = [&](const std::string& name) {
    const std::string file = files::fixture(name);
    return said(file, [&] { read_npy(file); }).sentence;
  };
  CHECK(refused("fortran.npy") == ": its array lies column by column; in Python, save numpy.ascontiguousarray(array)");
  CHECK(refused("big_endian.npy").find("its elements are '>f4'") != std::string::npos);
  CHECK(refused("text.npy").find("its elements are '<U2'") != std::string::npos);
  CHECK(said(files::fixture("f4.npy"), [&] { read_npy(files::fixture("f4.npy")).as<double>(); }).sentence ==
        ": its elements are F32, but F64 was asked for; ask for what the file has, and convert");
  const auto unequal = said(folder / "file", [&] { write_npy(folder / "file", {2, 2}, std::vector<float>(3)); });
  CHECK(unequal.code == exit_code::bad_data);
  CHECK(unequal.sentence ==
        ": the shape that is to be written is [2, 2], but 3 elements were given; give as many as it has");
  CHECK(said("a", [&] { write_npy("", {1}, std::vector<float>(1)); }).sentence ==
        " file without a name cannot be written: No such file or directory");

  const auto with = [&](const std::string& header, std::size_t behind) {
    std::string bytes("\x93NUMPY\1\0", 8);
    const auto length = static_cast<std::uint16_t>(header.size());
    bytes.append(reinterpret_cast<const char*>(&length), 2);
    return sentence(folder, bytes + header + std::string(behind, '\0'), read_npy);
  };
  CHECK(with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24).empty());
  CHECK(with("{'shape':(2L,3L),\"fortran_order\":False,'descr':'<f4'}", 24).empty());
  CHECK(
      with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 23) ==
      ": its shape has 24 bytes, but behind its header are 23; it is not all there, or has more: write or copy it again");
  CHECK(with("{'descr': '<f4', 'shape': (2, 3), }\n", 24) == ": its header has no fortran_order");
  CHECK(with("{'descr': '<f4', 'descr': '<f4'}\n", 24) == ": its header has its descr twice");
  CHECK(with("{'descr': '<f4', 'fortran_order': 1}\n", 24) ==
        ": its header has '1}\n' where True or False is expected");
  CHECK(with("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }\n", 24).find("where a dimension") !=
        std::string::npos);
  CHECK(with("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n", 0) ==
        ": it has a shape of more elements than can be counted");
  CHECK(with("{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::string(65'000, '0') + "), }\n", 4).empty() ==
        false);
  damage(folder, files::read(files::fixture("f4.npy")), 128, read_npy);
}

TEST_CASE("CSV") {
  const Folder folder;
  const std::string file = folder / "file";
  const auto read = [&](const std::string& text, const CsvOptions& how = {}) {
    files::write(file, text);
    return read_csv<double>(file, how);
  };
  using Numbers = std::vector<double>;
  using Names = std::vector<std::string>;
  const auto plain = read("x,y\n1,2.5\n-3,4e2\n");
  CHECK(plain.columns == Names{"x", "y"});
  CHECK(plain.rows == 2);
  CHECK(plain.values == Numbers{1, 2.5, -3, 400});
  CHECK(plain.row(1)[1] == 400);
  const auto odd = read("\xef\xbb\xbf\"a, \"\"b\"\"\n2\" , y\r\n\r\n \"+1\" ,\t2\r\n3,inf");
  CHECK(odd.columns == Names{"a, \"b\"\n2", "y"});
  CHECK(odd.values == Numbers{1, 2, 3, HUGE_VAL});
  CHECK(read("1;2\n3;4\n", {.header = false, .separator = ';'}).values == Numbers{1, 2, 3, 4});
  CHECK(read("1\t2\n3\t4\n", {.header = false, .separator = '\t'}).columns == Names{"1", "2"});
  CHECK(read("name,x,y\nAda,1,2\nBob,3,4\n", {.columns = {"y", "x"}}).values == Numbers{2, 1, 4, 3});
  CHECK(std::isnan(read("x,y\n,1\n", {.empty = std::nan("")}).values[0]));
  CHECK(read("x,y\n").rows == 0);
  CHECK(read_csv<int>((files::write(file, "x\n7\n"), file)).values == std::vector<int>{7});

  const auto says = [&](const std::string& text, const CsvOptions& how = {}) {
    return sentence(folder, text, [&](const std::string& name) { read_csv<float>(name, how); });
  };
  CHECK(says("") == ": it has no lines; its first names the columns");
  CHECK(says("\n\n") == ": it has no lines; its first names the columns");
  CHECK(says("x;y\n1;2\n") ==
        ": line 2, column 1 is '1;2'; a number is expected; say what separates the columns, as in {.separator = ';'}");
  CHECK(says("x,y\n1,2\n\n1,two\n") == ": line 4, column 2 is 'two'; a number is expected");
  CHECK(says("x,y\n1,\n") == ": line 2, column 2 is ''; a number is expected");
  CHECK(says("x,y\n1,2,3\n") == ": line 2, column 3 is one more than the 2 of the first line");
  CHECK(says("x,y\n1\n") == ": line 2, column 1 is the last, but the first line has 2");
  CHECK(says("x\n1e99\n") == ": line 2, column 1 is '1e99', a number that is too large or too small");
  CHECK(says("x\n\"1\n2\n") == ": line 2, column 1 begins with a quote that nothing closes");
  CHECK(says("\"a\nb\",c\n1,x\n") == ": line 3, column 2 is 'x'; a number is expected");
  CHECK(says("x\n\"1\"2\n") == ": line 2, column 1 has something behind its closing quote");
  CHECK(says("x\n1\n", {.columns = {"z"}}) == ": it has no column 'z' in its first line; it has x");
  CHECK(says("height,weight\n1,2\n", {.columns = {"weight", "hight"}}) ==
        ": it has no column 'hight' in its first line; it has height, weight");
  CHECK(says("a,b\n1,2\n", {.columns = {"a", "a"}}) == ": its column 'a' is asked for twice");
  CHECK(says("a,b,a\n1,2,3\n", {.columns = {"b", "a"}}) == ": it has two columns 'a', so which is meant nobody knows");
  CHECK(read("a,b,a\n1,2,3\n").values == Numbers{1, 2, 3});
  CHECK(sentence(folder, "x,y\n3,2\n1,1.5\n", [](const std::string& name) { read_csv<int>(name); }) ==
        ": line 3, column 2 is '1.5'; a whole number is expected");
  CHECK(says("1.5,2\n3,4\n") == ": its first line has numbers, but is to name the columns; say {.header = false}");
  CHECK(says("5\n7\n") == ": its first line has numbers, but is to name the columns; say {.header = false}");
  CHECK(read("0,1\n3,4\n").values == Numbers{3, 4});  // pandas counts what has no names
  CHECK(read("1,2\n3,4\n").rows == 1);
  damage(folder, "x,\"y\"\n1,2.5\n\"-3\",4e2\n", 21, [](const std::string& name) { read_csv<float>(name); });
}

TEST_CASE("IDX") {
  const Folder folder;
  const std::string images{"\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\3abcdef", 22};
  files::write(folder / "file", images);
  const FileTensor tensor = read_idx(folder / "file");
  CHECK(tensor.shape == Sizes{2, 1, 3});
  CHECK(tensor.as<std::uint8_t>()[5] == 'f');
  const auto says = [&](const std::string& bytes) { return sentence(folder, bytes, read_idx); };
  CHECK(says({"\0\0\x09\0x", 5}).empty());
  CHECK(says(images + "g") == ": its dimensions are of 6 bytes, but behind them are 7");
  CHECK(says({"\0\0\x0d\1\0\0\0\1abcd", 12}) == ": its elements are of IDX's type 13; 8 and 9, bytes, are read");
  CHECK(says("\x1f\x8b rest") == ": it is compressed; say gunzip, and name what that writes");
  CHECK(says(std::string("\0\0\x08\xff", 4) + std::string(1020, '\xff')) ==
        ": its dimensions are of too many bytes, but behind them are 0");
  damage(folder, images, 16, read_idx);
}

TEST_CASE("numbers and nothing else") {
  const Folder folder;
  const std::string file = folder / "file";
  const float numbers[] = {1, 2, 3, 4, 5, 6};
  files::write(file, {reinterpret_cast<const char*>(numbers), sizeof numbers});
  const FileTensor tensor = read_raw<float>(file, {2, 3});
  CHECK(tensor.shape == Sizes{2, 3});
  CHECK(tensor.as<float>()[4] == 5);
  CHECK(read_raw<std::uint8_t>(file, {24}).as<std::uint8_t>()[7] == 0x40);  // of 2
  const auto says = [&](const Sizes& shape) { return said(file, [&] { read_raw<float>(file, shape); }); };
  CHECK(says({2, 2}).sentence == ": the shape that was given has 16 bytes, but the file has 24");
  CHECK(says({7}).code == exit_code::bad_data);
  CHECK(says({-6}).sentence == ": the shape that was given has too many bytes, but the file has 24");
  CHECK(says({1L << 62, 8}).code == exit_code::bad_data);
  CHECK(said(folder / "none", [&] { read_raw<float>(folder / "none", {6}); }).code == exit_code::missing_input);
  files::write(file, "");
  CHECK(read_raw<double>(file, {0, 4}).as<double>().size() == 0);
}

TEST_CASE("tokens") {
  const Folder folder;
  const std::string file = folder / "file";
  const std::vector<std::uint16_t> two{0, 1, 50256, 65535};
  const std::vector<std::uint32_t> four{0, 128000, 65536, 2147483647};
  write_tokens(file, std::span<const std::uint16_t>(two));
  const TokenFile of_two(file);
  write_tokens(folder / "four", std::span<const std::uint32_t>(four));
  const TokenFile of_four(folder / "four");
  REQUIRE((of_two.size() == 4 && of_four.size() == 4));
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(of_two[i] == two[i]);
    CHECK(of_four[i] == static_cast<int>(four[i]));
  }
  CHECK(said(file, [&] { of_two[4]; }).sentence == ": 1 tokens from 4 on are asked for, but it has 4");
  std::vector<int> some(3);
  CHECK(said(file, [&] { of_two.copy(2, some); }).sentence == ": 3 tokens from 2 on are asked for, but it has 4");
  const std::string whole = files::read(file);
  CHECK(whole.size() == 1024 + 8);
  const int header[] = {20240520, 1, 4, 0};
  CHECK(std::memcmp(whole.data(), header, sizeof header) == 0);

  files::write(folder / "raw", whole.substr(1024));
  const TokenFile raw(folder / "raw", TokenWidth::two);
  CHECK((raw.size() == 4 && raw[2] == 50256));
  CHECK(TokenFile(folder / "raw", TokenWidth::four).size() == 2);
  CHECK(said(folder / "raw", [&] { TokenFile(folder / "raw", TokenWidth::four)[1]; }).sentence ==
        ": its token 1 is 4294952016, larger than an int");
  const auto read = [](const std::string& name) { TokenFile{name}; };
  CHECK(sentence(folder, whole.substr(0, 1031), read) ==
        ": its header says that it has 4 tokens, but behind that are 7 bytes, of 2 a token");
  CHECK(sentence(folder, whole.substr(1024), read).find("it has 8 bytes, fewer than llm.c's header") !=
        std::string::npos);
  CHECK(sentence(folder, std::string(1024, '\0'), read).find("begins with 0 and version 0") != std::string::npos);
  const auto read_raw = [](const std::string& name) { TokenFile(name, TokenWidth::two); };
  CHECK(sentence(folder, whole.substr(1023), read_raw) == ": it has 9 bytes, which are no tokens of 2");
  CHECK(
      sentence(folder, whole, read_raw) ==
      ": it begins with llm.c's header, 20240520 and version 1, which would be read as tokens; leave the width out, as "
      "the header says it: TokenFile(file)");
  damage(folder, whole, 16, read);
}

TEST_CASE("archives are NumPy's, byte for byte") {
  const Folder folder;
  const std::string file = files::fixture("arrays.npz");
  const Npz all(file);
  REQUIRE(all.size() == 4);
  CHECK(all["w"].shape == Sizes{2, 3});
  CHECK(all["w"].as<float>()[5] == 6);
  CHECK(all["b.9"].as<std::int64_t>()[0] == 1);
  CHECK(all["\u00e9"].shape == Sizes{0, 4});
  CHECK(static_cast<float>(all["h"].as<float16>()[4]) == 5);
  CHECK(!all.contains("x"));
  const std::vector<FileEntry> entries{all["w"], all["b.9"], all["\u00e9"], all["h"]};
  const auto give = [&](const FileEntry& e, FileSink& sink) {
    for (std::size_t at = 0; at < all[e.name].bytes.size(); ++at) sink(all[e.name].bytes.subspan(at, 1));
  };
  write_npz(folder / "copy", entries, give);
  CHECK(files::read(folder / "copy") == files::read(file));
  CHECK(folder.count() == 1);
}

TEST_CASE("archives that are damaged, or have what is not read, are refused") {
  const Folder folder;
  const auto read = [](const std::string& file) { Npz{file}; };
  CHECK(sentence(folder, files::read(files::fixture("compressed.npz")), read) ==
        ": its array w is compressed; in Python, numpy.savez writes it as it is");
  const std::string whole = files::read(files::fixture("arrays.npz"));
  CHECK(sentence(folder, "", read) == ": it has no end as archives have; it is no .npz, or was cut off");
  CHECK(sentence(folder, whole.substr(0, whole.size() - 1), read).find("cut off") != std::string::npos);
  CHECK(sentence(folder, "x" + whole, read).find("is not there") != std::string::npos);
  const std::string end = whole.substr(whole.size() - 22);
  std::string twice = whole.substr(0, whole.size() - 22);
  const std::size_t first = twice.find("PK\1\2"), second = twice.find("PK\1\2", first + 1);
  twice += twice.substr(first, second - first) + end;
  twice[twice.size() - 12] = 5;
  CHECK(sentence(folder, twice, read) == ": it has two tensors 'w'");
  std::string other = whole;
  other[first + 8] = 1;
  CHECK(sentence(folder, other, read) == ": its array w is encrypted");
  other = whole;
  other.replace(other.rfind("w.npy"), 5, "w.txt");
  CHECK(sentence(folder, other, read) == ": it has a file 'w.txt'; arrays end in .npy");
  other = whole;
  other[other.rfind("w.npy")] = '\0';  // what() would end there
  other.replace(other.find("NUMPY"), 5, "numpy");
  CHECK(sentence(folder, other, read) == ": ?.npy: it does not begin as .npy does");
  other = whole;
  other.replace(other.find("NUMPY"), 5, "numpy");
  CHECK(sentence(folder, other, read) == ": w.npy: it does not begin as .npy does");
  CHECK(said(folder / "none", [&] { Npz{folder / "none"}; }).code == exit_code::missing_input);

  const std::string to = folder / "to";
  const auto says = [&](const std::vector<FileEntry>& arrays) {
    return said(to,
                [&] { write_npz(to, arrays, [](const FileEntry&, FileSink& sink) { sink(std::vector<float>(2)); }); })
        .sentence;
  };
  CHECK(says({{"w", FileDType::F32, {2}}}).empty());
  const std::string small = files::read(to);
  damage(folder, small, small.size(), read);
  CHECK(says({{"w", FileDType::F32, {3}}}) ==
        ": the array 'w', which is to be written, has 12 bytes by its shape, but 8 were given");
  CHECK(says({{"w", FileDType::BF16, {2}}}) ==
        ": the array 'w', which is to be written, is BF16, which .npy has not; convert, or write safetensors");
  CHECK(says({{"w", FileDType::F32, {2}}, {"w", FileDType::F32, {2}}}) ==
        ": two arrays that are to be written are called 'w'");
}

TEST_CASE("archives that claim 4 GiB and more are refused") {
  const Folder folder;
  const auto read = [](const std::string& file) { Npz{file}; };
  write_npz(folder / "to", {{"w", FileDType::F32, {2}}},
            [](const FileEntry&, FileSink& sink) { sink(std::vector<float>(2)); });
  const std::string whole = files::read(folder / "to");
  const std::size_t entry = whole.find("PK\1\2"), end = whole.find("PK\5\6");
  const auto with = [](std::string bytes, std::size_t at, const std::string& numbers) {
    return bytes.replace(at, numbers.size(), numbers);
  };
  const auto said_of = [&](const std::string& bytes) { return sentence(folder, bytes, read); };
  using internals::little_endian;
  constexpr std::uint32_t full = 0xffffffff;

  // in 32 bits
  const std::string sizes = with(whole, entry + 20, little_endian(full, full));
  CHECK(said_of(sizes) == ": its array w has 4294967295 bytes, but the file ends before");
  CHECK(said_of(with(whole, entry + 20, little_endian(full - 1, full - 1))) ==
        ": its array w has 4294967294 bytes, but the file ends before");
  CHECK(said_of(with(whole, entry + 42, little_endian(full))) ==
        ": its array w is said to be at 4294967295, but is not there");
  CHECK(said_of(with(whole, end + 16, little_endian(full))).find("is not there") != std::string::npos);

  // in the 64 bits that stand behind its name: sizes, then where it is
  const auto claims = [&](std::uint64_t size, std::uint64_t at) {
    std::string bytes =
        with(with(sizes, entry + 30, little_endian(std::uint16_t{28})), entry + 42, little_endian(full));
    return bytes.insert(end, little_endian(std::uint16_t{1}, std::uint16_t{24}, size, size, at));
  };
  std::uint32_t size = 0;
  std::memcpy(&size, whole.data() + entry + 24, sizeof size);
  constexpr std::uint64_t gibibytes = std::uint64_t{1} << 32;
  CHECK(said_of(claims(size, 0)) == "");
  CHECK(said_of(claims(gibibytes + size, 0)) ==
        ": its array w has " + std::to_string(gibibytes + size) + " bytes, but the file ends before");
  CHECK(said_of(claims(~std::uint64_t{0}, 0)) ==
        ": its array w has 18446744073709551615 bytes, but the file ends before");
  CHECK(said_of(claims(size, gibibytes)) == ": its array w is said to be at 4294967296, but is not there");
  CHECK(said_of(claims(size, ~std::uint64_t{0})) ==
        ": its array w is said to be at 18446744073709551615, but is not there");

  // an end of 64 bits, which the last 20 bytes before the end say where it is
  const auto ends = [&](std::uint64_t at, std::uint64_t count, std::uint64_t begin) {
    const std::string end64 = little_endian(std::uint32_t{0x06064b50}, std::uint64_t{44}, std::uint16_t{45},
                                            std::uint16_t{45}, 0, 0, count, count, std::uint64_t{end - entry}, begin);
    const std::string locator = little_endian(std::uint32_t{0x07064b50}, 0, at, 1);
    return with(whole, end + 16, little_endian(full)).insert(end, end64 + locator);
  };
  CHECK(said_of(ends(end, 1, entry)) == "");
  CHECK(said_of(ends(end + gibibytes, 1, entry)) ==
        ": its end of 64 bits is said to be at " + std::to_string(end + gibibytes) + ", but is not there");
  for (const std::uint64_t far : {gibibytes + entry, ~std::uint64_t{0}})
    CHECK(said_of(ends(end, 1, far)).find("is not there") != std::string::npos);
  CHECK(said_of(ends(end, gibibytes + 1, entry)).find("is not there") != std::string::npos);
}

}  // namespace
