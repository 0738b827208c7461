// What the pages of HTML have in common that open from disk: a style sheet, elements, and how a page is put together.
// tools/plan's report is one of them, the curves of runs another.
#pragma once
#include <string>
#include <string_view>

namespace parallel::internals::page {

// Each file is one raw string, so that the compiler reads it, and a build knows that a program depends on it.
inline constexpr std::string_view style =
#include <parallel/run/page/style.css>
    ;
inline constexpr std::string_view elements =
#include <parallel/run/page/elements.js>
    ;

/// HTML in which each `@name@` has become part("name"), which is not searched again. No other `@` stands in it.
template <class Part>
std::string filled(std::string_view html, Part part) {
  std::string result;
  while (true) {
    const std::size_t at = html.find('@'), end = html.find('@', at + 1);
    result += html.substr(0, at);
    if (end == std::string_view::npos) return result;
    result += part(html.substr(at + 1, end - at - 1));
    html.remove_prefix(end + 1);
  }
}

}  // namespace parallel::internals::page
