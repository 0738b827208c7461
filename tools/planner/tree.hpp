// A plan as a tree: phases, loops, the user's lines in the order of the step, and under each the collectives that it causes.
#pragma once
#include <cstdio>
#include <functional>
#include <string>

#include "cause.hpp"

namespace planner {

/// Seconds of one run of a node, or nothing where no machine is known.
using Price = std::function<double(const Node&)>;

inline std::string duration(double seconds) {
  char buffer[32];
  const char* units[] = {"s", "ms", "us", "ns"};
  int unit = 0;
  while (seconds < 1 && seconds > 0 && unit < 3) seconds *= 1000, ++unit;
  std::snprintf(buffer, sizeof buffer, "%.3g %s", seconds, units[unit]);
  return buffer;
}

class Tree {
 public:
  Tree(const Plan& plan, Price price) : plan_(plan), price_(std::move(price)) {}

  std::string text() {
    for (const Event& e : plan_.events) {
      const Node& node = plan_.graph.node(e.node);
      if (depth_ == 1 && static_cast<int>(node.phase) != phase_ && (e.kind == EventKind::compute || e.kind == EventKind::begin || e.kind == EventKind::start)) {
        phase_ = static_cast<int>(node.phase), origin_ = -2;
        out_ += std::string(out_.empty() ? "" : "\n") + std::string(name_of(node.phase)) + "\n";
      }
      switch (e.kind) {
        case EventKind::begin: begin(node); break;
        case EventKind::end: --depth_, origin_ = -2; break;
        case EventKind::start: collective(node); break;
        case EventKind::compute: compute(node); break;
        case EventKind::wait: break;
      }
    }
    return out_;
  }

 private:
  std::string indented(int more = 0) const { return std::string(static_cast<std::size_t>(2 * (depth_ + more)), ' '); }
  void begin(const Node& node) {
    const Region& r = plan_.graph.region(node.region);
    out_ += indented() + (r.kind == RegionKind::layers ? "layers" : "micro-batches") + ", " + std::to_string(r.count) + " times" + (r.reversed ? ", the last first" : "") + "\n";
    ++depth_, origin_ = -2;
  }
  /// One line for all that one operation of the user becomes.
  void line(const Node& node) {
    const bool optimizer = node.phase == Phase::optimizer;
    if (node.origin == origin_ && (!optimizer || (node.operation == operation_ && operation_ != nullptr))) return;
    origin_ = node.origin, operation_ = node.operation;
    const Origin origin = plan_.graph.origin(node);
    std::string line = indented() + place_of(origin.source);
    printing::pad(line, 24);
    const int member = optimizer ? node.member : origin.member;
    if (member >= 0) line += std::string(plan_.graph.member(member).path.view());
    printing::pad(line, 52);
    line += optimizer || origin.operation == nullptr ? spelled(*node.operation) : spelled(*origin.operation);
    if (node.phase == Phase::backward) line += ", backward";
    if (node.phase == Phase::forward) {
      printing::pad(line, 80);
      line += result_of(origin);
    }
    out_ += line + "\n";
  }
  static std::string spelled(const Operation& o) {
    if (&o == &operation::move) return "to<>";
    return o.name == "returned" ? "(the result)" : &o == &operation::carry ? "(the next layer)" : std::string(o.name);
  }
  /// The type of what an operation of the user gives.
  std::string result_of(const Origin& origin) const { return origin.result < 0 ? "" : parallel::text(plan_.graph.value(origin.result).type); }
  void compute(const Node& node) {
    if (node.transition.axes.empty()) line(node);
  }
  void collective(const Node& node) {
    line(node);
    const Transition& t = node.transition;
    std::string line = indented(1) + "-> " + std::string(name_of(t.collective)) + (t.maximum ? " max" : "") + " on " + parallel::text(t.axes);
    printing::pad(line, 40);
    line += parallel::text(plan_.graph.value(node.operands[0]).type);
    printing::pad(line, 80);
    line += printing::bytes(static_cast<double>(plan_.all.message(node))) + ", sends " + printing::bytes(plan_.all.sent(node));
    if (price_) line += ", " + duration(price_(node));
    printing::pad(line, 116);
    out_ += line + brief(plan_.graph, node) + "\n";
  }

  const Plan& plan_;
  Price price_;
  std::string out_{};
  int depth_ = 1, phase_ = -1, origin_ = -2;
  const Operation* operation_ = nullptr;
};

/// `price`: seconds of one run of a node; may be empty.
inline std::string tree(const Plan& plan, const Price& price = {}) { return Tree(plan, price).text(); }

}  // namespace planner
