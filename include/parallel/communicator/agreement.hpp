// What all ranks must have alike: compared by one exchange of 16 bytes, and told as a difference where they have not.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <parallel/communicator/exchange.hpp>
#include <parallel/communicator/fact.hpp>
#include <parallel/meta/source.hpp>
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

/// What is compared of facts: their names and hashes.
inline std::uint64_t hash_of(std::string_view doing, const std::vector<Fact>& facts) {
  Hash all;
  all.name(doing);
  for (const Fact& f : facts) {
    all.name(f.what);
    all.word(may_differ(f.what) ? 0 : static_cast<std::int64_t>(f.hash));
  }
  return all.value();
}

/// Whether all ranks give the same hash. One exchange of 16 bytes: the largest of the hashes and of their negatives,
/// each as a number whose 53 bits every communicator can compare.
template <class World>
bool alike(World& world, std::uint64_t hash, const char* label) {
  const auto number = static_cast<double>(hash >> 11);
  double words[2] = {number, -number};
  world.aside({Collective::all_reduce, words, words, 2, DType::f64, true, 0, label});
  return words[0] == -words[1];
}
/// What that is to a communicator of so many ranks.
inline Record compared(int ranks) { return {Collective::all_reduce, 16, DType::f64, ranks, true}; }

/// Every rank's `bytes`, one behind the other. All ranks give equally many, a multiple of four.
template <class World>
std::vector<char> gathered(World& world, const std::vector<char>& bytes, const char* label) {
  std::vector<char> all(bytes.size() * static_cast<std::size_t>(world.size()));
  world.aside({Collective::all_gather, bytes.data(), all.data(), static_cast<std::int64_t>(all.size() / 4), DType::i32,
               false, 0, label});
  return all;
}
/// Every rank's text, which may be of any length and hold zeros.
template <class World>
std::vector<std::string> gathered(World& world, const std::string& text, const char* label) {
  const auto ranks = static_cast<std::size_t>(world.size());
  const auto size = static_cast<std::int32_t>(text.size());
  std::vector<char> own(sizeof size);
  std::memcpy(own.data(), &size, sizeof size);
  const std::vector<char> all_sizes = gathered(world, own, label);
  std::vector<std::int32_t> sizes(ranks);
  std::memcpy(sizes.data(), all_sizes.data(), all_sizes.size());
  own.assign((static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end())) + 3) / 4 * 4, '\0');
  std::memcpy(own.data(), text.data(), text.size());
  const std::vector<char> all = gathered(world, own, label);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < ranks; ++r)
    texts.emplace_back(all.data() + r * own.size(), static_cast<std::size_t>(sizes[r]));
  return texts;
}

/// "rank 2", "ranks 0, 1, 3"
inline std::string ranks(const std::vector<int>& some) {
  std::string words = some.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < some.size(); ++i) words += (i == 0 ? " " : ", ") + std::to_string(some[i]);
  return words;
}
/// The ranks that say the same, in the order of their first.
template <class Of>
std::vector<std::vector<int>> groups(std::size_t ranks, Of of) {
  std::vector<std::vector<int>> all;
  for (std::size_t r = 0; r < ranks; ++r) {
    std::size_t g = 0;
    while (g < all.size() && of(static_cast<std::size_t>(all[g][0])) != of(r)) ++g;
    if (g == all.size()) all.emplace_back();
    all[g].push_back(static_cast<int>(r));
  }
  return all;
}
inline std::vector<std::string> parts_of(const std::string& text, char end) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t stop = std::min(text.find(end, begin), text.size());
    parts.push_back(text.substr(begin, stop - begin));
    begin = stop + 1;
  }
  return parts;
}
/// What the first differences of two texts are: where they part and where they meet again.
inline std::string difference(const std::string& one, const std::string& other) {
  const auto a = parts_of(one, '\n'), b = parts_of(other, '\n');
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

/// What a rank says where ranks differ: what it does, from which line, and what it has, first of all the hashes.
struct Said {
  std::string doing{}, from{};
  std::vector<std::string> facts{}, hashes{};
};
inline std::string written(const Said& said) {
  std::string words = said.doing + '\0' + said.from + '\0';
  for (std::size_t f = 0; f < said.facts.size(); ++f) words += said.facts[f] + '\0' + said.hashes[f] + '\0';
  return words;
}
inline Said read(const std::string& words) {
  const std::vector<std::string> parts = parts_of(words, '\0');
  Said said{parts.at(0), parts.at(1), {}, {}};
  for (std::size_t i = 2; i + 1 < parts.size(); i += 2)
    said.facts.push_back(parts[i]), said.hashes.push_back(parts[i + 1]);
  return said;
}

/// `step 5 of a training (gpt.cpp:141)`
inline std::string placed(const Said& said) { return said.doing + (said.from.empty() ? "" : " (" + said.from + ")"); }

/// Where ranks do different things: who does what.
inline std::string at_places(const std::vector<Said>& all) {
  std::string words;
  for (const auto& g : groups(all.size(), [&](std::size_t r) { return placed(all[r]); })) {
    const char* verb = !words.empty() ? " at " : g.size() == 1 ? " is at " : " are at ";
    words += (words.empty() ? "" : ", ") + ranks(g) + verb + placed(all[static_cast<std::size_t>(g[0])]);
  }
  return "the ranks are not at one place: " + words + "; let all ranks do the same in the same order";
}
/// Where all do the same: from which line, or from which lines.
inline std::string at_lines(const std::vector<Said>& all) {
  const auto lines = groups(all.size(), [&](std::size_t r) { return all[r].from; });
  if (lines.size() == 1) return placed(all[0]);
  std::string words = all[0].doing + " (";
  for (const auto& g : lines)
    words += (g[0] == 0 ? "" : ", ") + ranks(g) + " " + all[static_cast<std::size_t>(g[0])].from;
  return words + ")";
}

/// All ranks have found that they differ: each says what it does; of facts that differ one rank of those that have them
/// alike says what they are. Throws Mismatch (exit code 76) on every rank.
template <class World>
[[noreturn]] void tell(World& world, std::string doing, const Source& from, const std::vector<Fact>& facts) {
  constexpr const char* label = "what ranks say of a difference";
  std::string file = from.file;
  file.erase(0, file.rfind('/') + 1);
  Said mine{std::move(doing), from.line > 0 ? file + ":" + std::to_string(from.line) : "", {}, {}};
  for (const Fact& f : facts)
    mine.facts.push_back(f.what), mine.hashes.push_back(std::to_string(may_differ(f.what) ? 0 : f.hash));
  std::vector<Said> all;
  for (const std::string& words : gathered(world, written(mine), label)) all.push_back(read(words));
  const auto is_one = [&](const auto& of) { return groups(all.size(), of).size() == 1; };
  if (!is_one([&](std::size_t r) { return all[r].doing; })) throw Mismatch("parallel::agree: " + at_places(all));
  std::string words = "the ranks are not alike at " + at_lines(all);
  if (!is_one([&](std::size_t r) { return all[r].facts; }))
    throw Mismatch("parallel::agree: " + words + "; they compare different facts");
  for (std::size_t f = 0; f < facts.size(); ++f) {
    const auto have = groups(all.size(), [&](std::size_t r) { return all[r].hashes[f]; });
    if (have.size() == 1) continue;
    const bool speaks = std::any_of(have.begin(), have.end(), [&](const auto& g) { return g[0] == world.rank(); });
    const std::string own = speaks ? facts[f].text ? facts[f].text() : "of hash " + mine.hashes[f] : "";
    const std::vector<std::string> texts = gathered(world, own, label);
    const auto text_of = [&](const std::vector<int>& group) { return texts[static_cast<std::size_t>(group[0])]; };
    for (std::size_t g = 1; g < have.size(); ++g)
      words += "; " + facts[f].what + " of " + ranks(have[0]) + " and of " + ranks(have[g]) + ": " +
               difference(text_of(have[0]), text_of(have[g]));
  }
  throw Mismatch("parallel::agree: " + words + "; start all ranks with the same program, mesh and settings");
}

/// The end of a run, of which all ranks know by this that all have come to it.
template <class World>
void end(World& world) {
  constexpr const char* doing = "the end of the run";
  if (world.size() > 1 && !alike(world, hash_of(doing, {}), doing)) tell(world, doing, {}, {});
}

}  // namespace agreeing

/// Compares facts over all ranks; called by all of them, with as many facts in the same order. Costs one exchange of 16
/// bytes; only where hashes differ texts follow. Throws Mismatch (exit code 76) on every rank.
///
///     agree(world, {fact("version", "3"), fact_of_data("text", std::span<const int>(tokens))});
///
/// `doing`: at which place of the program, in words for a sentence.
template <class World>
void agree(World& world, const std::vector<Fact>& facts, const std::string& doing = "a comparison", Here here = {}) {
  if (world.size() == 1) return;
  if (!agreeing::alike(world, agreeing::hash_of(doing, facts), "agreement")) agreeing::tell(world, doing, here, facts);
}

}  // namespace parallel
