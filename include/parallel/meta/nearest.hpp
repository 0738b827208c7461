// Of names that are known those nearest to one that is not, which may be meant.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace parallel::internals {

/// Letters to be changed, put in or taken out (Levenshtein, 1965).
inline std::size_t letters_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}
/// At most so many, the nearest first; of names that are equally near the one that was given first.
inline std::vector<std::string> nearest(std::string_view name, std::vector<std::string> known, std::size_t most) {
  std::stable_sort(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
    return letters_between(name, a) < letters_between(name, b);
  });
  known.resize(std::min(known.size(), most));
  return known;
}

}  // namespace parallel::internals
