// A pipeline as its stages work through it.
#pragma once
#include <string>

#include <parallel/cost/predict.hpp>
#include <parallel/question/text.hpp>
#include <parallel/schedule/picture.hpp>

#include "held.hpp"

namespace planner {

using namespace parallel;
using namespace parallel::internals;

inline std::string_view name_of(Work w) {
  constexpr std::string_view names[] = {"forward", "backward", "weight", "update"};
  return names[static_cast<int>(w)];
}

/// The ranks of a plan, and which layers each stage has.
inline Pictured pictured(const Plan& plan) {
  Pictured result(plan.mesh);
  const Pipeline p = pipeline_of(plan.graph, plan.mesh);
  result.cut = {};
  result.stages = plan.graph.stages;
  for (int stage = 0; stage < p.stages && p.stages > 1; ++stage) {
    std::string words;
    for (int chunk = 0; chunk < p.chunks; ++chunk) {
      const LayerRange layers = layers_on(plan, stage, chunk);
      words +=
          (chunk > 0 ? " and " : "") + std::to_string(layers.first) + ":" + std::to_string(layers.first + layers.count);
    }
    result.layers.push_back(words);
  }
  return result;
}

/// The stage that has a layer of those that are shared out.
inline int stage_of_layer(const Plan& plan, int layer) {
  const Pipeline p = pipeline_of(plan.graph, plan.mesh);
  for (int stage = 0; stage < p.stages; ++stage)
    for (int chunk = 0; chunk < p.chunks; ++chunk)
      if (const LayerRange layers = layers_on(plan, stage, chunk);
          layer >= layers.first && layer < layers.first + layers.count)
        return stage;
  return 0;
}

/// What a stage does, in order: "F0 F1 B0 F2 B1".
inline std::string tasks_of(const Plan& plan) {
  const int chunks = pipeline_of(plan.graph, plan.mesh).chunks;
  std::string words;
  for (const Slot& s : plan.graph.slots) words += (words.empty() ? "" : " ") + text(task_of(plan.graph, s), chunks);
  return words;
}

/// "bubble 27.3 %: the busiest stage waits so long"
inline std::string bubble(const Timing& timing) {
  char words[80];
  std::snprintf(words, sizeof words, "bubble %.1f %%, in which the busiest stage waits", 100 * timing.bubble());
  return words;
}

/// What a column of a picture stands for: the shortest task, unless the picture would be too wide to read.
inline double picture_unit(std::initializer_list<const Timing*> drawn) {
  constexpr double most_columns = 120;
  double shortest = Span::never, last = 0;
  for (const Timing* timing : drawn)
    for (const Vector<Span>& stage : timing->spans)
      for (const Span& s : stage) {
        if (s.end > s.begin) shortest = std::min(shortest, s.end - s.begin);
        last = std::max(last, s.end);
      }
  return std::max(shortest, last / most_columns);
}

}  // namespace planner
