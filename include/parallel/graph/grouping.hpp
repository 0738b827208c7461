// Which members of a model are not trained, and which read numbers of their own: by runs of the names in their paths.
#pragma once
#include <string_view>
#include <type_traits>

#include <parallel/meta/list.hpp>
#include <parallel/meta/name.hpp>
#include <parallel/meta/nearest.hpp>

namespace parallel::internals {

/// A name of a member in a program's words, as a template argument. What is no text is one that does not fit.
struct MemberName : Text<64> {
  bool fits = true;

  using Text<64>::Text;
  template <class Other>
  requires(!std::is_convertible_v<Other, std::string_view>) constexpr MemberName(Other) : fits(false) {}
};

/// Whether a path, "blocks.*.mlp.up", has these names one behind the other: "mlp", "mlp.up", "*.mlp", the whole path.
constexpr bool has_names(std::string_view path, std::string_view names) {
  const auto ends = [&](std::size_t at) { return at == path.size() || path[at] == '.'; };
  for (std::size_t at = 0; at + names.size() <= path.size(); ++at)
    if ((at == 0 || path[at - 1] == '.') && ends(at + names.size()) && path.substr(at, names.size()) == names)
      return !names.empty();
  return false;
}

/// Of the names in a path, and those one behind the other, what is nearer to these than to `best`; else that.
constexpr std::string_view nearer(std::string_view path, std::string_view names, std::string_view best) {
  const auto parts = [&](std::size_t at) { return at == 0 || at == path.size() || path[at] == '.'; };
  for (std::size_t begin = 0; begin < path.size(); ++begin)
    for (std::size_t end = begin + 1; end <= path.size(); ++end) {
      if (!parts(begin) || !parts(end)) continue;
      const std::size_t from = begin == 0 ? 0 : begin + 1;
      const std::string_view run = path.substr(from, end - from);
      if (best.empty() || letters_between(run, names) < letters_between(best, names)) best = run;
    }
  return best;
}

/// What a word says of the members that have some names.
struct MembersCalled {
  MemberName names{};
  MemberName group{};  ///< whose numbers they read; none: those of all
  bool frozen = false;
};
struct Grouping {
  List<MembersCalled, 16> said{};
  bool fits = true;  ///< all words are of groups, and each names members

  constexpr void hear(const List<MembersCalled, 16>& word) {
    fits = fits && !word.empty();
    for (const MembersCalled& s : word) {
      fits = fits && s.names.fits && s.group.fits;
      said.push_back(s);
    }
  }
  /// What the last word says that means a member, or null.
  constexpr const MembersCalled* of(std::string_view path) const {
    const MembersCalled* found = nullptr;
    for (const MembersCalled& s : said)
      if (has_names(path, s.names.view())) found = &s;
    return found;
  }
};

}  // namespace parallel::internals
