// Files of others as libFuzzer makes them, led by what a reader does with them (clang alone has it).
//
//     FORMAT=npy FIXTURES=tests/fixtures/files file_fuzz_guided -runs=1000000 -max_len=4096 CORPUS
//
// A format is one of file_formats.hpp; CORPUS, a folder, is filled with its whole files where it is empty; in
// /dev/shm, as FIXTURES too, no input waits for a disk.
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

#include "file_formats.hpp"

using namespace file_formats;

namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) {
    std::fprintf(stderr, "%s is not set\n", name);
    std::exit(exit_code::usage);
  }
  return value;
}
Format format_of_run() {
  for (const Format& f : formats(variable("FIXTURES")))
    if (f.name == variable("FORMAT")) return f;
  std::fprintf(stderr, "there is no format %s\n", variable("FORMAT").c_str());
  std::exit(exit_code::usage);
}
void write(const std::string& file, std::string_view bytes) {
  std::FILE* const out = std::fopen(file.c_str(), "wb");
  std::fwrite(bytes.data(), 1, bytes.size(), out);
  std::fclose(out);
}
const Format& format() {
  static const Format of_run = format_of_run();
  return of_run;
}
/// In memory, beside the file that an index of shards names.
struct Folder {
  std::string name = "/dev/shm/file_fuzz-XXXXXX";
  Folder() {
    if (mkdtemp(name.data()) == nullptr) std::exit(exit_code::io);
    std::filesystem::copy(variable("FIXTURES") + "/small.safetensors", name);
  }
  ~Folder() { std::filesystem::remove_all(name); }
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::filesystem::path corpus = (*argv)[*argc - 1];
  if (std::filesystem::is_directory(corpus) && std::filesystem::is_empty(corpus))
    for (std::size_t i = 0; i < format().whole.size(); ++i) write(corpus / std::to_string(i), format().whole[i]);
  return 0;
}
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const Folder folder;
  const std::string file = folder.name + "/file";
  std::filesystem::remove(file);  // what is shortened in place waits for the disk
  write(file, {reinterpret_cast<const char*>(bytes), size});
  try {
    format().read(file);
  } catch (const Failure& failure) {
    const bool sentence = std::string_view(failure.what()).size() >= file.size() + 12;
    if (failure.exit_code == exit_code::bad_data && sentence) return 0;
    std::fprintf(stderr, "%s\n", failure.what());
    std::abort();
  }
  return 0;  // any other exception ends the process, and is found
}
