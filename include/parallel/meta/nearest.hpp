// Of names that are known those nearest to one that is not, which may be meant.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parallel/meta/list.hpp>

namespace parallel::internals {

/// Letters to be changed, put in or taken out (Levenshtein, 1965).
constexpr int letters_between(std::string_view a, std::string_view b) {
  Vector<int> row;
  for (int j = 0; j <= static_cast<int>(b.size()); ++j) row.push_back(j);
  for (const char letter : a) {
    int diagonal = row[0]++;
    for (int j = 1; j < row.size(); ++j) {
      const int changed = diagonal + (letter == b[static_cast<std::size_t>(j - 1)] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min(std::min(changed, row[j] + 1), row[j - 1] + 1);
    }
  }
  return row.back();
}
/// Whether a path is the last part of another, whatever that is within: "mlp.up" of "blocks.2.mlp.up".
constexpr bool within(std::string_view path, std::string_view whole) {
  return path.size() < whole.size() && whole.ends_with(path) && whole[whole.size() - path.size() - 1] == '.';
}
/// At most so many, the nearest first: before all paths of which one ends in the other, and of equals the one that was
/// given first.
inline std::vector<std::string> nearest(std::string_view name, std::vector<std::string> known, std::size_t most) {
  const auto far = [&](const std::string& other) {
    return within(name, other) || within(other, name) ? 0 : letters_between(name, other);
  };
  std::stable_sort(known.begin(), known.end(),
                   [&](const std::string& a, const std::string& b) { return far(a) < far(b); });
  known.resize(std::min(known.size(), most));
  return known;
}

/// "; nearest are a, b", behind a sentence that says what is not there.
inline std::string nearest_of(std::string_view name, std::vector<std::string> known) {
  std::string words;
  for (const std::string& one : nearest(name, std::move(known), 3))
    words += (words.empty() ? "; nearest are " : ", ") + one;
  return words;
}

}  // namespace parallel::internals
