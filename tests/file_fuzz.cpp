// Files of others, changed by chance, are read: there are contents and sentences, nothing else, in little memory.
//
//     file_fuzz FIXTURES [COUNT [SEED [FIRST]]]     10000 inputs of seed 1 unless said, the first with number 0
//
// The same numbers make the same inputs. It ends with 1 where one was a fault.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <typeinfo>
#include <unistd.h>

#include <parallel/file/csv.hpp>
#include <parallel/file/idx.hpp>
#include <parallel/file/llmc.hpp>
#include <parallel/file/npy.hpp>
#include <parallel/file/npz.hpp>
#include <parallel/file/safetensors.hpp>
#include <parallel/file/sharded_safetensors.hpp>
#include <parallel/file/tokenizer.hpp>
#include <parallel/file/tokens.hpp>

#include "changed.hpp"

using namespace parallel;
using namespace parallel::internals;
using changed::Random;

namespace {

/// A format: files that are whole, and a reader that looks at all that it gave.
struct Format {
  std::vector<std::string> whole{};
  std::function<void(const std::string&)> read{};
  bool text = false;  ///< changed by words and lines, too
};

unsigned seen = 0;  // so that what is read is read
template <class Elements>
void look(const Elements& elements) {
  for (const auto& e : elements) {
    unsigned char bytes[sizeof e];
    std::memcpy(bytes, &e, sizeof e);
    seen += bytes[0];
  }
}
void look_at(const FileTensor& tensor) {
  look(tensor.bytes);
  seen += static_cast<unsigned>(tensor.elements());
  try {
    look(tensor.as<float>());
  } catch (const Failure&) {
  }
}

std::vector<Format> formats(const std::string& fixtures) {
  const auto files = [&](const std::string& ending) {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(fixtures))
      if (entry.path().string().ends_with(ending)) {
        const internals::MappedFile file(entry.path().string());
        all.emplace_back(file.text());
      }
    std::sort(all.begin(), all.end());
    return all;
  };
  const auto number = [](std::int32_t n) { return std::string(reinterpret_cast<const char*>(&n), 4); };
  std::vector<Format> result;
  const auto safetensors = [](const std::string& file) {
    const Safetensors all(file);
    for (std::size_t i = 0; i < all.size(); ++i) look_at(all[all[i].name]);
  };
  result.push_back({files(".safetensors"), safetensors, true});
  result.push_back({files(".npy"), [](const std::string& file) { look_at(read_npy(file)); }, true});
  const auto each = [](const auto& all) {
    for (std::size_t i = 0; i < all.size(); ++i) look_at(all[i]);
  };
  result.push_back({files(".npz"), [each](const std::string& file) { each(Npz(file)); }});
  static constexpr LlmcSizes sizes{.context = 2, .vocabulary = 3, .layers = 1, .heads = 1, .channels = 2, .padded = 4};
  const llmc::ModelLayout model("", sizes, FileDType::F32), halves("", sizes, FileDType::BF16);
  const auto filled = [](const llmc::ModelLayout& layout) {
    std::string bytes = layout.bytes();
    bytes.resize(static_cast<std::size_t>(layout.begin(layout.tensors().size())), 'x');
    return bytes;
  };
  result.push_back({{filled(model), filled(halves)}, [each](const std::string& file) { each(LlmcModel(file)); }});
  const std::string state = number(20240327) + number(2) + number(1) + number(2) + std::string(1008, '\0') +
                            std::string(16 + 24 + 4, 'x') + filled(model).substr(1024);
  result.push_back({{state}, [each](const std::string& file) { each(LlmcDebugState(file, sizes)); }});
  const auto sharded = [each](const std::string& file) {
    try {
      each(ShardedSafetensors(file));
    } catch (const Failure& failure) {  // other names are of other files
      if (failure.exit_code == exit_code::missing_input) throw damaged(file, failure.what());
      throw;
    }
  };
  result.push_back({{R"({"weight_map":{"w":"small.safetensors","k":"small.safetensors"}})"}, sharded, true});
  const auto tiktoken = [](const std::string& file) {
    const Tokenizer all(Tiktoken{file, Pieces::llama3, {{"<|end|>", 1000}}});
    look(all.encode("Don't panic: 12345 \n\n <|end|>"));
  };
  result.push_back({files(".tiktoken"), tiktoken, true});
  const auto csv = [](const std::string& file) {
    look(read_csv<float>(file).values);
    look(read_csv<double>(file, {.header = false, .separator = ';', .empty = 0}).values);
  };
  result.push_back(
      {{"x,y,\"z\"\n1,2,3\n4,\"5\",6e3\n", "1;2;;3\r\n4;5;6;7\r\n", "\"a \"\"b\"\"\n\" , c\n1,2"}, csv, true});
  const std::string idx{"\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\3abcdef", 22};
  result.push_back({{idx}, [](const std::string& file) { look_at(read_idx(file)); }});
  const auto tokens = [](const std::string& file) {
    for (const TokenFile& all : {TokenFile(file, TokenWidth::two), TokenFile(file)})
      for (std::size_t i = 0; i < all.size(); ++i) seen += static_cast<unsigned>(all[i]);
  };
  result.push_back({{number(20240520) + number(1) + number(3) + std::string(1012, '\0') + "abcdef",
                     number(20240801) + number(7) + number(2) + std::string(1012, '\0') + "abcdefgh"},
                    tokens});
  const auto tokenizer = [](const std::string& file) {
    const Tokenizer all(file);
    for (const std::string_view text : {"Don't panic: 12345 \n\n <|end|>", "\xff\xc3\xa9 <|endoftext|>  "})
      look(all.encode(text));
  };
  result.push_back({files(".tokenizer.json"), tokenizer, true});
  const auto encoder = [fixtures](const std::string& file) {
    look(Tokenizer(file, fixtures + "/merges.txt").encode("a text"));
  };
  result.push_back({files("vocab.json"), encoder, true});
  const auto merges = [fixtures](const std::string& file) {
    look(Tokenizer(fixtures + "/vocab.json", file).encode("a text"));
  };
  result.push_back({files("merges.txt"), merges, true});
  return result;
}

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
  const Format& format = random.of(all);
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
  const long count = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 10'000,
             first = argc > 4 ? std::strtol(argv[4], nullptr, 10) : 0;
  const std::uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  counts =
      static_cast<Counts*>(mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const std::vector<Format> all = formats(argv[1]);
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
