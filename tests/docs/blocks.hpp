// Blocks of documents: tables and plans as text, under the names by which the documents quote them.
#pragma once
#include <cmath>
#include <cstdio>
#include <string>

#include <parallel/parallel.hpp>

namespace blocks {
using namespace parallel;
using namespace parallel::internals;

inline void begin(const std::string& name) { std::printf("@ %s\n", name.c_str()); }

/// What a rank sends, as a formula in the message N and the ranks n: the one that gives what the code gives.
inline std::string cost(Collective c) {
  struct Formula {
    const char* text;
    double (*value)(double n);
  };
  const Formula formulas[] = {{"0", [](double) { return 0.0; }},
                              {"(n-1)/n N", [](double n) { return (n - 1) / n; }},
                              {"2(n-1)/n N", [](double n) { return 2 * (n - 1) / n; }},
                              {"(n-1)/n² N", [](double n) { return (n - 1) / (n * n); }},
                              {"N", [](double) { return 1.0; }}};
  for (const Formula& f : formulas) {
    bool same = true;
    for (const int n : {2, 3, 5, 8}) same = same && std::abs(sent(c, 1, n) - f.value(n)) < 1e-12;
    if (same) return f.text;
  }
  return "?";
}
inline std::string arrow(Placement from, Placement to) { return text(from) + " → " + text(to); }

inline void print_plan(const std::string& name, const Plan& plan) {
  begin("plan " + name);
  std::string whole = text(plan);
  while (whole.ends_with('\n')) whole.pop_back();
  std::printf("```text\n%s\n```\n", whole.c_str());
}
/// The collectives of a plan only, and what is computed several times.
inline void print_collectives(const std::string& name, const Plan& plan, bool computed = false) {
  begin("collectives " + name);
  const std::string whole = text(plan);
  const std::size_t first = whole.find("phase "), last = whole.find("\n\nper step");
  std::string lines = plan.calls() > 0 ? whole.substr(first, last - first) : "(no collective)";
  if (computed)
    lines += "\n" + whole.substr(whole.find("\ncomputation per rank"),
                                 whole.rfind('\n') - whole.find("\ncomputation per rank"));
  std::printf("```text\n%s\n```\n", lines.c_str());
}

inline void print_block(const std::string& name, std::string words) {
  begin(name);
  while (words.ends_with('\n')) words.pop_back();
  std::printf("```text\n%s\n```\n", words.c_str());
}

}  // namespace blocks
