// Members as a command line names them: blocks.0.mlp.down, blocks.*.mlp, input.1. A star, a number and a range stand
// for layers.
#pragma once
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include <parallel/question/text.hpp>

namespace planner {

using namespace parallel;
using namespace parallel::internals;

struct Named {
  std::vector<int> members{};  ///< whose path is the one that was given, or lies below it
  std::string beyond{};        ///< where a layer was named that there is not: "blocks has 4 layers, 0 to 3"
};

namespace naming {
inline std::string_view segment(std::string_view& rest) {
  const std::size_t dot = rest.find('.');
  const std::string_view first = rest.substr(0, dot);
  rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  return first;
}
/// The largest layer of "3", "0-3"; -1 for a star; -2 where it names no layer.
inline int last_layer(std::string_view words) {
  if (words == "*") return -1;
  int first = 0, last = 0;
  const char* end = words.data() + words.size();
  auto read = std::from_chars(words.data(), end, first);
  if (read.ec != std::errc() || first < 0) return -2;
  if (read.ptr == end) return first;
  if (*read.ptr != '-') return -2;
  read = std::from_chars(read.ptr + 1, end, last);
  return read.ec == std::errc() && read.ptr == end && first <= last ? last : -2;
}
}  // namespace naming

/// The members of a plan that a path means.
inline Named members_named(const GraphView& g, std::string_view path) {
  Named result;
  for (std::size_t m = 0; m < g.members.size(); ++m) {
    const Member& member = g.members[m];
    std::string_view asked = path, own = g.path(member);
    bool same = !path.empty();
    std::string beyond, above;
    while (same && !asked.empty() && !own.empty()) {
      const std::string_view a = naming::segment(asked), b = naming::segment(own);
      const int layer = b == "*" ? naming::last_layer(a) : -1;
      same = b == "*" ? layer != -2 : a == b;
      if (layer >= member.layers)
        beyond = above + " has " + std::to_string(member.layers) +
                 (member.layers == 1 ? " layer, 0" : " layers, 0 to " + std::to_string(member.layers - 1));
      above += (above.empty() ? "" : ".") + std::string(a);
    }
    if (!same || !asked.empty()) continue;
    if (beyond.empty())
      result.members.push_back(static_cast<int>(m));
    else
      result.beyond = beyond;
  }
  return result;
}

/// The one layer of a member that a path names; -1 where it means others, or all.
inline int layer_named(std::string_view path, std::string_view own) {
  while (!path.empty() && !own.empty()) {
    const std::string_view a = naming::segment(path), b = naming::segment(own);
    if (b == "*") return a != "*" && a.find('-') == std::string_view::npos ? naming::last_layer(a) : -1;
  }
  return -1;
}

/// The member that a value is itself: a parameter, its slice of a layer, a view or a cast of it, or an input; -1 for
/// what was made with one.
inline int member_of(const GraphView& g, int value) {
  if (g.value(value).kind == Kind::parameter) return g.value(value).member;
  if (g.maker(value).is(Structural::layer)) value = g.maker(value).operands[0];
  for (std::size_t m = 0; m < g.members.size(); ++m)
    if (g.members[m].value == value) return static_cast<int>(m);
  return -1;
}

inline std::string path_of(const GraphView& g, int member) { return std::string(g.path(member)); }

/// "token, position and norm.gain"
inline std::string listed(const std::vector<std::string>& words) {
  std::string result;
  for (std::size_t i = 0; i < words.size(); ++i)
    result += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return result;
}

}  // namespace planner
