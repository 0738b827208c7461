// Files of others, changed by chance, are read: there are contents and sentences, nothing else, in little memory.
//
//     file_fuzz FIXTURES [COUNT [SEED [FIRST]]]     10000 of each format, seed 1, unless said, the first with number 0
//
// Formats take turns. The same numbers make the same inputs. It ends with 1 where one was a fault.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <typeinfo>
#include <unistd.h>

#include "changed.hpp"
#include "file_formats.hpp"

using namespace file_formats;
using changed::Random;

namespace {

/// A length that is changed, bytes that are others, missing, doubled, taken from elsewhere.
std::string changed_bytes(std::string of, Random& random) {
  for (int changes = 1 + random.below(3); changes > 0 && of.size() > 1; --changes) {
    // most of a file that matters is at its beginning
    const std::size_t at = random.below(random.one_in(2) ? of.size() : std::min<std::size_t>(of.size(), 24));
    const std::size_t other = random.below(of.size()), count = 1 + random.below(std::size_t{8});
    switch (random.below(6)) {
      case 0: of[at] = static_cast<char>(random.bits()); break;
      case 1: of[at] = static_cast<char>(of[at] ^ (1 << random.below(8))); break;
      case 2: of.erase(at, count); break;
      case 3: of.insert(at, of.substr(other, count)); break;
      case 4: of.replace(at, count, of.substr(other, count)); break;
      default: of.resize(random.one_in(4) ? at : of.size());
    }
  }
  return of;
}

/// Counted over all children.
struct Counts {
  long inputs, accepted, sentences, faults, at;
};
Counts* counts = nullptr;

void input(const std::vector<Format>& all, std::uint64_t seed, long number, const std::string& file) {
  Random random(seed, number);
  const Format& format = all[static_cast<std::size_t>(number) % all.size()];
  const std::string& whole = random.of(format.whole);
  {
    const std::string bytes =
        format.text && random.one_in(2) ? changed::text(whole, random) : changed_bytes(whole, random);
    std::filesystem::remove(file);  // what is shortened in place waits for the disk
    std::FILE* const out = std::fopen(file.c_str(), "wb");
    std::fwrite(bytes.data(), 1, bytes.size(), out);
    std::fclose(out);
  }
  try {
    format.read(file);
    ++counts->accepted;
  } catch (const Failure& failure) {
    ++counts->sentences;
    if (failure.exit_code != exit_code::bad_data || std::string_view(failure.what()).size() < file.size() + 12) {
      ++counts->faults;
      std::fprintf(stderr, "input %ld: %s\n", number, failure.what());
    }
  } catch (const std::exception& error) {
    ++counts->faults;
    std::fprintf(stderr, "input %ld of seed %llu: %s: %s\n", number, static_cast<unsigned long long>(seed),
                 typeid(error).name(), error.what());
  }
  ++counts->inputs;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool limited = false;  // a sanitizer maps all memory that there could be
#elif defined(__has_feature)
constexpr bool limited = !__has_feature(address_sanitizer);
#else
constexpr bool limited = true;
#endif

/// A process of its own for some inputs, as one may end it. Returns the next input.
long in_child(const std::vector<Format>& all, std::uint64_t seed, long first, long last, const std::string& file) {
  const pid_t child = fork();
  if (child == 0) {
    if (limited) {
      const rlimit most{std::uint64_t{64} << 20, std::uint64_t{64} << 20};  // files of 4 KiB need no more
      setrlimit(RLIMIT_AS, &most);
    }
    for (long i = first; i < last; ++i) {
      counts->at = i;
      alarm(20);  // longer is for ever
      input(all, seed, i, file);
    }
    std::_Exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return last;
  ++counts->faults;
  const std::string how = WIFSIGNALED(status) ? std::string("ended by signal ") + strsignal(WTERMSIG(status))
                                              : "exit code " + std::to_string(WEXITSTATUS(status));
  std::fprintf(stderr, "input %ld of seed %llu: %s\n", counts->at, static_cast<unsigned long long>(seed), how.c_str());
  return counts->at + 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return exit_code::usage;
  const std::vector<Format> all = formats(argv[1]);
  const long count = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 10'000 * static_cast<long>(all.size()),
             first = argc > 4 ? std::strtol(argv[4], nullptr, 10) : 0;
  const std::uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  counts =
      static_cast<Counts*>(mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::string folder = (std::filesystem::temp_directory_path() / "file_fuzz-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return exit_code::io;
  const std::string file = folder + "/file";
  std::filesystem::copy(argv[1] + std::string("/small.safetensors"), folder);  // which an index names
  for (long i = first; i < first + count;) i = in_child(all, seed, i, std::min(first + count, i + 500), file);
  std::filesystem::remove_all(folder);
  std::printf("%ld inputs, %ld of them read, %ld sentences, %ld faults\n", counts->inputs, counts->accepted,
              counts->sentences, counts->faults);
  const bool worth = counts->accepted > count / 50;  // or the changes would only have been seen by the first check
  return counts->faults == 0 && worth ? 0 : 1;
}
