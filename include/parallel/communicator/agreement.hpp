// What all ranks must have alike: compared by one exchange of 16 bytes, and told as a difference where they have not.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include <parallel/communicator/difference.hpp>
#include <parallel/communicator/exchange.hpp>
#include <parallel/communicator/fact.hpp>
#include <parallel/meta/here.hpp>
#include <parallel/meta/nearest.hpp>

namespace parallel::internals {

namespace agreeing {

/// Facts in which ranks may differ: PARALLEL_MAY_DIFFER names them ("numerics", or several with commas between).
inline std::vector<std::string> excepted() {
  const char* named = std::getenv("PARALLEL_MAY_DIFFER");
  return parts_of(named != nullptr ? named : "", ',');
}
inline bool names(const std::vector<std::string>& some, std::string_view what) {
  return std::find(some.begin(), some.end(), what) != some.end();
}
inline bool names_fact(const std::vector<Fact>& facts, std::string_view what) {
  return std::any_of(facts.begin(), facts.end(), [&](const Fact& f) { return f.what == what; });
}
inline bool may_differ(const Fact& f) { return !f.always && names(excepted(), f.what); }
/// Throws Failure (exit code 78) where an exception is made of what all ranks must have alike, or its name is misspelt.
/// A name that is far from all may be of a fact that is compared later.
inline void check_excepted(const std::vector<Fact>& facts) {
  const std::vector<std::string> exceptions = excepted();
  for (const std::string& name : exceptions)
    if (const int letters = letters_between(name, "numerics"); letters > 0 && letters <= 2 && !names_fact(facts, name))
      throw Failure("parallel::agree: PARALLEL_MAY_DIFFER names " + name +
                        ", which is none of what is compared; numerics may be meant",
                    exit_code::configuration);
  for (const Fact& f : facts)
    if (f.always && names(exceptions, f.what))
      throw Failure("parallel::agree: PARALLEL_MAY_DIFFER names " + f.what +
                        ", but ranks that differ in it compute something else; name numerics, or facts of your own",
                    exit_code::configuration);
}
/// The first rank says once what ranks are not compared in, and which variable is misspelt.
inline void tell_environment(int rank, int ranks) {
  static std::atomic<bool> said{false}, looked{false};
  if (const char* named = std::getenv("PARALLEL_MAY_DIFFER");
      named != nullptr && *named != '\0' && rank == 0 && ranks > 1 && !said.exchange(true))
    std::fprintf(stderr, "parallel: ranks are not compared in what PARALLEL_MAY_DIFFER names: %s\n", named);
  if (rank != 0 || looked.exchange(true)) return;
  constexpr std::string_view read[] = {"PARALLEL_MAY_DIFFER", "PARALLEL_WATCH", "PARALLEL_CHECK", "PARALLEL_RECORD"};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view name = std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
    if (!name.starts_with("PARALLEL_")) continue;
    for (const std::string_view known : read)
      if (const int letters = letters_between(name, known); letters > 0 && letters <= 2)
        std::fprintf(stderr, "parallel: nobody reads the variable %s; %s may be meant\n", std::string(name).c_str(),
                     std::string(known).c_str());
  }
}

/// What is compared of facts: their names and hashes.
inline std::uint64_t hash_of(std::string_view doing, const std::vector<Fact>& facts) {
  Hash all;
  all.name(doing);
  for (const Fact& f : facts) {
    all.name(f.what);
    all.word(may_differ(f) ? 0 : static_cast<std::int64_t>(f.hash));
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

/// Of this process, larger than all that it has given.
inline std::atomic<std::int64_t> next_number{1};
/// A number for what all ranks make together, the largest that any of them would give next: no rank has given it before
/// (Lamport, 1978). One exchange of 16 bytes.
template <class World>
std::int64_t numbered(World& world, const char* label) {
  double words[2] = {static_cast<double>(next_number.load()), 0};
  world.aside({Collective::all_reduce, words, words, 2, DType::f64, true, 0, label});
  const auto number = static_cast<std::int64_t>(words[0]);
  for (std::int64_t next = next_number; next <= number && !next_number.compare_exchange_weak(next, number + 1);) {
  }
  return number;
}

/// The exchange of either, as a record has it.
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
  for (std::size_t i = 2; i + 1 < parts.size(); i += 2) {
    said.facts.push_back(parts[i]);
    said.hashes.push_back(parts[i + 1]);
  }
  return said;
}

/// `step 5 of a training (gpt.cpp:141)`
inline std::string placed(const Said& said) { return said.doing + (said.from.empty() ? "" : " (" + said.from + ")"); }

/// Where all do the same: from which line, or from which lines.
inline std::string at_lines(const std::vector<Said>& all) {
  const auto lines = groups(all.size(), [&](std::size_t r) { return all[r].from; });
  if (lines.size() == 1) return placed(all[0]);
  const auto from_of = [&](const std::vector<int>& group) {
    const std::string& from = all[static_cast<std::size_t>(group[0])].from;
    return from.empty() ? "a line that is not known" : from;
  };
  std::string words = all[0].doing + " (";
  for (const auto& g : lines) words += (g[0] == 0 ? "" : "; ") + ranks(g) + " " + from_of(g);
  return words + ")";
}
/// Who says what, where ranks do not say the same: "ranks 0, 1 VERB a, rank 2 b".
template <class Of>
std::string who_says(const std::vector<Said>& all, const char* of_one, const char* of_several, const char* then,
                     Of of) {
  std::string words;
  for (const auto& g : groups(all.size(), [&](std::size_t r) { return of(all[r]); })) {
    const char* verb = !words.empty() ? then : g.size() == 1 ? of_one : of_several;
    words += (words.empty() ? "" : ", ") + ranks(g) + verb + of(all[static_cast<std::size_t>(g[0])]);
  }
  return words;
}

/// `gpt.cpp:141`; nothing where a function of the standard library, as make_unique, made the call.
inline std::string text(const Source& from) {
  const std::string file = from.file;
  if (from.line <= 0 || file.find("/include/c++/") != std::string::npos) return "";
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(from.line);
}

/// What to do about it.
inline constexpr const char* same_order = "let all ranks do the same in the same order";
inline constexpr const char* same_start = "start all ranks with the same program, mesh and settings";

/// All ranks have found that they differ: each says what it does; of facts that differ one rank of those that have them
/// alike says what they are. Throws Mismatch (exit code 76) on every rank.
template <class World>
[[noreturn]] void tell(World& world, std::string doing, const Source& from, const std::vector<Fact>& facts,
                       const char* remedy = same_start, const std::string& who = {}) {
  constexpr const char* label = "what ranks say of a difference";
  const std::string line = text(from);
  Said mine{std::move(doing), line + (line.empty() || who.empty() ? "" : ", ") + who, {}, {}};
  for (const Fact& f : facts) {
    mine.facts.push_back(f.what);
    mine.hashes.push_back(std::to_string(may_differ(f) ? 0 : f.hash));
  }
  std::vector<Said> all;
  for (const std::string& words : gathered(world, written(mine), label)) all.push_back(read(words));
  const auto differ = [&](const std::string& words) { return Mismatch("parallel::agree: " + words, world.size()); };
  const auto is_one = [&](const auto& of) { return groups(all.size(), of).size() == 1; };
  if (!is_one([&](std::size_t r) { return all[r].doing; }))
    throw differ("the ranks are not at one place: " + who_says(all, " is at ", " are at ", " at ", placed) + "; " +
                 same_order);
  std::string words = "the ranks are not alike at " + at_lines(all);
  if (!is_one([&](std::size_t r) { return all[r].facts; })) {
    const auto not_of_all = [&](const Said& said) {
      std::vector<std::string> some;
      for (const std::string& fact : said.facts)
        if (!std::all_of(all.begin(), all.end(), [&](const Said& other) { return names(other.facts, fact); }))
          some.push_back(fact);
      return listed(some);
    };
    throw differ(words + ": beside what all compare " + who_says(all, " compares ", " compare ", " ", not_of_all) +
                 "; give all ranks the same facts in the same order");
  }
  // First, as ranks hash other facts by it, too: scalars are rounded where numerics may differ.
  for (std::size_t f = 0; f < facts.size(); ++f) {
    const auto excepts = groups(all.size(), [&](std::size_t r) { return all[r].hashes[f] == "0"; });
    if (excepts.size() == 1) continue;
    const bool first = all[static_cast<std::size_t>(excepts[0][0])].hashes[f] == "0";
    throw differ(words + ": PARALLEL_MAY_DIFFER names " + facts[f].what + " on " + ranks(excepts[first ? 0 : 1]) +
                 " and not on " + ranks(excepts[first ? 1 : 0]) + "; set it on all ranks alike, as by mpirun -x");
  }
  std::string may;
  for (std::size_t f = 0; f < facts.size(); ++f) {
    const auto have = groups(all.size(), [&](std::size_t r) { return all[r].hashes[f]; });
    if (have.size() == 1) continue;
    if (!facts[f].always) may += (may.empty() ? "" : ",") + facts[f].what;
    const bool speaks = std::any_of(have.begin(), have.end(), [&](const auto& g) { return g[0] == world.rank(); });
    const std::string own = !speaks ? "" : facts[f].text ? facts[f].text() : "of hash " + mine.hashes[f];
    const std::vector<std::string> texts = gathered(world, own, label);
    const auto text_of = [&](const std::vector<int>& group) { return texts[static_cast<std::size_t>(group[0])]; };
    for (std::size_t g = 1; g < have.size(); ++g)
      words += "; " + facts[f].what + " of " + ranks(have[0]) + " and of " + ranks(have[g]) + ": " +
               difference(text_of(have[0]), text_of(have[g]));
  }
  words += std::string("; ") + remedy;
  if (!may.empty()) words += ", or, where that is meant, with PARALLEL_MAY_DIFFER='" + may + "'";
  for (const std::string& name : excepted())
    if (!may.empty() && name != "numerics" && !names(mine.facts, name))
      words += "; PARALLEL_MAY_DIFFER names " + name + ", which is none of what is compared here";
  throw differ(words);
}

/// The end of a run, of which all ranks know by this that all have come to it.
template <class World>
void end(World& world) {
  constexpr const char* doing = "the end of the run";
  if (world.size() > 1 && !alike(world, hash_of(doing, {}), doing)) tell(world, doing, {}, {});
}

}  // namespace agreeing

/// Compares facts over all ranks; called by all of them, with as many facts in the same order. Costs one exchange of 16
/// bytes; only where hashes differ texts follow. Throws Mismatch (exit code 76) on every rank, and Failure (78) where
/// PARALLEL_MAY_DIFFER names what cannot be excepted.
///
///     agree(world, {fact("version", "3"), fact_of_data("text", std::span<const int>(tokens))});
///
/// `doing`: at which place of the program, in words for a sentence.
template <class World>
void agree(World& world, const std::vector<Fact>& facts, const std::string& doing = "a comparison", Here here = {}) {
  agreeing::tell_environment(world.rank(), world.size());
  if (world.size() == 1) return;
  agreeing::check_excepted(facts);
  if (!agreeing::alike(world, agreeing::hash_of(doing, facts), "agreement")) agreeing::tell(world, doing, here, facts);
}

}  // namespace parallel::internals

namespace parallel {
using internals::agree;
}  // namespace parallel
