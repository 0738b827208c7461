// A plan as a tree: phases, loops, the user's lines in the order of the step, and under each the collectives that it causes.
#pragma once
#include <cstdio>
#include <functional>
#include <string>

#include "why.hpp"

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

/// What nobody wrote and nothing but a number is: the gradient's first 1, the zeros that sums begin with.
inline bool is_beginning(const Node& node) { return node.operation->name == "constant" && node.origin < 0; }

class Tree {
 public:
  Tree(const Plan& plan, Price price) : plan_(plan), price_(std::move(price)), micro_batches_(planner::micro_batches(plan.graph)) {}

  std::string text() {
    table_.rows.push_back({{"line", "member", "operation", "gives, -> sends", "message", "sent"}});
    if (price_) table_.rows[0].cells.push_back("time");
    table_.rows[0].cells.push_back("why");
    for (const Event& e : plan_.events) {
      const Node& node = plan_.graph.node(e.node);
      const bool accumulates = plan_.graph.region(node.region).kind == RegionKind::micro_batches;
      switch (e.kind) {
        case EventKind::begin: accumulates ? enter(Part::within) : begin(node); break;
        case EventKind::end: accumulates ? enter(Part::after) : end(); break;
        case EventKind::start: collective(node); break;
        case EventKind::compute:
          if (node.transition.axes.empty() && !is_beginning(node)) line(node);
          break;
        case EventKind::wait: break;
      }
    }
    end_group();
    return table_.text();
  }

 private:
  /// Where micro-batches are accumulated, the step has three parts, each with its phases.
  enum class Part { before, within, after };
  void enter(Part part) { end_group(), part_ = part, phase_ = -1, headed_ = false; }

  void heading(int depth, const std::string& words) {
    if (depth == 0) table_.rows.push_back({{""}, true});
    table_.rows.push_back({{std::string(static_cast<std::size_t>(2 * depth), ' ') + words}, true});
  }
  /// Says which part and which phase begins here.
  void headings(const Node& node) {
    if (static_cast<int>(node.phase) == phase_ || layers_ > 0) return;
    end_group();
    const bool parts = micro_batches_ > 1 && node.phase != Phase::optimizer;
    const std::string all = std::to_string(micro_batches_) + " micro-batches";
    if (parts && !headed_)
      heading(0, part_ == Part::before ? "before the " + all + ", once" : part_ == Part::within ? all + ", one after the other" : "after the " + all + ", once: what they added up");
    headed_ = true, phase_ = static_cast<int>(node.phase), depth_ = parts ? 2 : 1;
    heading(depth_ - 1, std::string(name_of(node.phase)));
  }
  void begin(const Node& node) {
    headings(node), end_group();
    const Region& r = plan_.graph.region(node.region);
    heading(depth_, "layers, " + std::to_string(r.count) + " times" + (r.reversed ? ", the last first" : ""));
    ++depth_, ++layers_;
  }
  void end() { end_group(), --depth_, --layers_; }

  std::string indented(const std::string& words) const { return std::string(static_cast<std::size_t>(2 * depth_), ' ') + words; }

  /// One line for all that one operation of the user becomes.
  void line(const Node& node) {
    headings(node);
    const Origin origin = plan_.graph.origin(node);
    if (origin.operation == nullptr || node.phase == Phase::optimizer) return nobodys(node);
    if (node.origin == origin_) return;
    end_group();
    origin_ = node.origin;
    std::string gives;
    if (node.phase == Phase::forward && origin.result >= 0) gives = parallel::text(plan_.graph.value(origin.result).type);
    table_.rows.push_back({{indented(place_of(origin.source)), origin.member >= 0 ? path_of(plan_.graph, origin.member) : "",
                            spelled(plan_.graph, origin) + (node.phase == Phase::backward ? ", backward" : ""), gives}});
  }

  /// What nobody wrote, as the optimizer: one line for neighbours that do the same, with what they do it to.
  void nobodys(const Node& node) {
    const AxisList axes = sending_axes(node.transition.axes, plan_.mesh);
    const std::string operation = axes.empty() ? std::string(node.operation->name) : move_words(axes, plan_.graph.value(node.result).type);
    if (group_.empty() || operation != operation_) {
      end_group();
      operation_ = operation;
      table_.rows.push_back({{indented(""), "", operation}});
    }
    group_.push_back(&node);
  }
  /// Closes such a line: now it is known how many there are.
  void end_group() {
    origin_ = -1;
    if (group_.empty()) return;
    const Node& first = *group_[0];
    std::string& of = table_.rows.back().cells[1];
    const std::size_t count = group_.size();
    const bool gradients = first.operation->name == "square_sum" || (first.operation->updates && first.phase == Phase::backward);
    std::vector<std::string> members;
    for (const Node* n : group_)
      if (n->member >= 0 && first.phase == Phase::optimizer && first.operation->updates) members.push_back(path_of(plan_.graph, n->member));
    if (gradients) of = std::to_string(count) + (count == 1 ? " gradient" : " gradients");
    if (members.size() == 1) of = members[0];
    if (members.size() > 1) {
      of = std::to_string(count) + " parameters";
      std::string names;
      for (std::size_t i = 0; i < members.size(); ++i) {
        const bool last = i + 1 == members.size();
        names += (names.empty() ? "" : " ") + members[i] + (last ? "" : ",");
        if (!last && names.size() < widest_list) continue;
        printing::Row& row = table_.rows.back();
        if (row.cells.size() == 3) row.cells.push_back(names), row.runs_on = true;
        else table_.rows.push_back({{"", "", "", names}, true});
        names.clear();
      }
    }
    group_.clear();
  }

  void collective(const Node& node) {
    line(node), end_group();
    origin_ = node.origin;
    const Transition& t = node.transition;
    printing::Row row{{"", "", "-> " + std::string(name_of(t.collective)) + (t.maximum ? " max" : "") + " on " + parallel::text(sending_axes(t.axes, plan_.mesh)),
                       parallel::text(plan_.graph.value(node.operands[0]).type), printing::bytes(static_cast<double>(plan_.all.message(node))),
                       printing::bytes(plan_.all.sent(node))}};
    if (price_) row.cells.push_back(duration(price_(node)));
    row.cells.push_back(brief(plan_.graph, node));
    table_.rows.push_back(row);
  }

  static constexpr std::size_t widest_list = 72;  ///< characters, about

  const Plan& plan_;
  Price price_;
  printing::Table table_{};
  int micro_batches_, depth_ = 1, layers_ = 0, phase_ = -1, origin_ = -1;
  Part part_ = Part::before;
  bool headed_ = false;
  std::vector<const Node*> group_{};
  std::string operation_{};
};

/// `price`: seconds of one run of a node; may be empty.
inline std::string tree(const Plan& plan, const Price& price = {}) { return Tree(plan, price).text(); }

}  // namespace planner
