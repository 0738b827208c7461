// Plans as one page of HTML that opens from disk. It draws from the JSON that is put into it; tensors are drawn here,
// by svg.hpp.
#pragma once
#include <string>
#include <string_view>

#include <parallel/run/page.hpp>

#include "json.hpp"
#include "svg.hpp"

namespace planner {

namespace page {
// Each file is one raw string, so that the compiler reads it, and the build knows that the tool depends on it. In the
// order in which they stand in the page.
inline constexpr std::string_view html =
#include "report/page.html"
    ;
inline constexpr std::string_view style =
#include "report/style.css"
    ;
inline constexpr std::string_view scripts[] = {
#include "report/units.js"
    ,
#include "report/totals.js"
    ,
#include "report/links.js"
    ,
#include "report/tree.js"
    ,
#include "report/bands.js"
    ,
#include "report/timeline.js"
    ,
#include "report/memory.js"
    ,
#include "report/arena.js"
    ,
#include "report/tensor.js"
    ,
#include "report/show.js"
};

/// JSON that may stand within a script element: `<` only occurs in strings, where \u003c is the same, so that nothing
/// can end the element.
inline std::string embedded(const Json& json) {
  std::string result;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace))
    c == '<' ? result += "\\u003c" : result += c;
  return result;
}
}  // namespace page

/// How each tensor of a plan lies: {type: {svg, holds}}. Holds: the slice of each rank, of the first ones where there
/// are many; null: nothing.
inline Json pictures(const Plan& plan) {
  constexpr int most_ranks = 64;
  Json result = Json::object();
  const Pictured mesh = pictured(plan);
  const auto draw = [&](const Type& type) {
    const std::string name = text(type);
    if (result.contains(name)) return;
    Json holds_of = Json::array();
    for (int rank = 0; rank < mesh.ranks() && rank < most_ranks; ++rank)
      holds_of.push_back(holds(type, mesh, rank) ? Json(ranges(type, mesh, slice_of(type, mesh, rank)))
                                                 : Json(nullptr));
    result[name] = {{"svg", svg(type, mesh, false)}, {"holds", holds_of}};
  };
  for (const Member& m : plan.graph.members) draw(m.type);
  for (const Event& e : plan.events)
    each_node(plan.graph, e, [&](int n) {
      const Node& node = plan.graph.node(n);
      for (int r = 0; r < node.results; ++r) draw(plan.graph.value(node.result + r).type);
    });
  return result;
}

/// One page with these plans: an array of what json(plan, name) says, each with its pictures.
inline std::string report(const Json& plans) {
  namespace common = parallel::internals::page;
  std::string style(common::style), script(common::elements);
  style += page::style;
  for (const std::string_view s : page::scripts) script += s;
  return common::filled(page::html, [&](std::string_view name) {
    return name == "style" ? style : name == "plans" ? page::embedded(plans) : script;
  });
}

}  // namespace planner
