// A plan as a tree: phases, loops, the user's lines in the order of the step, and under each the collectives that it
// causes.
#pragma once
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>

#include "pipeline.hpp"
#include "why.hpp"

namespace planner {

/// Seconds of an event, or nothing where no machine is known.
using Price = std::function<double(const Event&)>;

inline std::string duration(double seconds) {
  char buffer[32];
  const char* units[] = {"s", "ms", "us", "ns"};
  int unit = 0;
  while (std::abs(seconds) < 1 && seconds != 0 && unit < 3) {
    seconds *= 1000;
    ++unit;
  }
  std::snprintf(buffer, sizeof buffer, "%.3g %s", seconds, units[unit]);
  return buffer;
}
/// "1.2 %", "12 %"
inline std::string percent(double part) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, std::abs(part) < 0.095 ? "%.1f %%" : "%.0f %%", 100 * part);
  return buffer;
}

/// What nobody wrote and nothing but a number is: the gradient's first 1, the zeros that sums begin with.
inline bool is_beginning(const Node& node) { return node.operation->name == "constant" && node.origin < 0; }

/// "F0 F1 B0 F2 B1 F3 ... B7" where there are many.
inline std::string shortened(const std::string& tasks) {
  constexpr std::size_t most = 72;
  return tasks.size() <= most ? tasks
                              : tasks.substr(0, tasks.rfind(' ', most)) + " ..." + tasks.substr(tasks.rfind(' '));
}

class Tree {
 public:
  Tree(const Plan& plan, Price price)
      : plan_(plan), price_(std::move(price)), micro_batches_(planner::micro_batches(plan.graph)) {}

  std::string text() {
    table_.rows.push_back({{"line", "member", "operation", "gives, -> sends", "message", "sent"}});
    if (price_) table_.rows[0].cells.push_back("time");
    table_.rows[0].cells.push_back("why");
    for (const Event& e : plan_.events) {
      const Node& node = plan_.graph.node(e.node);
      part_ = e.part;
      const bool accumulates = plan_.graph.region(node.region).kind == RegionKind::micro_batches;
      switch (e.kind) {
        case EventKind::begin: accumulates ? enter(Place::within) : begin(node); break;
        case EventKind::end: accumulates ? leave() : end(); break;
        case EventKind::start:
          if (!starts_next(e)) collective(node, e);
          break;
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
  /// Where micro-batches are accumulated, the step has three places, each with its phases.
  enum class Place { before, within, after };
  void enter(Place place) {
    end_group();
    place_ = place;
    phase_ = -1;
    headed_ = false;
  }
  /// Each part of a stage's work ends where the loop over micro-batches does.
  void leave() {
    if (part_ + 1 < static_cast<int>(plan_.graph.parts.size())) {
      end_group();
      phase_ = -1;
    } else
      enter(Place::after);
  }

  void heading(int depth, const std::string& words) {
    if (depth == 0) table_.rows.push_back({{""}, true});
    table_.rows.push_back({{std::string(static_cast<std::size_t>(2 * depth), ' ') + words}, true});
  }
  /// Says which part and which phase begins here.
  void headings(const Node& node) {
    if (static_cast<int>(node.phase) == phase_ || layers_ > 0) return;
    end_group();
    const bool staged = !plan_.graph.slots.empty(),
               parts = (micro_batches_ > 1 || staged) && (node.phase != Phase::optimizer || place_ == Place::within);
    const std::string all = std::to_string(micro_batches_) + (micro_batches_ == 1 ? " micro-batch" : " micro-batches");
    const std::string order = staged ? shortened(tasks_of(plan_)) : "one after the other";
    if (parts && !headed_)
      heading(0, place_ == Place::before   ? "before the " + all + ", once"
                 : place_ == Place::within ? all + ", " + order
                                           : "after the " + all + ", once: what they added up");
    headed_ = true;
    phase_ = static_cast<int>(node.phase);
    depth_ = parts ? 2 : 1;
    std::string words(name_of(node.phase));
    if (staged && place_ == Place::within) {
      const StagePart& part = plan_.graph.part(part_);
      words = name_of(part.work);
      if (plan_.graph.parts.back().chunk > 0)
        words += " of chunk " + std::string(1, static_cast<char>('a' + part.chunk % 26));
    }
    heading(depth_ - 1, words);
  }
  void begin(const Node& node) {
    headings(node);
    end_group();
    const Region& r = plan_.graph.region(node.region);
    const std::string layers = r.staged && plan_.mesh.extent(plan_.graph.stages) > 1
                                   ? "layers " + staged_layers(plan_, plan_.graph.part(part_).chunk)
                               : r.kind == RegionKind::steps ? "steps"
                                                             : "layers";
    const std::string grouped = r.blocks > 1 ? ", " + std::to_string(r.blocks) + " at a time" : "";
    heading(depth_,
            layers + grouped + ", " + std::to_string(r.count) + " times" + (r.reversed ? ", the last first" : ""));
    ++depth_;
    ++layers_;
  }
  void end() {
    end_group();
    --depth_;
    --layers_;
  }

  std::string indented(const std::string& words) const {
    return std::string(static_cast<std::size_t>(2 * depth_), ' ') + words;
  }

  /// The fusions that begin with what comes from the same as a node: of a product, backward, there may be two.
  std::vector<const Event*> fused(const Node& node) const {
    std::vector<const Event*> found;
    for (const Event& e : plan_.events) {
      const Node& other = plan_.graph.node(e.node);
      const bool known = std::any_of(found.begin(), found.end(), [&](const Event* f) { return f->node == e.node; });
      if (other.origin == node.origin && other.phase == node.phase && other.region == node.region && e.nodes > 1 &&
          !known)
        found.push_back(&e);
    }
    return found;
  }
  /// One line for all that one operation of the user becomes, or several that are fused.
  void line(const Node& node) {
    headings(node);
    const Origin origin = plan_.graph.origin(node);
    if (origin.operation == nullptr || node.phase == Phase::optimizer) return nobodys(node);
    const bool again = node.results > 0 && plan_.graph.value(node.result).again >= 0;
    if (node.origin == origin_ && again == again_) return;
    end_group();
    origin_ = node.origin;
    again_ = again;
    std::string gives;
    const std::vector<const Event*> with_others = fused(node);
    std::string operation = with_others.empty() ? spelled(plan_.graph, origin) : "";
    for (const Event* e : with_others) operation += (operation.empty() ? "" : ", ") + operations(plan_.graph, *e);
    int result = origin.result;
    if (!with_others.empty())
      each_node(plan_.graph, *with_others[0], [&](int n) { result = plan_.graph.node(n).result; });
    if (node.phase == Phase::forward && result >= 0) gives = parallel::text(plan_.graph.value(result).type);
    table_.rows.push_back(
        {{indented(place_of(origin.source)), origin.member >= 0 ? path_of(plan_.graph, origin.member) : "",
          operation + (again                           ? ", again"
                       : node.phase == Phase::backward ? ", backward"
                                                       : ""),
          gives}});
  }

  /// What nobody wrote, as the optimizer: one line for neighbours that do the same, with what they do it to.
  void nobodys(const Node& node) {
    const AxisList axes = sending_axes(node.transition.axes, plan_.mesh);
    const std::string operation =
        axes.empty() ? std::string(node.operation->name) : move_words(axes, plan_.graph.value(node.result).type);
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
    const bool gradients =
        first.operation->name == "square_sum" || (first.operation->updates && first.phase == Phase::backward);
    std::vector<std::string> members;
    for (const Node* n : group_)
      if (n->member >= 0 && first.phase == Phase::optimizer && first.operation->updates)
        members.push_back(path_of(plan_.graph, n->member));
    if (count == 1 && first.phase == Phase::backward && first.member >= 0) of = path_of(plan_.graph, first.member);
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
        if (row.cells.size() == 3) {
          row.cells.push_back(names);
          row.runs_on = true;
        } else
          table_.rows.push_back({{"", "", "", names}, true});
        names.clear();
      }
    }
    group_.clear();
  }

  /// A collective stands below the line that causes it, but an edge between stages alone: nobody wrote it.
  void collective(const Node& node, const Event& start) {
    const Transition& t = node.transition;
    if (t.along != 0)
      headings(node);
    else
      line(node);
    end_group();
    if (t.along == 0) origin_ = node.origin;
    printing::Row row{{"", "",
                       (t.collective == Collective::receive ? "<- " : "-> ") + std::string(name_of(t.collective)) +
                           (t.maximum ? " max" : "") + " on " + parallel::text(sending_axes(t.axes, plan_.mesh)) +
                           (node.in_last >= 0 ? ", last micro-batch" : ""),
                       parallel::text(plan_.graph.value(node.operands[0]).type),
                       printing::bytes(static_cast<double>(plan_.all.message(node))),
                       printing::bytes(plan_.all.sent(node))}};
    if (price_) row.cells.push_back(duration(price_(start)));
    row.cells.push_back(brief(plan_.graph, node));
    table_.rows.push_back(row);
  }

  static constexpr std::size_t widest_list = 72;  ///< characters, about

  const Plan& plan_;
  Price price_;
  printing::Table table_{};
  int micro_batches_, part_ = -1, depth_ = 1, layers_ = 0, phase_ = -1, origin_ = -1;
  Place place_ = Place::before;
  bool headed_ = false, again_ = false;
  std::vector<const Node*> group_{};
  std::string operation_{};
};

/// `price`: seconds of an event; may be empty.
inline std::string tree(const Plan& plan, const Price& price = {}) { return Tree(plan, price).text(); }

}  // namespace planner
