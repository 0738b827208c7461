// Checks of a finished plan that know nothing of how it was made: its order, and by running it on tags where bytes
// would be, its memory.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <parallel/plan/derive.hpp>

namespace regions {
using namespace parallel;
using namespace parallel::internals;

inline std::size_t in_list(int i) { return static_cast<std::size_t>(i); }
inline std::string name(const Plan& plan, int node) {
  return "node " + std::to_string(node) + " (" + std::string(plan.graph.node(node).operation->name) + ", " +
         std::string(name_of(plan.graph.node(node).phase)) + ")";
}

/// What is wrong with the order of a plan's events, as sentences; none where all is well.
class Order {
 public:
  explicit Order(const Plan& plan)
      : plan_(plan), g_(plan.graph), made_(g_.nodes.size(), -1), started_(made_), ended_(g_.regions.size(), -1) {
    std::vector<int> open{0};
    for (int e = 0; e < static_cast<int>(plan.events.size()); ++e)
      if (plan.events[in_list(e)].crossing) crossing_[plan.events[in_list(e)].node] = e;
    for (int e = 0; e < static_cast<int>(plan.events.size()); ++e) {
      const Event& event = plan.events[in_list(e)];
      const Node& node = g_.node(event.node);
      const bool collective = event.kind == EventKind::start || event.kind == EventKind::wait;
      if (event.kind == EventKind::begin) {
        for (const Carry& c : g_.carries)
          if (c.region == node.region && alive(c)) uses(c.initial, e, "begin");
        if (g_.region(node.region).parent != open.back()) wrong(event.node, "begins outside its region's parent");
        open.push_back(node.region);
      } else if (event.ahead) {
        if ((starts_next(event) ? int{node.region} : int{g_.region(node.region).parent}) != open.back())
          wrong(event.node, "starts ahead of another loop than its own");
      } else if (node.region != open.back() && !(event.kind == EventKind::wait && crossing_.contains(event.node) &&
                                                 g_.inside(node.region, open.back()))) {
        wrong(event.node, "stands in another region than its own");
      }
      if (collective != calls(node, plan.mesh) && event.kind != EventKind::begin && event.kind != EventKind::end)
        wrong(event.node, "is no collective, or not treated as one");
      switch (event.kind) {
        case EventKind::compute:
          each_node(g_, event, [&](int n) {
            for (const int o : g_.node(n).operands) uses(o, e, name(plan, n));
            if (made_[in_list(n)] >= 0) wrong(n, "is computed twice");
            made_[in_list(n)] = e;
          });
          break;
        case EventKind::start:
          uses(node.operands[0], e, name(plan, event.node));
          if (starts_next(event)) {
            if (made_[in_list(event.node)] < 0) wrong(event.node, "starts again before it is waited for");
            break;
          }
          if (started_[in_list(event.node)] >= 0) wrong(event.node, "starts twice");
          started_[in_list(event.node)] = e;
          if (!event.ahead && !gathered_anew(node)) right_behind_its_maker(e);
          break;
        case EventKind::wait:
          if (event.crossing) break;  // for what the iteration before started
          if (started_[in_list(event.node)] < 0) wrong(event.node, "is waited for before it starts");
          if (made_[in_list(event.node)] >= 0) wrong(event.node, "is waited for twice");
          made_[in_list(event.node)] = e;
          break;
        case EventKind::begin: break;
        case EventKind::end:
          for (const Carry& c : g_.carries)
            if (c.region == node.region && alive(c) && !crossing_.contains(g_.value(c.returned).node))
              uses(c.returned, e, "end");
          for (int n = 0; n < static_cast<int>(g_.nodes.size()); ++n)
            if (g_.node(n).region == node.region && started_[in_list(n)] >= 0 && made_[in_list(n)] < 0 &&
                !crossing_.contains(n))
              wrong(n, "is under way when its iteration ends");
          ended_[in_list(node.region)] = e;
          open.pop_back();
          break;
      }
    }
    for (int n = 0; n < static_cast<int>(g_.nodes.size()); ++n)
      if ((started_[in_list(n)] >= 0) != (made_[in_list(n)] >= 0 && calls(g_.node(n), plan.mesh)))
        wrong(n, "starts and is never waited for");
    if (open.size() != 1) faults.push_back("a region does not end");
    const int end = static_cast<int>(plan.events.size());
    for (const Output& o : g_.outputs) uses(o.value, end, "output");
    for (const Member& m : g_.members)
      if (m.updated >= 0) uses(m.updated, end, "update");
  }
  std::vector<std::string> faults{};

 private:
  void wrong(int node, const char* what) { faults.push_back(name(plan_, node) + " " + what); }
  bool alive(const Carry& c) const { return plan_.storage[in_list(c.inside)].block != MemoryBlock::none; }

  /// A value must be there at event e.
  void uses(int value, int e, const std::string& by) {
    const Node& maker = g_.maker(value);
    if (maker.operation == &operation::layer || is_alias(g_, maker, plan_.mesh)) return uses(maker.operands[0], e, by);
    if (maker.operation == &operation::stacked &&
        g_.maker(before_aliases(g_, plan_.mesh, maker.operands[0])).operation == &operation::layer)
      return uses(maker.operands[0], e, by);
    int since = -1;
    // of an iteration: what the one before left under way has been waited for
    if (maker.operation == &operation::carry)
      for (const Carry& c : g_.carries)
        if (c.inside == value && crossing_.contains(g_.value(c.returned).node) &&
            crossing_.at(g_.value(c.returned).node) > e)
          wrong(g_.value(c.returned).node, "is used by the next iteration before that waits for it");
    if ((maker.operation == &operation::carried || maker.operation == &operation::stacked) &&
        crossing_.contains(g_.value(maker.operands[0]).node))
      since = made_[in_list(g_.value(maker.operands[0]).node)];
    else if (maker.operation == &operation::stacked || maker.operation == &operation::carried)
      since = ended_[in_list(g_.value(maker.operands[0]).region)];
    else if (!maker.operation->computes)
      since = 0;
    else
      since = made_[in_list(g_.value(value).node)];
    if (since < 0 || since > e)
      faults.push_back("value " + std::to_string(value) + " of " + name(plan_, g_.value(value).node) +
                       " is not there for " + by);
  }
  /// Parameters that are gathered for each use take room from there on, and start no earlier.
  bool gathered_anew(const Node& node) const {
    return gathers_parameter(g_, node) &&
           (node.phase == Phase::backward || g_.value(node.result).keep == Keep::recomputed);
  }
  void right_behind_its_maker(int e) {
    const Node& node = g_.node(plan_.events[in_list(e)].node);
    int root = node.operands[0];
    while (is_alias(g_, g_.maker(root), plan_.mesh) && g_.maker(root).operation != &operation::layer)
      root = g_.maker(root).operands[0];
    const int maker = g_.value(root).node;
    if (g_.node(maker).region != node.region || calls(g_.node(maker), plan_.mesh) || made_[in_list(maker)] < 0) return;
    for (int before = e - 1; before > made_[in_list(maker)]; --before)
      if (plan_.events[in_list(before)].kind == EventKind::compute)
        return wrong(plan_.events[in_list(e)].node, "does not start right behind what makes its operand");
  }

  const Plan& plan_;
  const GraphView& g_;
  std::vector<int> made_, started_, ended_;
  /// collectives that an iteration leaves to the next one, and where that waits for them
  std::map<int, int> crossing_{};
};

/// Runs a step on one rank's memory with a tag per byte: every kernel and collective must find in memory what the graph
/// says its operands are. What the graph says is followed apart from storage: contents by value and, for values of
/// loops, by iteration.
class Memory {
 public:
  explicit Memory(const Plan& plan)
      : plan_(plan), g_(plan.graph), index_(g_.regions.size()), under_way_(g_.nodes.size()) {
    blocks_[static_cast<int>(MemoryBlock::arena)].resize(in_list(static_cast<int>(plan.memory.arena)));
    for (int s = 0; s < 6; ++s)
      if (static_cast<MemoryBlock>(s) != MemoryBlock::arena)
        blocks_[s].resize(in_list(static_cast<int>(plan.memory.blocks[s])));
    for (const Member& m : g_.members) {
      make(m.value);
      write(m.value);
    }
    if (g_.scalar_value >= 0) {
      make(g_.scalar_value);
      write(g_.scalar_value);
    }
    std::vector<int> iterations(g_.regions.size()), begins(g_.regions.size());
    for (int e = 0; e < static_cast<int>(plan.events.size()); ++e) {
      const Event& event = plan.events[in_list(e)];
      const Node& node = g_.node(event.node);
      const Region& region = g_.region(node.region);
      region_ = node.region;
      doing_ = name(plan, event.node);
      ++steps;
      switch (event.kind) {
        case EventKind::compute: compute(event); break;
        case EventKind::start:
          if (node.in_last >= 0 && iterations[in_list(node.in_last)] + 1 < g_.region(node.in_last).count) break;
          if (event.ahead)
            start_ahead(event, node, starts_next(event) ? iterations[in_list(node.region)] + 1 : 0);
          else
            start(event.node, node);
          break;
        case EventKind::wait:
          if (node.in_last >= 0 ? event.crossing && !under_way_[in_list(event.node)].on
                                : event.crossing && iterations[in_list(node.region)] == 0)
            break;
          wait(event.node);
          break;
        case EventKind::begin:
          begins[in_list(node.region)] = e;
          iterations[in_list(node.region)] = 0;
          index_[in_list(region.loop)] = region.reversed ? region.count - 1 : 0;
          for (const Carry& c : g_.carries) {
            if (c.region != node.region || plan.storage[in_list(c.inside)].block == MemoryBlock::none) continue;
            region_ = region.parent;
            const Content initial = read(c.initial);
            region_ = node.region;
            keep(c.inside, initial);
            write(c.inside);
          }
          break;
        case EventKind::end: end(node, e, iterations[in_list(node.region)], begins[in_list(node.region)]); break;
      }
    }
    region_ = 0;
    doing_ = "the end";
    for (const Flight& f : under_way_)
      if (f.on) fault("a collective is under way");
    for (const Output& o : g_.outputs) read(o.value);
    for (const Member& m : g_.members)
      if (m.updated >= 0 && !(content(m.updated) == found(m.value)))
        fault("the update of " + std::string(g_.path(m)) + " is not where the parameter lies");
  }
  std::vector<std::string> faults{};
  int steps = 0;

 private:
  using Content = std::vector<std::uint64_t>;  ///< per byte: which value made it, and its place within that

  void fault(const std::string& what) {
    if (faults.size() < 20) faults.push_back(doing_ + ": " + what);
  }
  std::int64_t bytes(int value) const { return local_bytes(g_.value(value).type, plan_.mesh); }
  void keep(int value, const Content& c) {
    now_[value] = c;
    history_[{value, index_[in_list(g_.region(g_.value(value).region).loop)]}] = c;
  }
  void make(int value) {
    Content c(in_list(static_cast<int>(bytes(value))));
    ++tags_;
    for (std::size_t b = 0; b < c.size(); ++b) c[b] = tags_ << 32 | b;
    keep(value, c);
  }
  /// What the graph says that a value is where the program stands.
  Content content(int value) const {
    const Node& maker = g_.maker(value);
    if (maker.operation == &operation::layer) {
      const Content stack = content(maker.operands[0]);
      const auto size = static_cast<std::ptrdiff_t>(bytes(value));
      const Region& region = g_.region(maker.region);
      const auto begin = stack.begin() + size * (index_[in_list(region.loop)] * region.blocks + maker.ints[0]);
      return Content(begin, begin + size);
    }
    if (maker.operation == &operation::in_bucket) {
      const Content all = content(maker.operands[0]);
      const auto begin = all.begin() + maker.ints[0] * bytes_of(g_.value(value).type.dtype);
      return Content(begin, begin + bytes(value));
    }
    if (is_alias(g_, maker, plan_.mesh)) return content(maker.operands[0]);
    if (maker.operation == &operation::stacked)  // where nothing moves it is what its iterations take slices of
      if (const Node& root = g_.maker(before_aliases(g_, plan_.mesh, maker.operands[0]));
          root.operation == &operation::layer)
        return content(root.operands[0]);
    const int region = g_.value(value).region;
    if (g_.inside(region_, region) || of_last(maker)) {
      const auto it = now_.find(value);
      return it == now_.end() ? Content{} : it->second;
    }
    // of the same iteration of a loop that is gone back through
    const auto it = history_.find({value, index_[in_list(g_.region(region).loop)]});
    return it == history_.end() ? Content{} : it->second;
  }

  /// Whether a node of a loop makes what is read behind it: a move of its last iteration, or what such moves fill.
  bool of_last(const Node& maker) const {
    return maker.in_last >= 0 || (maker.operation == &operation::stacked && g_.maker(maker.operands[0]).in_last >= 0 &&
                                  !g_.inside(region_, maker.region));
  }

  std::uint64_t* address(int value) {
    const Storage& s = plan_.storage[in_list(value)];
    std::int64_t offset = s.offset;
    if (s.stride != 0) {
      std::int64_t slot = index_[in_list(s.loop)];
      if (s.modulo > 0)
        slot = ((g_.region(s.region).reversed ? g_.region(s.region).count - 1 - slot : slot) + s.shift) % s.modulo;
      offset += slot * s.stride;
    }
    Content& segment = blocks_[static_cast<int>(s.block)];
    if (s.block == MemoryBlock::none || offset < 0 ||
        offset + bytes(value) > static_cast<std::int64_t>(segment.size())) {
      fault("value " + std::to_string(value) + " lies outside its segment");
      nowhere_.resize(in_list(static_cast<int>(bytes(value))));
      return nowhere_.data();
    }
    return segment.data() + offset;
  }
  Content found(int value) {
    const std::uint64_t* from = address(value);
    return Content(from, from + bytes(value));
  }
  Content read(int value) {
    const Content expected = content(value);
    if (expected.empty() && bytes(value) > 0) fault("value " + std::to_string(value) + " has never been made");
    if (!(found(value) == expected))
      fault("value " + std::to_string(value) + " of " + name(plan_, g_.value(value).node) +
            " is not in its place any more");
    return expected;
  }
  void write(int value) {
    const Content& c = now_[value];
    std::copy(c.begin(), c.end(), address(value));
  }

  /// What is computed together reads all that others made, and writes all, at one time: only what it alone reads may
  /// lie where its next node's result does.
  void compute(const Event& event) {
    std::vector<int> operands, results, passed;
    each_node(g_, event, [&](int n) {
      const Node& node = g_.node(n);
      for (const int o : node.operands) {
        if (std::find(results.begin(), results.end(), o) == results.end())
          operands.push_back(o);
        else if (address(o) == address(node.result))
          passed.push_back(o);
      }
      for (int r = 0; r < node.results; ++r) results.push_back(node.result + r);
      for (int r = 0; r < node.results; ++r)
        if (node.operation->updates && address(node.result + r) != address(node.operands[r]))
          fault("updates something else than its operand");
    });
    for (const int o : operands) read(o);
    const Node& first = g_.node(event.node);
    for (const int r : results) {
      // a move that does nothing on this mesh may have its operand in its place
      const auto is_there = [&](int o) {
        return first.is(Structural::move) && looks_at(g_, first, plan_.mesh) && address(o) == address(r);
      };
      for (const int o : operands)
        if (!first.operation->updates && overlap(r, o) && !is_there(o)) fault("writes over its own operand");
      make(r);
    }
    for (const int r : results) write(r);
    for (const int r : results)
      if (std::find(passed.begin(), passed.end(), r) == passed.end()) read(r);
    for (const int p : passed) {
      int readers = 0;
      for (const Node& n : g_.nodes) readers += n.operands.contains(p);
      each_needed([&](int v) { readers += v == p; }, g_);
      if (readers != 1) fault("passes on what others read");
    }
  }
  bool overlap(int a, int b) {
    const std::uint64_t *first = address(a), *second = address(b);
    return first < second + bytes(b) && second < first + bytes(a);
  }
  /// A collective that is under way. It owns its result and its packing, and reads its operand; their addresses are
  /// those of its start.
  struct Flight {
    bool on = false, ahead = false;
    int operand = 0, result = 0;
    std::uint64_t *from = nullptr, *to = nullptr, *packing = nullptr;
    Content sent{}, received{}, marks{}, packing_marks{};
    std::string axes{};
    std::size_t turn = 0;
  };
  static bool holds(const std::uint64_t* memory, const Content& content) {
    return std::equal(content.begin(), content.end(), memory);
  }
  Content marks(std::int64_t size) {
    ++tags_;
    return Content(static_cast<std::size_t>(size), tags_ << 32);
  }
  void start(int n, const Node& node) {
    Flight& f = under_way_[in_list(n)];
    if (f.on) fault("starts again while it is under way");
    f = {true, false, node.operands[0], node.result, address(node.operands[0]), address(node.result)};
    f.sent = read(f.operand);
    const bool in_place = node.in_last >= 0 && f.from == f.to && bytes(f.result) == bytes(f.operand);
    if (!in_place && overlap(f.result, f.operand)) fault("receives over what it sends");
    make(f.result);
    f.received = now_[f.result];
    f.marks = marks(bytes(f.result));
    std::copy(f.marks.begin(), f.marks.end(), f.to);
    const std::int64_t room = packing_bytes(g_, node, plan_.mesh), offset = plan_.packing[in_list(n)];
    Content& arena = blocks_[static_cast<int>(MemoryBlock::arena)];
    if (room > 0 && (offset < 0 || offset + room > static_cast<std::int64_t>(arena.size())))
      return fault("has its packing outside the arena");
    f.packing = arena.data() + offset;
    f.packing_marks = marks(room);
    std::copy(f.packing_marks.begin(), f.packing_marks.end(), f.packing);
    f.axes = text(node.transition.axes);
    std::vector<bool>& places = places_[f.axes];
    f.turn = places.size();
    places.push_back(true);
    if (f.turn >= static_cast<std::size_t>(max_started) && places[f.turn - max_started])
      fault("takes the place of one that is under way");
  }
  /// As the iteration for which it is started.
  void start_ahead(const Event& event, const Node& node, int iteration) {
    const Region& region = g_.region(node.region);
    if (iteration == region.count) return;
    int& index = index_[in_list(region.loop)];
    const int here = index;
    const auto before = now_.find(node.result);
    const Content now = before == now_.end() ? Content{} : before->second;
    index = region.reversed ? region.count - 1 - iteration : iteration;
    start(event.node, node);
    index = here;
    now_[node.result] = now;
    under_way_[in_list(event.node)].ahead = true;
  }
  void wait(int n) {
    Flight& f = under_way_[in_list(n)];
    if (!f.on) return fault("is waited for and not under way");
    if (f.from != f.to && !holds(f.from, f.sent)) fault("what it sends was written meanwhile");
    if (!holds(f.to, f.marks)) fault("what it receives into was written meanwhile");
    if (!holds(f.packing, f.packing_marks)) fault("its packing was written meanwhile");
    std::copy(f.received.begin(), f.received.end(), f.to);
    if (f.ahead) keep(f.result, f.received);
    places_[f.axes][f.turn] = false;
    f.on = false;
  }
  void end(const Node& node, int& e, int& iteration, int begin) {
    const Region& region = g_.region(node.region);
    std::vector<std::pair<int, Content>> handed_on;
    for (const Carry& c : g_.carries)
      if (c.region == node.region && plan_.storage[in_list(c.inside)].block != MemoryBlock::none)
        handed_on.emplace_back(c.inside, content(c.returned));
    if (++iteration < region.count) {
      index_[in_list(region.loop)] = region.reversed ? region.count - 1 - iteration : iteration;
      for (const auto& [inside, content] : handed_on) keep(inside, content);
      e = begin;
      return;
    }
    for (const Stack& s : g_.stacks) {
      if (s.region != node.region || g_.maker(s.outside).operation != &operation::stacked ||
          g_.maker(s.inside).operation == &operation::layer ||
          !history_.contains({before_aliases(g_, plan_.mesh, s.inside), 0}))
        continue;
      Content whole;
      for (int i = 0; i < region.count; ++i)
        for (const int inside : g_.maker(s.outside).operands) {  // of each block of an iteration
          const Content& part = history_[{before_aliases(g_, plan_.mesh, inside), i}];
          whole.insert(whole.end(), part.begin(), part.end());
        }
      region_ = region.parent;
      keep(s.outside, whole);
      region_ = node.region;
    }
    for (const Carry& c : g_.carries)
      for (const auto& [inside, content] : handed_on)
        if (c.inside == inside) now_[c.result] = content;
    index_[in_list(region.loop)] = 0;
  }

  const Plan& plan_;
  const GraphView& g_;
  std::vector<int> index_;
  std::vector<Flight> under_way_;
  /// per set of axes, in order of their starts: which collectives are under way
  std::map<std::string, std::vector<bool>> places_{};
  Content blocks_[6]{};
  Content nowhere_{};
  std::map<int, Content> now_{};
  std::map<std::pair<int, int>, Content> history_{};
  std::uint64_t tags_ = 0;
  int region_ = 0;
  std::string doing_ = "the beginning";
};

}  // namespace regions
