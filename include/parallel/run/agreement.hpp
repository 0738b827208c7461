// What all ranks must have alike before they begin: compared by one exchange of hashes, and told as a difference where
// they have not.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <parallel/communicator/communicator.hpp>
#include <parallel/device/host_memory.hpp>
#include <parallel/run/fact.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parallel {

namespace agreeing {

/// Whether a fact may differ: PARALLEL_MAY_DIFFER names it ("numerics", or several with commas between).
inline bool may_differ(std::string_view what) {
  const char* named = std::getenv("PARALLEL_MAY_DIFFER");
  const std::string all = named != nullptr ? "," + std::string(named) + "," : "";
  return all.find("," + std::string(what) + ",") != std::string::npos;
}

/// Memory of the host, where an exchange takes that.
struct Host {
  static HostMemory memory(std::int64_t bytes) { return HostMemory(bytes); }
  static HostMemory mirrored(std::int64_t bytes) { return HostMemory(bytes); }
  static void read(void* to, const void* from, std::int64_t bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
};

/// Every rank's `bytes`, one behind the other. All ranks give equally many, a multiple of four.
template <class World, class Device>
std::vector<char> gathered(World& world, const Device& device, const std::vector<char>& bytes, const char* label) {
  const auto own = static_cast<std::int64_t>(bytes.size()), all = own * world.size();
  auto in = device.mirrored(own);
  const auto out = device.memory(all);
  std::memcpy(in.host(), bytes.data(), bytes.size());
  in.send();
  exchange(world, {Collective::all_gather, in.data(), out.data(), all / 4, DType::i32, false, 0, label});
  std::vector<char> result(static_cast<std::size_t>(all));
  device.read(result.data(), out.data(), all);
  return result;
}
template <class T>
T at(const std::vector<char>& all, std::size_t i) {
  T value;
  std::memcpy(&value, all.data() + i * sizeof(T), sizeof(T));
  return value;
}

/// "rank 2", "ranks 0, 1, 3"
inline std::string ranks(const std::vector<int>& some) {
  std::string words = some.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < some.size(); ++i) words += (i == 0 ? " " : ", ") + std::to_string(some[i]);
  return words;
}
inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}
/// What the first differences of two texts are: where they part and where they meet again.
inline std::string difference(const std::string& one, const std::string& other) {
  const auto a = lines_of(one), b = lines_of(other);
  if (a.size() <= 1 && b.size() <= 1) return one == other ? "" : one + " against " + other;
  constexpr std::size_t most = 5;  // lines of each
  std::size_t same = 0, end = 0;
  while (same < a.size() && same < b.size() && a[same] == b[same]) ++same;
  while (end < a.size() - same && end < b.size() - same && a[a.size() - 1 - end] == b[b.size() - 1 - end]) ++end;
  std::string words = "from line " + std::to_string(same + 1);
  for (const auto& [sign, lines] : {std::pair{"\n  - ", &a}, std::pair{"\n  + ", &b}})
    for (std::size_t i = same; i < lines->size() - end && i < same + most; ++i) words += sign + (*lines)[i];
  return words;
}

/// The sentence: for each fact that differs who has what.
inline std::string disagreement(const std::vector<std::string>& whats,
                                const std::vector<std::vector<std::string>>& texts) {
  std::string words = "the ranks do not begin alike";
  for (std::size_t f = 0; f < whats.size(); ++f) {
    std::vector<std::vector<int>> groups;
    for (std::size_t r = 0; r < texts.size(); ++r) {
      std::size_t g = 0;
      while (g < groups.size() && texts[static_cast<std::size_t>(groups[g][0])][f] != texts[r][f]) ++g;
      if (g == groups.size()) groups.emplace_back();
      groups[g].push_back(static_cast<int>(r));
    }
    const auto text_of = [&](std::size_t g) { return texts[static_cast<std::size_t>(groups[g][0])][f]; };
    for (std::size_t g = 1; g < groups.size(); ++g)
      words += "; " + whats[f] + " of " + ranks(groups[0]) + " and of " + ranks(groups[g]) + ": " +
               difference(text_of(0), text_of(g));
  }
  return words + "; start all ranks with the same program, mesh and settings";
}

}  // namespace agreeing

/// Compares facts over all ranks; called by all of them, with as many facts in the same order. Costs one exchange of 8
/// bytes a rank; only where hashes differ texts follow. Throws Mismatch (exit code 76) on every rank.
///
///     agree(world, {{"text", hash_of(tokens), [&] { return name; }}});
///
/// `device`: where the communicator's buffers lie, if not with the host.
template <Communicator World, class Device = agreeing::Host>
void agree(World& world, const std::vector<Fact>& facts, const Device& device = {}) {
  using namespace agreeing;
  if (world.size() == 1) return;
  const auto ranks = static_cast<std::size_t>(world.size());
  Hash all;
  std::vector<std::string> whats;
  std::string texts;
  for (const Fact& f : facts) {
    all.name(f.what);
    all.word(may_differ(f.what) ? 0 : static_cast<std::int64_t>(f.hash));
  }
  std::vector<char> own(sizeof(std::uint64_t));
  const std::uint64_t hash = all.value();
  std::memcpy(own.data(), &hash, sizeof hash);
  const std::vector<char> hashes = gathered(world, device, own, "agreement");
  bool alike = true;
  for (std::size_t r = 1; r < ranks; ++r) alike = alike && at<std::uint64_t>(hashes, r) == at<std::uint64_t>(hashes, 0);
  if (alike) return;

  // Name, text, name, text, ..., each ended by a zero, padded to the longest.
  std::string mine;
  for (const Fact& f : facts) {
    const std::string text = may_differ(f.what) ? "may differ here" : f.text();
    mine += f.what + '\0' + text + '\0';
  }
  const auto size = static_cast<std::int32_t>((mine.size() + 3) / 4 * 4);
  std::vector<char> count(sizeof size);
  std::memcpy(count.data(), &size, sizeof size);
  const std::vector<char> sizes = gathered(world, device, count, "agreement, sizes of texts");
  std::int32_t longest = 0;
  for (std::size_t r = 0; r < ranks; ++r) longest = std::max(longest, at<std::int32_t>(sizes, r));
  std::vector<char> padded(static_cast<std::size_t>(longest), '\0');
  std::memcpy(padded.data(), mine.data(), mine.size());
  const std::vector<char> everything = gathered(world, device, padded, "agreement, texts");
  std::vector<std::vector<std::string>> of_ranks(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    const char* at = everything.data() + r * padded.size();
    const char* const end = at + padded.size();
    const auto next = [&] {
      std::string word(at, static_cast<std::size_t>(std::find(at, end, '\0') - at));
      at += std::min<std::ptrdiff_t>(end - at, static_cast<std::ptrdiff_t>(word.size() + 1));
      return word;
    };
    for (std::size_t f = 0; f < facts.size(); ++f) {
      const std::string what = next(), text = next();
      of_ranks[r].push_back(what == facts[f].what ? text : "none; there is '" + what + "' in its place");
    }
  }
  for (const Fact& f : facts) whats.push_back(f.what);
  throw Mismatch("parallel::agree: " + disagreement(whats, of_ranks));
}

}  // namespace parallel
