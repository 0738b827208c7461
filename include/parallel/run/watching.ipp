// What is watched: names, where they are found in a plan, and what is said of them.
#pragma once
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include <parallel/algebra/notation.hpp>
#include <parallel/communicator/agreement.hpp>
#include <parallel/meta/failure.hpp>
#include <parallel/meta/nearest.hpp>
#include <parallel/question/text.hpp>
#include <parallel/run/misuse.hpp>
#include <parallel/run/watching.hpp>

namespace parallel::internals {

PARALLEL_INLINE LookedFor& looked_for() {
  static LookedFor all = [] {
    const auto text = [](const char* value) { return std::string(value != nullptr ? value : ""); };
    return LookedFor{text(std::getenv("PARALLEL_WATCH")), text(std::getenv("PARALLEL_CHECK")), {}};
  }();
  return all;
}
PARALLEL_INLINE void watch(std::string names, Watcher to) {
  const char* const asked_by = "watch";
  watched_names(names, asked_by);  // what is none is refused here
  looked_for().watch = std::move(names);
  looked_for().watched_by = asked_by;
  looked_for().watcher = std::move(to);
}

namespace watching {
/// Nothing, where it is no number from 0 on.
inline bool whole_number(std::string_view digits, std::int64_t& to) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), to);
  return error == std::errc() && end == digits.data() + digits.size() && !digits.empty() && to >= 0;
}
inline Failure refused(const char* asked_by, const std::string& name, const std::string& why) {
  return Failure(std::string(asked_by) + ": " + name + " " + why, exit_code::usage);
}
/// Text with commas, those between [ and ] apart.
inline std::vector<std::string> between_commas(const std::string& text) {
  std::vector<std::string> all(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0)
      all.emplace_back();
    else if (c != ' ')
      all.back() += c;
  }
  return all;
}
/// `blocks.2.mlp.up` -> `blocks.*.mlp.up` and 2; what has no number is as it is.
inline std::string starred(const std::string& path, std::int64_t& layer) {
  layer = -1;
  std::string all;
  for (const std::string& part : agreeing::parts_of(path, '.')) {
    std::int64_t number = 0;
    const bool counts = layer < 0 && !all.empty() && whole_number(part, number);
    if (counts) layer = number;
    all += (all.empty() ? "" : ".") + (counts ? "*" : part);
  }
  return all;
}
inline std::string number(double x) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.6g", x);
  return digits;
}
inline std::string operation_of(const Origin& origin) { return std::string(origin.operation->name); }
}  // namespace watching

PARALLEL_INLINE std::vector<WatchedName> watched_names(const std::string& names, const char* asked_by) {
  std::vector<WatchedName> all;
  if (names.empty()) return all;
  for (const std::string& asked : watching::between_commas(names)) {
    WatchedName name{asked, asked};
    if (const auto bracket = asked.find('['); bracket != std::string::npos) {
      name.some = true;
      if (asked.back() != ']')
        throw watching::refused(asked_by, asked, "has no ] at its end; write for example blocks.2.mlp.up[3,5]");
      for (const std::string& digits : agreeing::parts_of(asked.substr(bracket + 1, asked.size() - bracket - 2), ',')) {
        name.element.push_back(0);
        if (!watching::whole_number(digits, name.element.back()))
          throw watching::refused(asked_by, asked,
                                  "names no element; write its index, for example blocks.2.mlp.up[3,5]");
      }
      name.what = asked.substr(0, bracket);
    }
    if (const auto at = name.what.find('@'); at != std::string::npos) {
      const std::string whose = name.what.substr(at + 1);
      std::int64_t rank = 0;
      if (whose != "all" && (!watching::whole_number(whose, rank) || rank > (1 << 20)))
        throw watching::refused(asked_by, asked, "names no rank behind @; write a rank's number, or @all for each");
      name.rank = whose == "all" ? WatchedName::all : static_cast<int>(rank);
      name.what.resize(at);
    }
    if (name.what.empty())
      throw watching::refused(asked_by, "'" + names + "'", "has an empty name; put one comma between two names");
    all.push_back(name);
  }
  return all;
}

PARALLEL_INLINE Watching::Watching(const Plan& plan, int rank, int ranks, bool keeps, bool lenient, std::string program)
    : plan_(plan),
      g_(plan.graph),
      rank_(rank),
      program_(std::move(program)),
      watcher_(looked_for().watcher),
      names_(watched_names(looked_for().watch, looked_for().watched_by)),
      computes_(g_.nodes.size()) {
  for (const Event& e : plan.events)
    if (e.kind == EventKind::compute || e.kind == EventKind::start)
      each_node(g_, e, [&](int n) { computes_[static_cast<std::size_t>(n)] = true; });
  for (std::size_t n = 0; n < names_.size(); ++n) {
    if (names_[n].rank >= ranks)
      throw watching::refused(looked_for().watched_by, names_[n].asked,
                              "names rank " + std::to_string(names_[n].rank) + ", but there are " +
                                  std::to_string(ranks) + ", counted from 0");
    const std::size_t before = targets_.size();
    find(static_cast<int>(n), keeps, lenient);
    check_held(names_[n], before);
  }
}

/// Of what a name means, the targets from one on, its rank holds something.
PARALLEL_INLINE void Watching::check_held(const WatchedName& name, std::size_t first) const {
  if (name.rank < 0 || first == targets_.size()) return;
  const auto type = [&](std::size_t t) -> const Type& { return g_.value(targets_[t].value).type; };
  for (std::size_t t = first; t < targets_.size(); ++t)
    if (holds(type(t).layout, plan_.mesh, name.rank)) return;
  throw watching::refused(looked_for().watched_by, name.asked,
                          "names rank " + std::to_string(name.rank) + ", which has nothing of " + text(type(first)) +
                              "; name a rank that has, or write " + name.what + "@all for each that has");
}

/// The value whose storage this is, made by what an event computes or a member.
PARALLEL_INLINE int Watching::computed_by(int value) const {
  while (g_.value(value).node >= 0 && !computes_[static_cast<std::size_t>(g_.value(value).node)] &&
         is_alias(g_, g_.maker(value), plan_.mesh) && g_.maker(value).operands.size() > 0)
    value = g_.maker(value).operands[0];
  return value;
}

/// The gradient of a parameter as its optimizer takes it, and the first node that reads it; -1 where there is none.
PARALLEL_INLINE int Watching::gradient_of(int member, int& reader) const {
  const Member& m = g_.member(member);
  int gradient = -1;
  const auto made_by_it = [&](int v) {  // casts and moves of the optimizer's own apart
    while (g_.maker(v).phase == Phase::optimizer && g_.maker(v).operands.size() > 0 &&
           (g_.maker(v).is(Structural::move) || g_.maker(v).operation->name == "cast"))
      v = g_.maker(v).operands[0];
    return v;
  };
  for (const Node& n : g_.nodes) {
    if (gradient >= 0) break;
    if (n.phase != Phase::optimizer || n.member != member || n.is(Structural::move)) continue;
    for (const int o : n.operands) {
      if (gradient >= 0 || g_.value(o).node < 0) continue;
      const int v = made_by_it(o);
      if (g_.maker(v).phase == Phase::backward && g_.value(v).type.layout.elements() == m.type.layout.elements())
        gradient = v;
    }
  }
  if (gradient < 0) return -1;
  const int root = computed_by(gradient);
  for (const Event& e : plan_.events) {
    if (e.kind != EventKind::compute && e.kind != EventKind::start) continue;
    each_node(g_, e, [&](int n) {
      for (const int o : g_.node(n).operands)
        if (reader < 0 && g_.node(n).phase == Phase::optimizer && computed_by(o) == root) reader = e.node;
    });
  }
  return gradient;
}

PARALLEL_INLINE std::vector<std::string> Watching::known(bool keeps) const {
  std::set<std::string> all;
  for (std::size_t i = 0; i < g_.members.size(); ++i) {
    const Member& m = g_.members[i];
    if (m.role == Role::input || keeps) all.emplace(g_.path(m));
    int reader = -1;
    if (m.role == Role::parameter && gradient_of(static_cast<int>(i), reader) >= 0)
      all.insert(std::string(g_.path(m)) + ".gradient");
  }
  for (const Output& o : g_.outputs) all.emplace(g_.text(o.name));
  for (const Origin& o : g_.origins) {
    if (o.result < 0 || o.operation == nullptr) continue;
    all.insert(watching::operation_of(o));
    if (const std::string line = agreeing::text(o.source); !line.empty()) all.insert(line);
  }
  return {all.begin(), all.end()};
}

PARALLEL_INLINE void Watching::add(Target target) {
  const Value& value = g_.value(target.value);
  for (const Placed& p : value.type.layout.others)
    target.pending = target.pending || (p.placement.pending() && plan_.mesh.extent(p.axis) > 1);
  const std::vector<std::int64_t> sizes = extents(target);
  const WatchedName& name = names_[static_cast<std::size_t>(target.name)];
  for (std::size_t d = 0; d < name.element.size(); ++d)
    if (d >= sizes.size() || name.element[d] >= sizes[d])
      throw watching::refused(looked_for().watched_by, name.asked,
                              "lies outside of " + text(value.type) +
                                  (target.layer >= 0 ? ", of which it is one layer" : "") +
                                  "; count the indices of its dimensions from 0");
  places_[{static_cast<int>(target.when), target.node}].push_back(static_cast<int>(targets_.size()));
  targets_.push_back(std::move(target));
}

PARALLEL_INLINE void Watching::find(int name, bool keeps, bool lenient) {
  const std::string& what = names_[static_cast<std::size_t>(name)].what;
  const std::size_t before = targets_.size();
  for (const Output& o : g_.outputs)  // a gradient that is kept is one of them
    if (g_.text(o.name) == what) return add({.name = name, .shown = what, .value = o.value});
  // tensors that outlive the step, inputs, and gradients of parameters
  constexpr std::string_view behind = ".gradient";
  const bool gradient = what.size() > behind.size() && what.ends_with(behind);
  const std::string path = gradient ? what.substr(0, what.size() - behind.size()) : what;
  std::int64_t layer = -1;
  const std::string stacked = watching::starred(path, layer);
  for (std::size_t i = 0; i < g_.members.size(); ++i) {
    const Member& m = g_.members[i];
    const bool slice = m.layers > 0 && layer >= 0 && g_.path(m) == stacked;
    if (!slice && g_.path(m) != path) continue;
    if (slice && layer >= m.layers)
      throw watching::refused(
          looked_for().watched_by, what,
          "has no such layer: " + stacked + " has " + std::to_string(m.layers) + ", counted from 0");
    const int of = slice ? static_cast<int>(layer) : -1;
    if (gradient) {
      for (const Output& o : g_.outputs)
        if (g_.text(o.name) == std::string(g_.path(m)) + std::string(behind))
          return add({.name = name, .shown = what, .value = o.value, .layer = of});
      int reader = -1;
      const int value = m.role == Role::parameter ? gradient_of(static_cast<int>(i), reader) : -1;
      if (value >= 0 && reader >= 0)
        return add({.name = name, .shown = what, .value = value, .when = When::before, .node = reader, .layer = of});
      if (value >= 0) return;  // another stage's
    } else if (m.role == Role::input) {
      return add({.name = name, .shown = what, .value = m.value, .when = When::begin});
    } else if (keeps) {
      return add({.name = name, .shown = what, .value = m.value, .layer = of});
    }
  }
  // results of a line, or of an operation
  for (const Origin& o : g_.origins) {
    if (o.result < 0 || o.operation == nullptr) continue;
    const std::string line = agreeing::text(o.source);
    const bool of_line = !line.empty() && (line == what || what.ends_with("/" + line));
    if (!of_line && watching::operation_of(o) != what) continue;
    const int value = computed_by(o.result), node = g_.value(value).node;
    const std::string shown = (line.empty() ? "" : line + " ") + watching::operation_of(o);
    const bool seen = std::any_of(targets_.begin(), targets_.end(),
                                  [&](const Target& t) { return t.name == name && t.value == value; });
    if (seen) continue;
    if (node >= 0 && computes_[static_cast<std::size_t>(node)])
      add({.name = name, .shown = shown, .value = value, .when = When::after, .node = node});
    else if (g_.stages != nullptr)
      lenient = true;  // another stage computes it
  }
  if (targets_.size() == before && !lenient)
    throw watching::refused(looked_for().watched_by, what,
                            "is nothing that " + program_ + " has; the nearest names are " +
                                agreeing::listed(nearest(what, known(keeps), 3)));
}

PARALLEL_INLINE std::vector<std::int64_t> Watching::extents(const Target& target) const {
  std::vector<std::int64_t> sizes;
  const Layout& layout = g_.value(target.value).type.layout;
  for (int d = target.layer >= 0 ? 1 : 0; d < layout.rank(); ++d) sizes.push_back(layout.dims[d].size);
  return sizes;
}

PARALLEL_INLINE void Watching::note(int t, int layer, const View& view) {
  const Target& target = targets_[static_cast<std::size_t>(t)];
  const WatchedName& name = names_[static_cast<std::size_t>(target.name)];
  if (view.data == nullptr || (name.rank >= 0 && name.rank != rank_)) return;
  const Type& type = g_.value(target.value).type;
  const std::vector<std::int64_t> sizes = extents(target);
  std::int64_t all = 1, first = 0, count = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    all *= sizes[d];
    first = first * sizes[d] + (d < name.element.size() ? name.element[d] : 0);
    count *= d < name.element.size() ? 1 : sizes[d];
  }
  const std::int64_t begin = target.layer >= 0 ? target.layer * all : 0;
  Row& row = rows_[{t, layer}];
  agreeing::Hash part;
  const auto each = [&](auto f) {
    each_number(plan_, type, rank_, view, [&](std::int64_t index, double x) {
      if (index >= begin && index < begin + all) f(index - begin, x);
    });
  };
  row.statistics.add(statistics_of([&](auto f) { each([&](std::int64_t, double x) { f(x); }); }));
  row.elements.clear();
  each([&](std::int64_t index, double x) {
    part.word(index);
    if (name.some && index >= first && index < first + count) row.elements.push_back({index, x});
  });
  row.part = part.value();
}

namespace watching {
/// A row on its way to the first rank.
struct Sent {
  int target = 0, layer = -1;
  std::uint64_t part = 0;
  Statistics statistics{};
  std::int64_t elements = 0;
};
template <class T>
void put(std::string& to, const T& what) {
  to.append(reinterpret_cast<const char*>(&what), sizeof what);
}
template <class T>
T get(const std::string& from, std::size_t& at) {
  T what;
  std::memcpy(&what, from.data() + at, sizeof what);
  at += sizeof what;
  return what;
}
}  // namespace watching

PARALLEL_INLINE std::string Watching::taken() {
  std::string all;
  for (const auto& [key, row] : rows_) {
    if (row.statistics.elements() == 0) continue;
    watching::put(all, watching::Sent{key.first, key.second, row.part, row.statistics,
                                      static_cast<std::int64_t>(row.elements.size())});
    for (const WatchedTensor::Element& e : row.elements) watching::put(all, e);
  }
  rows_.clear();
  return all;
}

PARALLEL_INLINE void Watching::tell(std::int64_t step, const std::vector<std::string>& taken) const {
  if (rank_ != 0) return;
  std::map<std::pair<int, int>, std::vector<WatchedTensor>> lines;
  std::map<std::pair<int, int>, std::set<std::uint64_t>> parts;
  for (std::size_t rank = 0; rank < taken.size(); ++rank) {
    for (std::size_t at = 0; at < taken[rank].size();) {
      const auto sent = watching::get<watching::Sent>(taken[rank], at);
      const Target& target = targets_[static_cast<std::size_t>(sent.target)];
      const WatchedName& name = names_[static_cast<std::size_t>(target.name)];
      const bool whole = name.rank == WatchedName::whole && !target.pending;
      const std::pair key{sent.target, sent.layer};
      std::vector<WatchedTensor::Element> elements;
      for (std::int64_t e = 0; e < sent.elements; ++e)
        elements.push_back(watching::get<WatchedTensor::Element>(taken[rank], at));
      if (whole && !parts[key].insert(sent.part).second) continue;  // another rank has it, too
      std::vector<WatchedTensor>& of = lines[key];
      if (!whole || of.empty()) {
        Type type = g_.value(target.value).type;
        if (target.layer >= 0) type.layout = without_leading(type.layout);
        WatchedTensor& made = of.emplace_back();
        made = {.program = program_, .step = step, .name = target.shown, .type = text(type), .layer = sent.layer};
        made.rank = whole ? -1 : static_cast<int>(rank);
        made.single = type.dtype != DType::f64 && type.dtype != DType::i32;
      }
      of.back().statistics.add(sent.statistics);
      of.back().elements.insert(of.back().elements.end(), elements.begin(), elements.end());
    }
  }
  std::string said;
  for (auto& [key, of] : lines)
    for (WatchedTensor& line : of) {
      std::sort(line.elements.begin(), line.elements.end(),
                [](const auto& a, const auto& b) { return a.index < b.index; });
      if (watcher_)
        watcher_(line);
      else
        said += text(line) + "\n";
    }
  std::fputs(said.c_str(), stderr);
}

PARALLEL_INLINE std::string text(const WatchedTensor& watched) {
  const Statistics& s = watched.statistics;
  std::string line = "step " + std::to_string(watched.step);
  if (!watched.program.starts_with("the training")) line += " of " + watched.program;  // a program has one training
  line += ": " + watched.name;
  if (watched.layer >= 0) line += " in layer " + std::to_string(watched.layer);
  if (watched.rank >= 0) line += " on rank " + std::to_string(watched.rank);
  line += " " + watched.type + ": ";
  if (s.finite > 0)
    line += "mean " + watching::number(s.mean) + ", deviation " + watching::number(s.deviation()) + ", min " +
            watching::number(s.least) + ", max " + watching::number(s.most) + ", ";
  line += std::to_string(s.not_finite()) + " of " + std::to_string(s.elements()) + " not finite";
  constexpr std::size_t most = 16;
  for (std::size_t e = 0; e < watched.elements.size() && e < most; ++e) {
    const double x = watched.elements[e].value;
    char digits[32];
    const auto end = watched.single ? std::to_chars(digits, digits + sizeof digits, static_cast<float>(x)).ptr
                                    : std::to_chars(digits, digits + sizeof digits, x).ptr;
    line += (e == 0 ? "; elements " : ", ") + std::string(digits, end);
  }
  if (watched.elements.size() > most) line += ", and " + std::to_string(watched.elements.size() - most) + " more";
  return line;
}

}  // namespace parallel::internals
