// Plans as one page of HTML that opens from disk: the pictures are drawn by the page itself, from the JSON that is put into it.
#pragma once
#include <string>
#include <string_view>

#include "json.hpp"

namespace planner {

namespace page {
// Each file is one raw string, so that the compiler reads it, and the build knows that the tool depends on it. In the order in which they
// stand in the page.
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

/// JSON that may stand within a script element: `<` only occurs in strings, where \u003c is the same, so that nothing can end the element.
inline std::string embedded(const Json& json) {
  std::string result;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) c == '<' ? result += "\\u003c" : result += c;
  return result;
}
}  // namespace page

/// One page with these plans, an array of what json(plan, name) says, or one of them.
inline std::string report(const Json& plans) {
  std::string script;
  for (const std::string_view s : page::scripts) script += s;
  std::string result;
  for (std::string_view rest = page::html; !rest.empty();) {
    // The placeholders stand once each and in this order; what replaces them is not searched again.
    const std::size_t at = rest.find('@'), end = rest.find('@', at + 1);
    result += rest.substr(0, at);
    if (end == std::string_view::npos) break;
    const std::string_view name = rest.substr(at + 1, end - at - 1);
    if (name == "style") result += page::style;
    if (name == "plans") result += page::embedded(plans.is_array() ? plans : Json::array({plans}));
    if (name == "script") result += script;
    rest.remove_prefix(end + 1);
  }
  return result;
}

}  // namespace planner
