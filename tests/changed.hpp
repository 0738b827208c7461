// Changes by chance: words of an object, whose lengths and checksums are right again, and lines of a text.
#pragma once
#include <cctype>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <parallel/plan/object.hpp>

namespace changed {

using Words = std::vector<std::int64_t>;

class Random {
 public:
  Random(std::uint64_t seed, long number) : engine_(seed * 1'000'003 + static_cast<std::uint64_t>(number)) {}
  std::uint64_t bits() { return engine_(); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
  int below(int n) { return static_cast<int>(below(static_cast<std::size_t>(n))); }
  bool one_in(int n) { return below(n) == 0; }
  template <class List>
  const auto& of(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::mt19937_64 engine_;
};

inline std::string bytes_of(const Words& words) {
  return {reinterpret_cast<const char*>(words.data()), 8 * words.size()};
}

/// Words that may be sizes, counts and limits.
inline std::int64_t odd(Random& random) {
  constexpr std::int64_t one = 1;
  static constexpr std::int64_t known[] = {0,
                                           1,
                                           -1,
                                           -2,
                                           2,
                                           3,
                                           4,
                                           7,
                                           8,
                                           15,
                                           16,
                                           17,
                                           63,
                                           64,
                                           65,
                                           255,
                                           256,
                                           4095,
                                           4096,
                                           4097,
                                           7'999,
                                           8'000,
                                           8'001,
                                           31'999,
                                           32'000,
                                           65'535,
                                           65'536,
                                           one << 20,
                                           (one << 20) + 1,
                                           (one << 31) - 1,
                                           one << 31,
                                           one << 32,
                                           one << 44,
                                           (one << 44) + 1,
                                           one << 62,
                                           std::numeric_limits<std::int64_t>::max(),
                                           std::numeric_limits<std::int64_t>::min()};
  return random.one_in(4) ? static_cast<std::int64_t>(random.bits()) : random.of(known);
}
/// One of the four small numbers that most words are.
inline std::int64_t with_quarter(std::int64_t word, Random& random) {
  const int shift = 16 * random.below(4);
  const auto whole = static_cast<std::uint64_t>(word);
  std::uint64_t quarter = whole >> shift & 0xffff;
  switch (random.below(5)) {
    case 0: ++quarter; break;
    case 1: --quarter; break;
    case 2: quarter = random.below(std::size_t{3}); break;
    case 3: quarter = random.below(std::size_t{40}); break;
    default: quarter = random.bits();
  }
  return static_cast<std::int64_t>((whole & ~(std::uint64_t{0xffff} << shift)) | (quarter & 0xffff) << shift);
}
inline void change(Words& words, const std::vector<Words>& others, Random& random) {
  const std::size_t header = parallel::internals::object::header;
  auto program = static_cast<std::size_t>(words[5]);  // its end, behind which are lines and spellings of types
  const int changes = random.one_in(8) ? 1 + random.below(12) : 1 + random.below(2);
  for (int i = 0; i < changes && words.size() > header + 1; ++i) {
    const auto place = [&](std::size_t at) { return words.begin() + static_cast<std::ptrdiff_t>(at); };
    const std::size_t at = header + random.below(words.size() - header),
                      other = header + random.below(words.size() - header);
    const std::size_t end = std::min(words.size(), at + 1 + random.below(std::size_t{8}));
    switch (random.below(10)) {
      case 0: words[at] = odd(random); break;
      case 1: words[at] ^= static_cast<std::int64_t>(std::uint64_t{1} << random.below(64)); break;
      case 2:
        words[at] = static_cast<std::int64_t>(static_cast<std::uint64_t>(words[at]) + random.below(std::size_t{5}) - 2);
        break;
      case 3:
      case 4:
      case 5: words[at] = with_quarter(words[at], random); break;
      case 6: words[at] = words[other]; break;
      case 7: std::swap(words[at], words[other]); break;
      case 8:
        if (const Words part(place(at), place(end)); random.one_in(2)) {
          words.insert(place(at), part.begin(), part.end());
          if (at < program) program += part.size();
        } else {
          words.erase(place(at), place(end));
          if (at < program) program -= std::min(part.size(), program - at);
        }
        break;
      default:
        if (const Words& from = random.of(others); from.size() > header)
          for (std::size_t k = 0, first = header + random.below(from.size() - header);
               at + k < words.size() && first + k < from.size() && k < 30; ++k)
            words[at + k] = from[first + k];
    }
  }
  if (random.one_in(30)) words.resize(header + random.below(words.size() - header + 1));
  program = std::min(program, words.size());
  if (!random.one_in(50)) {
    words[3] = static_cast<std::int64_t>(words.size());
    words[5] = static_cast<std::int64_t>(program);
  }
  if (random.one_in(50)) return;
  const std::span<const std::int64_t> all(words);
  words[4] = parallel::internals::object::checksum(all.first(program).subspan(header));
  words[6] = parallel::internals::object::checksum(all.subspan(program));
}

inline std::string text(std::string of, Random& random) {
  static constexpr std::string_view odd[] = {"-1",       "0",          "1",       "99999999999999999999",
                                             "1e999",    "1e-320",     "nan",     "inf",
                                             "-0",       "\n",         "[",       "]",
                                             "{",        "}",          " on ",    "; ",
                                             "# ",       " bytes ",    "\"",      "\xff",
                                             "<script>", "2147483648", ",",       "=",
                                             "stage 9",  "null",       "true",    "[[[[[[[[",
                                             "\t",       "\x1b[31m",   "1048576", "65536",
                                             " calls ",  " tasks "};
  for (int changes = 1 + random.below(4); changes > 0 && of.size() > 4; --changes) {
    const std::size_t at = random.below(of.size());
    std::size_t end = at;  // of the word there
    while (end < of.size() && (std::isalnum(static_cast<unsigned char>(of[end])) != 0 || of[end] == '.')) ++end;
    const std::size_t line = of.rfind('\n', at), next = of.find('\n', at);
    switch (random.below(8)) {
      case 0: of[at] = static_cast<char>(random.bits()); break;
      case 1: of.insert(at, random.of(odd)); break;
      case 2: of.erase(at, 1 + random.below(std::size_t{20})); break;
      case 3:
      case 4: of.replace(at, end - at, random.of(odd)); break;
      case 5: of.insert(at, of.substr(random.below(of.size()), random.below(std::size_t{200}))); break;
      case 6:
        if (random.one_in(8)) of.resize(at);
        break;
      default:
        if (line == std::string::npos || next == std::string::npos) break;
        if (const std::string whole = of.substr(line, next - line); random.one_in(2))
          of.insert(next, whole);
        else
          of.erase(line, whole.size());
    }
  }
  return of;
}

}  // namespace changed
