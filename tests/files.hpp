// What tests of files share: a folder that is gone with its object, contents, and what is said of a bad file.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <unistd.h>

#include <doctest/doctest.h>

#include <parallel/meta/failure.hpp>

namespace files {

class Folder {
 public:
  Folder() {
    std::string path = (std::filesystem::temp_directory_path() / "files-XXXXXX").string();
    REQUIRE(mkdtemp(path.data()) != nullptr);
    path_ = path;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::size_t count() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline std::string fixture(const std::string& name) {
  const char* folder = std::getenv("PARALLEL_FILES");
  REQUIRE(folder != nullptr);
  return std::string(folder) + "/" + name;
}
inline std::string read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  REQUIRE(in.is_open());
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void write(const std::string& file, std::string_view contents) {
  std::filesystem::remove(file);  // what is shortened in place waits for the disk
  std::ofstream(file, std::ios::binary) << contents;
}

/// What f() throws: a sentence that begins with the file's name, and a code; other exceptions fail the test.
struct Said {
  std::string sentence{};
  int code = 0;
};
template <class F>
Said said(const std::string& file, F f) {
  try {
    f();
  } catch (const parallel::Failure& failure) {
    const std::string sentence = failure.what();
    CHECK(sentence.starts_with(file));
    return {sentence.substr(std::min(sentence.size(), file.size())), failure.exit_code};
  }
  return {};
}

/// What f() says on the standard error, by way of a file.
template <class F>
inline std::string said_aside(const std::string& file, F f) {
  std::fflush(stderr);
  const int before = ::dup(2), to = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  ::dup2(to, 2);
  f();
  std::fflush(stderr);
  ::dup2(before, 2);
  ::close(to);
  ::close(before);
  return read(file);
}

}  // namespace files
