// What the numbers of a program may be, by their names: the library's own are of a range each.
#pragma once
#include <cmath>
#include <string>
#include <string_view>

#include <parallel/run/misuse.hpp>

namespace parallel::internals {

/// From which numbers one is.
struct NumberRange {
  const char* words;
  bool (*has)(double);
};

namespace number_ranges {
inline constexpr NumberRange finite{"a finite number", [](double x) { return std::isfinite(x); }},
    from_0{"a number from 0 on", [](double x) { return std::isfinite(x) && x >= 0; }},
    above_0{"a number above 0", [](double x) { return std::isfinite(x) && x > 0; }},
    part{"a number from 0 to 1", [](double x) { return x >= 0 && x <= 1; }},
    below_1{"a number from 0 on and below 1", [](double x) { return x >= 0 && x < 1; }},
    whole{"a whole number from 0 on", [](double x) { return std::isfinite(x) && x >= 0 && std::floor(x) == x; }};

struct Named {
  std::string_view name;
  const NumberRange& range;
};
/// The scale of a loss has rules of its own (`Scalars::scale_loss`).
inline constexpr Named all[] = {
    {"learning_rate", from_0}, {"adamw_learning_rate", from_0},
    {"weight_decay", from_0},  {"clip_norm", from_0},
    {"momentum", part},        {"beta1", below_1},
    {"beta2", below_1},        {"beta2_decay", from_0},
    {"epsilon", from_0},       {"epsilon1", from_0},
    {"epsilon2", from_0},      {"clip_threshold", above_0},
    {"average_decay", part},   {"average_from", whole},
    {"seed", whole},           {"step", whole},
    {"temperature", from_0},   {"top_k", whole},
    {"top_p", part},
};
}  // namespace number_ranges

/// Which number a group's is: of "head.learning_rate" the learning rate.
constexpr std::string_view number_called(std::string_view name) { return name.substr(name.rfind('.') + 1); }

/// The range of a number, a group's too; one of an optimizer of somebody else's is finite.
inline const NumberRange& range_of(std::string_view name) {
  for (const number_ranges::Named& n : number_ranges::all)
    if (n.name == number_called(name)) return n.range;
  return number_ranges::finite;
}
/// Throws Misuse where a number is out of its range.
inline void check_number(std::string_view name, double value) {
  if (const NumberRange& range = range_of(name); !range.has(value))
    throw Misuse("the number " + std::string(name) + " is " + shortest(value) + "; give " + range.words);
}

}  // namespace parallel::internals
