// A timed schedule as a picture: a row for each rank, a block for each task; below it, where a run was measured, the
// same rank's row of that.
#pragma once
#include <algorithm>

#include <parallel/schedule/picture.hpp>

#include "svg.hpp"

namespace planner {

namespace drawing {
inline constexpr std::string_view schedule_look =
    "<style>text{font:12px system-ui,\"DejaVu Sans\",sans-serif;fill:#1c2127}.middle{text-anchor:middle}.faint{font-size:11px;fill:#5b6470}"
    "rect{stroke:#3a6b8f}.forward{fill:#d5e6f2}.backward{fill:#f1e7cf}.weight{fill:#d3ebdd}.update{fill:#ecd9e6}"
    "@media(prefers-color-scheme:dark){text{fill:#e4e7ea}.faint{fill:#9ba5b1}rect{stroke:#82b8dc}.forward{fill:#234358}.backward{fill:#4c4326}"
    ".weight{fill:#1d4634}.update{fill:#4b2f45}}</style>\n";
}  // namespace drawing

/// The element svg, `width` pixels wide. `run`: the same tasks as they were measured, in the same unit of time.
inline std::string svg(const Timing& timing, const std::string& who = "rank", const Timing* run = nullptr,
                       int width = 960) {
  using namespace drawing;
  constexpr int left = 56, row = 26;
  constexpr std::string_view looks[] = {"forward", "backward", "weight", "update"};
  const std::string title = std::string(timing.tasks.schedule.name) + ", " + std::to_string(timing.tasks.size()) + " " +
                            who + "s, " + std::to_string(timing.tasks.micro_batches) + " micro-batches" +
                            (run != nullptr ? ", planned and run" : "");
  double last = 0;
  for (const Timing* drawn : {&timing, run})
    for (int rank = 0; drawn != nullptr && rank < drawn->spans.size(); ++rank)
      for (const Span& s : drawn->spans[rank])
        if (s.end < Span::never) last = std::max(last, s.end);
  const auto x = [&](double time) {
    return left + static_cast<int>((width - left - 1) * time / (last > 0 ? last : 1));
  };
  Canvas canvas;
  canvas.words(4, 16, title, "title");
  int y = 28;
  const auto draw = [&](const Timing& drawn, int rank, const std::string& name) {
    canvas.words(4, y + row / 2 + 4, name, "faint");
    for (int i = 0; i < drawn.spans[rank].size(); ++i) {
      const Span& s = drawn.spans[rank][i];
      if (!(s.end < Span::never) || x(s.end) == x(s.begin)) continue;
      const Task task = drawn.tasks.stages[rank][i];
      const std::string label = text(task, drawn.tasks.schedule.chunks);
      canvas.drawn += "<g><title>" + label + "</title>";
      canvas.sheet(x(s.begin), y, x(s.end) - x(s.begin), row, std::string(looks[static_cast<int>(task.work)]));
      if (x(s.end) - x(s.begin) >= 7 * static_cast<int>(label.size()))
        canvas.words((x(s.begin) + x(s.end)) / 2, y + row / 2 + 4, label, "middle");
      canvas.drawn += "</g>\n";
    }
  };
  for (int rank = 0; rank < timing.tasks.size(); ++rank, y += row + 6) {
    draw(timing, rank, who + " " + std::to_string(rank));
    if (run == nullptr) continue;
    y += row;
    draw(*run, rank, "run " + std::to_string(rank));
  }
  const std::string size = std::to_string(width) + "\" height=\"" + std::to_string(y);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"0 0 " + std::to_string(width) +
         " " + std::to_string(y) + "\" role=\"img\" aria-label=\"" + escaped(title) + "\">\n" +
         std::string(schedule_look) + canvas.drawn + "</svg>\n";
}

}  // namespace planner
