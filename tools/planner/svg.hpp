// How a tensor lies on a mesh, as a picture: split dimensions make a grid of blocks, each with the ranks that hold it;
// copies are a pile of sheets, those of a Broadcast in two colours; the terms of a pending sum are hatched.
#pragma once
#include <algorithm>

#include "held.hpp"

namespace planner {

namespace drawing {
/// The dimensions drawn down and across, -1 for none: those that are split, else the last ones. Further split
/// dimensions make panels.
struct Facing {
  int down = -1, across = -1;
  std::vector<int> panels{};
};
inline Facing facing(const Layout& layout, const Mesh& mesh) {
  std::vector<int> split, taken;
  for (int d = 0; d < layout.rank(); ++d)
    if (degree(layout.dims[d], mesh) > 1) split.push_back(d);
  taken.assign(split.size() > 2 ? split.end() - 2 : split.begin(), split.end());
  for (int d = layout.rank() - 1; d >= 0 && taken.size() < 2; --d)
    if (std::find(taken.begin(), taken.end(), d) == taken.end()) taken.push_back(d);
  std::sort(taken.begin(), taken.end());
  Facing result;
  if (!taken.empty()) result.across = taken.back();
  if (taken.size() > 1) result.down = taken.front();
  for (const int d : split)
    if (std::find(taken.begin(), taken.end(), d) == taken.end()) result.panels.push_back(d);
  return result;
}

/// At most a dozen slices of a dimension; -1 is the gap before the last where there are more.
inline std::vector<std::int64_t> shown(std::int64_t n) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < n && (n <= 12 || i < 10); ++i) result.push_back(i);
  if (n > 12) result.insert(result.end(), {-1, n - 1});
  return result;
}

inline std::string escaped(std::string_view words) {
  std::string result;
  for (const char c : words)
    c == '&'   ? result += "&amp;"
    : c == '<' ? result += "&lt;"
    : c == '>' ? result += "&gt;"
    : c == '"' ? result += "&quot;"
               : result += c;
  return result;
}
inline std::string rank_words(const std::vector<int>& ranks) {
  std::string result = ranks.size() == 1 ? "rank " : "ranks ";
  if (ranks.size() > 4)
    return result + std::to_string(ranks[0]) + ", " + std::to_string(ranks[1]) + " … " + std::to_string(ranks.back());
  for (std::size_t i = 0; i < ranks.size(); ++i) result += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return result;
}

/// The elements of a drawing, in pixels.
struct Canvas {
  std::string drawn{};
  void words(int x, int y, const std::string& what, const std::string& look) {
    drawn += "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" class=\"" + look + "\">" +
             escaped(what) + "</text>\n";
  }
  void sheet(int x, int y, int wide, int high, const std::string& look) {
    drawn += "<rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" width=\"" + std::to_string(wide) +
             "\" height=\"" + std::to_string(high) + "\" rx=\"5\" class=\"" + look + "\"/>\n";
  }
};

inline constexpr std::string_view look =
    "<style>text{font:12px system-ui,\"DejaVu Sans\",sans-serif;fill:#1c2127}.faint{font-size:11px;fill:#5b6470}.middle{text-anchor:middle}"
    ".end{text-anchor:end}.sheet{fill:#d5e6f2;stroke:#3a6b8f}.other{fill:#f1e7cf;stroke:#3a6b8f}.hatched{fill:url(#hatch)}.label{fill:#"
    "d5e6f2}"
    ".nothing{fill:none;stroke:#5b6470;stroke-dasharray:4 4}#hatch line{stroke:#3a6b8f;stroke-width:1.6;opacity:.55}"
    "@media(prefers-color-scheme:dark){text{fill:#e4e7ea}.faint{fill:#9ba5b1}.sheet{fill:#234358;stroke:#82b8dc}.other{fill:#4c4326;stroke:"
    "#82b8dc}"
    ".label{fill:#234358}#hatch line{stroke:#82b8dc}}</style>\n";
inline constexpr std::string_view hatch =
    "<defs><pattern id=\"hatch\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
    "<line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\"/></pattern></defs>\n";

inline constexpr int wide = 122, high = 62, pile = 6,
                     most_sheets = 4;  ///< a block, how far the sheets of a pile are apart, and how many are drawn

/// A block at (x, y): as many sheets as ranks hold it. `slice`: what they hold, in words.
inline void block(Canvas& canvas, int x, int y, const std::vector<int>& ranks, const std::string& slice, bool pending,
                  bool differently) {
  canvas.drawn += "<g class=\"block\"><title>" + rank_words(ranks) + ": " + slice + "</title>\n";
  for (int k = std::min<int>(most_sheets, static_cast<int>(ranks.size())) - 1; k >= 0; --k) {
    canvas.sheet(x + k * pile, y + k * pile, wide, high, differently && k % 2 == 1 ? "other" : "sheet");
    if (pending) canvas.sheet(x + k * pile, y + k * pile, wide, high, "hatched");
  }
  if (pending) canvas.sheet(x + 8, y + high / 2 - 12, wide - 16, 24, "label");
  canvas.words(x + wide / 2, y + high / 2 + 4, rank_words(ranks), "middle");
  canvas.drawn += "</g>\n";
}
inline std::string named(const Type& type, int d) {
  std::string result = "dimension " + std::to_string(d) + ", " + std::to_string(type.layout.dims[d].size);
  for (const Axis* a : type.layout.dims[d]) result += "/" + std::string(a->text());
  return result;
}
}  // namespace drawing

/// The element svg. `alone`: in a file of its own, with a title and colours; else the page that it stands in has both.
inline std::string svg(const Type& type, const Pictured& mesh, bool alone = true) {
  using namespace drawing;
  const Layout& layout = type.layout;
  const auto held = holders(type, mesh);
  const Facing face = facing(layout, mesh);
  const bool pending = on_any(type, PlacementKind::partial), differently = on_any(type, PlacementKind::broadcast);
  std::size_t copies = 1;
  for (const auto& [slice, ranks] : held) copies = std::max(copies, ranks.size());
  const int gap = 12 + (std::min<int>(most_sheets, static_cast<int>(copies)) - 1) * pile,
            left = face.down < 0 ? 16 : 84;
  const auto slices = [&](int d) { return shown(d < 0 ? 1 : degree(layout.dims[d], mesh)); };
  const auto down = slices(face.down), across = slices(face.across);

  // one panel for every choice of slices in the dimensions that are neither down nor across
  std::vector<HeldSlice> panels{HeldSlice(static_cast<std::size_t>(layout.rank()), 0)};
  for (const int d : face.panels) {
    std::vector<HeldSlice> more;
    for (const HeldSlice& panel : panels)
      for (const std::int64_t s : slices(d)) {
        if (s < 0) continue;
        more.push_back(panel);
        more.back()[static_cast<std::size_t>(d)] = s;
      }
    panels = more;
  }
  Canvas canvas;
  if (alone) canvas.words(4, 16, text(type) + " on " + text(mesh), "title");
  int y = alone ? 26 : 0;
  for (HeldSlice slice : panels) {
    std::string fixed;
    for (const int d : face.panels)
      fixed += (fixed.empty() ? "" : ", ") + ("dimension " + std::to_string(d) + ": ") +
               range(layout.dims[d], mesh, slice[static_cast<std::size_t>(d)]);
    if (!fixed.empty()) canvas.words(4, y += 16, fixed, "panel");
    if (face.down >= 0) canvas.words(4, y += 16, "↓ " + named(type, face.down), "faint");
    if (face.across >= 0) {
      canvas.words(4, y += 16, "→ " + named(type, face.across), "faint");
      y += 22;
      int x = left + wide / 2;
      for (const std::int64_t c : across) {
        canvas.words(x, y, c < 0 ? "…" : range(layout.dims[face.across], mesh, c), "faint middle");
        x += wide + gap;
      }
    }
    y += 8;
    for (const std::int64_t r : down) {
      if (face.down >= 0)
        canvas.words(left - 8, y + high / 2 + 4, r < 0 ? "…" : range(layout.dims[face.down], mesh, r), "faint end");
      int x = left;
      for (const std::int64_t c : across) {
        if (face.down >= 0) slice[static_cast<std::size_t>(face.down)] = r;
        if (face.across >= 0) slice[static_cast<std::size_t>(face.across)] = c;
        if (const auto found = held.find(slice); found != held.end())
          block(canvas, x, y, found->second, ranges(type, mesh, slice), pending, differently);
        x += wide + gap;
      }
      y += high + gap;
    }
  }
  std::vector<int> without;
  for (int rank = 0; rank < mesh.ranks(); ++rank)
    if (!holds(type, mesh, rank)) without.push_back(rank);
  if (!without.empty()) {
    canvas.sheet(left, y, wide, 34, "nothing");
    canvas.words(left + wide + 10, y + 21,
                 rank_words(without) + (without.size() == 1 ? " holds nothing" : " hold nothing"), "faint");
    y += 44;
  }
  const int room = std::max(360, left + static_cast<int>(across.size()) * (wide + gap));
  const std::string size = std::to_string(room) + "\" height=\"" + std::to_string(y);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"0 0 " + std::to_string(room) +
         " " + std::to_string(y) + "\" role=\"img\" aria-label=\"" + escaped(text(type) + " on " + text(mesh)) +
         "\">\n" + std::string(alone ? look : "") + std::string(hatch) + canvas.drawn + "</svg>\n";
}

}  // namespace planner
