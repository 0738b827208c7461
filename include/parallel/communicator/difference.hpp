// How ranks and texts that differ read in a sentence.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace parallel::internals::agreeing {

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

/// "plan, seed of the trainer", or "nothing"
inline std::string listed(const std::vector<std::string>& some) {
  std::string words;
  for (const std::string& one : some) words += (words.empty() ? "" : ", ") + one;
  return words.empty() ? "nothing" : words;
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
/// Of two long lines what lies around their first difference.
inline std::pair<std::string, std::string> around_difference(const std::string& one, const std::string& other) {
  constexpr std::size_t most = 120, before = 40;  // characters
  if (one.size() <= most && other.size() <= most) return {one, other};
  const auto part = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  const auto same = static_cast<std::size_t>(part.first - one.begin());
  const std::size_t begin = same > before ? same - before : 0;
  const auto cut = [&](const std::string& line) {
    const std::string end = begin + most < line.size() ? "..." : "";
    return (begin > 0 ? "..." : "") + line.substr(std::min(begin, line.size()), most) + end;
  };
  return {cut(one), cut(other)};
}
/// What the first differences of two texts are: where they part and where they meet again.
inline std::string difference(const std::string& one, const std::string& other) {
  auto a = parts_of(one, '\n'), b = parts_of(other, '\n');
  if (a.size() <= 1 && b.size() <= 1) {
    a.resize(1);
    b.resize(1);
    const auto [mine, yours] = around_difference(a[0], b[0]);
    return mine == yours ? mine + " in both, of another type" : mine + " against " + yours;
  }
  constexpr std::size_t most = 5;  // lines of each
  std::size_t same = 0, end = 0;
  while (same < a.size() && same < b.size() && a[same] == b[same]) ++same;
  while (end < a.size() - same && end < b.size() - same && a[a.size() - 1 - end] == b[b.size() - 1 - end]) ++end;
  std::vector<std::string> of_one, of_other;
  for (std::size_t i = same; i < std::max(a.size(), b.size()) - end; ++i) {
    const bool in_one = i < a.size() - end, in_other = i < b.size() - end;
    if (in_one && in_other && a[i] == b[i]) continue;
    const auto [mine, yours] = around_difference(in_one ? a[i] : "", in_other ? b[i] : "");
    if (in_one && of_one.size() < most) of_one.push_back("\n  - " + mine);
    if (in_other && of_other.size() < most) of_other.push_back("\n  + " + yours);
  }
  std::string words = "from line " + std::to_string(same + 1) + ", the former's with -, the latter's with +";
  for (const auto* lines : {&of_one, &of_other})
    for (const std::string& line : *lines) words += line;
  return words;
}

}  // namespace parallel::internals::agreeing
