// Writes what a model's functions applied into the graph, in the one order that follows from the program's structure:
// from its result, depth first, operands from left to right; then what is remembered and read by nothing. What nothing
// needs is not written.
#pragma once
#include <bit>
#include <cstdint>
#include <string_view>

#include <parallel/graph/applications.hpp>
#include <parallel/graph/lowering.hpp>
#include <parallel/graph/stages.hpp>

namespace parallel::internals {

class Writing {
 public:
  /// `draws`: with which number the random operations of each application begin; where that is -1 they have the next,
  /// which is noted there.
  constexpr Writing(Trace& trace, const Applications& applications, Vector<int>* draws = nullptr)
      : trace_(trace), all_(applications.all), draws_(draws) {
    values_.resize(all_.size(), -1);
  }

  /// Writes a program's results and all that is needed for them, where the trace stands. Returns their values in the
  /// graph.
  template <int n>
  constexpr List<int, n> program(const List<int, n>& results) {
    find_needed(results);
    for (const int result : results) write_needed(result);
    write_remembered(-1);
    List<int, n> values;
    for (const int result : results) values.push_back(value_of(result));
    return values;
  }
  /// Whether what has been written is made of it.
  constexpr bool needs(int application) const { return needed_[application]; }
  /// When all is written: the backward pass computes again what was marked so.
  constexpr void mark_recomputed() {
    for (int i = 0; i < all_.size(); ++i) mark(i);
  }

 private:
  using What = Application::What;

  /// Marks what the results, or what is remembered, are made of. What something is made of has been noted before it.
  template <int n>
  constexpr void find_needed(const List<int, n>& results) {
    needed_.resize(all_.size(), false);
    for (const int result : results) needed_[result] = true;
    for (int i = all_.size() - 1; i >= 0; --i) {
      const Application& a = all_[i];
      if (!needed_[i] && !(a.what == What::operation && a.operation->remembers)) continue;
      for (const int o : a.operands) needed_[o] = true;
      if (a.what == What::loop) needed_[a.returned] = true;
      if (a.what == What::each) needed_[all_[a.operands[0]].given] = true;
    }
  }

  /// Nothing has to be written before it is used.
  constexpr bool is_there(int i) const {
    const What what = all_[i].what;
    return values_[i] >= 0 || what == What::given || what == What::stray || what == What::carried;
  }

  /// Calls visit(i) for all that `root` needs and that is not known, operands first, from left to right. No recursion:
  /// programs are deep.
  constexpr void depth_first(int root, auto known, auto visit) const {
    Vector<int> path;
    path.push_back(root);
    while (!path.empty()) {
      const int top = path.back();
      int next = -1;
      if (!known(top))
        for (const int o : all_[top].operands)
          if (next < 0 && !known(o)) next = o;
      if (next >= 0) {
        path.push_back(next);
      } else {
        if (!known(top)) visit(top);
        path.resize(path.size() - 1);
      }
    }
  }

  /// Writes a result, of the program or of a loop's body.
  constexpr void write_needed(int result) {
    depth_first(
        result, [this](int i) { return is_there(i); }, [this](int i) { write(i); });
  }
  /// And what is remembered there.
  constexpr void write_remembered(int loop) {
    for (const int i : remembered(loop)) write_needed(i);
  }

  /// What is remembered in a loop, or outside all, and has not been written. Its order cannot be that of a reader, as
  /// it has none; nor that of the notes: it is that of what it is made of, and what is made alike can be exchanged.
  constexpr Vector<int> remembered(int loop) const {
    Vector<int> result;
    for (int i = 0; i < all_.size(); ++i)
      if (all_[i].what == What::operation && all_[i].operation->remembers && all_[i].loop == loop && !is_there(i))
        result.push_back(i);
    if (result.size() < 2) return result;
    Vector<std::uint64_t> keys;
    keys.resize(all_.size(), 0);
    for (const int i : result)
      depth_first(
          i, [&](int a) { return keys[a] != 0; }, [&](int a) { keys[a] = key(all_[a], keys); });
    for (int i = 1; i < result.size(); ++i)
      for (int j = i; j > 0 && keys[result[j]] < keys[result[j - 1]]; --j) std::swap(result[j], result[j - 1]);
    return result;
  }
  /// FNV-1a. No template: clang 14 does not know those yet that such a function calls in a constant expression.
  struct Mix {
    std::uint64_t hash = 0xcbf29ce484222325;

    constexpr void word(std::uint64_t w) { hash = (hash ^ w) * 0x100000001b3; }
    constexpr void text(std::string_view t) {
      for (const char c : t) word(static_cast<std::uint64_t>(c));
    }
    constexpr void type(const Type& t) {
      word(static_cast<std::uint64_t>(t.dtype));
      for (const Dim& d : t.layout.dims) {
        word(static_cast<std::uint64_t>(d.size));
        for (const Axis* axis : d) text(axis->text());
        word(static_cast<std::uint64_t>(d.order));
      }
      for (const Placed& p : t.layout.others) {
        text(p.axis->text());
        word(static_cast<std::uint64_t>(p.placement.kind));
        word(static_cast<std::uint64_t>(p.placement.dim));
      }
    }
  };
  /// A number for what an application is, and is made of.
  static constexpr std::uint64_t key(const Application& a, const Vector<std::uint64_t>& keys) {
    Mix mix;
    mix.word(static_cast<std::uint64_t>(a.what));
    mix.word(static_cast<std::uint64_t>(a.value + 1));
    mix.word(std::bit_cast<std::uint64_t>(a.first));
    mix.word(std::bit_cast<std::uint64_t>(a.second));
    if (a.type != nullptr) mix.type(*a.type);
    if (a.operation != nullptr) mix.text(a.operation->name);
    if (a.ints != nullptr)
      for (const std::int64_t i : *a.ints) mix.word(static_cast<std::uint64_t>(i));
    for (const int o : a.operands) mix.word(keys[o]);
    if (a.what == What::loop) {
      mix.word(keys[a.returned]);
      mix.word(static_cast<std::uint64_t>(a.count));
    }
    return mix.hash | 1;
  }

  constexpr void write(int i) {
    const Application& a = all_[i];
    const int nodes = trace_.graph.nodes.size();
    if (draws_ != nullptr) (*draws_)[i] = trace_.draws = (*draws_)[i] < 0 ? trace_.draws : (*draws_)[i];
    if (a.what == What::operation) {
      List<int, max_operands> operands;
      for (const int o : a.operands) operands.push_back(value_of(o, a.where));
      values_[i] = apply(trace_, *a.operation, operands, *a.inferred, *a.ints, a.where, a.first, a.second);
    } else if (a.what == What::move) {
      const int value = value_of(a.operands[0], a.where);
      const int origin = trace_.from({&operation::move, {value}, {}, {}, a.where, trace_.graph.values[value].member});
      values_[i] = trace_.graph.origins[origin].result = trace_.enter(value, a.type->layout);
    } else if (a.what == What::beside) {
      List<int, max_node_operands> operands;
      for (const int o : a.operands) operands.push_back(value_of(o, a.where));
      const Value v = trace_.graph.values[operands[0]];
      values_[i] = trace_.emit(*a.operation, operands, {v.type}, v.kind);
    } else if (a.what == What::source) {
      values_[i] = made_from_nothing(a);
    } else if (a.what == What::sequence) {
      values_[i] = sequence(value_of(a.operands[0], a.where));
    } else if (a.what == What::step) {
      values_[i] = trace_.layer_of(values_[a.operands[0]], trace_.region, trace_.block);
    } else {
      looped(i);
    }
    if (a.recomputation != nullptr && a.what != What::loop) mark(*a.recomputation, nodes);
    trace_.member = trace_.origin = -1;
  }

  constexpr int made_from_nothing(const Application& a) {
    const Ints ints{a.type->layout.rank() - 1};
    if (a.operation->lower == nullptr) return trace_.emit(*a.operation, {}, {*a.type}, a.kind, ints, a.first);
    Lowering l{{trace_}, a.operation, {}, {*a.type}, {}, {}, {a.first}};
    a.operation->lower(l);
    return l.result;
  }

  /// A sequence as steps take slices of it. A slice of what is itself a loop's slice, or a parameter at rest, would lie
  /// by two rules: a copy lies by none.
  constexpr int sequence(int value) {
    int from = value;
    while (trace_.graph.values[from].kind != Kind::parameter &&
           (trace_.graph.maker(from).is(Structural::move) ||
            (trace_.graph.maker(from).operation->aliases && !trace_.graph.maker(from).is(Structural::layer))))
      from = trace_.graph.maker(from).operands[0];
    const Value v = trace_.graph.values[value];
    if (trace_.graph.values[from].kind != Kind::parameter && !trace_.graph.maker(from).is(Structural::layer))
      return value;
    return trace_.emit(operation::copy, {value}, {v.type}, v.kind == Kind::parameter ? Kind::activation : v.kind);
  }

  /// Writes a loop: what its last iteration returns, and, where that is read, what each of its steps gives.
  constexpr void looped(int number) {
    const Application& a = all_[number];
    int each = -1;
    for (int i = number + 1; i < all_.size() && a.given >= 0; ++i)
      if (all_[i].what == What::each && all_[i].operands[0] == number && needed_[i]) each = i;
    // What the body takes from outside stands before the loop.
    Vector<bool> seen;
    seen.resize(all_.size(), false);
    const auto inside = [&](int i) { return all_[i].loop == a.carried; };
    const auto known = [&](int i) { return seen[i] || is_there(i); };
    const auto visit = [&](int i) {
      if (inside(i))
        seen[i] = true;
      else
        write(i);
    };
    depth_first(a.returned, known, visit);
    if (each >= 0) depth_first(a.given, known, visit);
    for (const int i : remembered(a.carried)) depth_first(i, known, visit);

    const Layout& layout = a.type->layout;
    int initial = value_of(a.operands[0]);
    trace_.origin = trace_.graph.maker(initial).origin;  // what enters the loop, and where it comes from another stage
    if (a.crossing != nullptr) initial = over_cut(a, initial, staging::receive);
    const int blocks = trace_.training && a.recomputation != nullptr ? a.recomputation->blocks : 1;
    const int nodes = trace_.graph.nodes.size(), draws = trace_.draws, outer_block = trace_.block;
    trace_.begin(a.given >= 0 ? RegionKind::steps : RegionKind::layers, a.count / blocks);
    trace_.graph.regions[trace_.region].blocks = blocks;
    trace_.graph.regions[trace_.region].staged = a.crossing != nullptr;
    const int taken = trace_.carry(initial);
    trace_.graph.values[taken].differentiable =
        true;  // from the second layer on it depends on parameters, whatever the first takes
    int state = taken;
    List<int, max_node_operands> given;
    for (int block = 0; block < blocks; ++block) {
      if (block > 0)
        for (int i = 0; i < all_.size(); ++i)
          if (inside(i)) {
            mark(i);
            values_[i] = -1;
          }
      trace_.block = block;
      trace_.draws = draws;  // each layer draws by its number
      values_[a.carried] = state;
      write_needed(a.returned);
      if (each >= 0) write_needed(a.given);
      write_remembered(a.carried);
      const int returned = value_of(a.returned);
      const Graph& graph = trace_.graph;
      trace_.from(
          {&operation::carry, {returned}, {}, {}, graph.source(graph.maker(returned)), graph.values[returned].member});
      state = trace_.enter(returned, layout);
      if (each >= 0) given.push_back(a.given == a.returned ? state : value_of(a.given));
    }
    trace_.block = outer_block;
    const int handed_on = trace_.own(state);
    trace_.hand_on(taken, handed_on);
    const int stacks = trace_.graph.stacks.size();
    for (int& g : given) trace_.graph.stacks.push_back({trace_.region, g = trace_.own(g), -1});
    if (a.recomputation != nullptr) mark(*a.recomputation, nodes);
    if (a.keeps_on_host && trace_.training) keep_on_host(nodes);
    trace_.end();
    const int last = trace_.result_of(taken);
    values_[number] = a.crossing != nullptr ? over_cut(a, last, staging::send) : last;
    if (each < 0) return;
    const Type& type = trace_.graph.values[given[0]].type;
    values_[each] = trace_.emit(operation::stacked, given, {{type.dtype, with_leading(type.layout, Dim(a.count))}},
                                Kind::activation);
    for (int i = 0; i < given.size(); ++i) trace_.graph.stacks[stacks + i].outside = values_[each];
  }
  /// A carried value on its way between stages, placed as the loop says while it crosses.
  constexpr int over_cut(const Application& loop, int value, int (*edge)(Trace&, int)) {
    return trace_.enter(edge(trace_, trace_.enter(value, *loop.crossing)), loop.type->layout);
  }

  /// The value that an application is, where the trace stands and it is used.
  constexpr int value_of(int i, const Source& where = {}) {
    const Application& a = all_[i];
    if (a.what == What::stray) return stray(a);
    if (a.what != What::given) return values_[i];
    if (a.region >= 0) return trace_.layer_of(a.value, a.region);  // of an input
    if (a.type == nullptr) return a.value;
    const int origin = trace_.origin, from = trace_.graph.origins.size();
    if (values_[i] < 0) values_[i] = for_the_step(a, where);
    const int value = a.stacked ? trace_.layer_of_parameter(values_[i]) : values_[i];
    const int result = entering(a, value, where);
    if (trace_.graph.origins.size() > from) trace_.origin = origin;
    return result;
  }
  /// What is made of a parameter once for the whole step: it is cast to the element type in which it is used, so that
  /// what travels is as it is used, and gathered where it is to live so long.
  constexpr int for_the_step(const Application& a, const Source& where) {
    const Type rest = trace_.graph.values[a.value].type;
    const Storing& storing = trace_.storing[trace_.graph.values[a.value].member];
    const auto stacked = [&](const Layout& l) { return a.stacked ? with_leading(l, rest.layout.dims[0]) : l; };
    const Layout whole = stacked(storing.whole);
    const bool gathers = storing.for_the_step() && !(rest.layout == whole);
    if (rest.dtype != a.type->dtype || gathers) comes_from(a, where);
    const int value = trace_.cast(a.value, a.type->dtype);
    if (gathers) return trace_.gather_for_the_step(value, whole);
    if (rest.layout == whole) trace_.shard(value, stacked(storing.split));
    return value;
  }
  /// And how it enters where it is used.
  constexpr int entering(const Application& a, int value, const Source& where) {
    if (trace_.graph.values[value].type.layout == a.type->layout) return value;
    comes_from(a, where);
    const int result = trace_.enter(value, a.type->layout);
    const Storing& storing = trace_.storing[trace_.graph.values[a.value].member];
    if (storing.any() && !storing.for_the_step() && storing.gathered == Gathered::per_use)
      for (int v = result;
           trace_.graph.maker(v).is(Structural::move) || trace_.graph.maker(v).operation == &operation::reorder;
           v = trace_.graph.maker(v).operands[0])
        trace_.graph.values[v].keep = Keep::recomputed;
    return result;
  }
  constexpr void comes_from(const Application& a, const Source& where) {
    trace_.from({&operation::parameter, {a.value}, {}, {}, where, trace_.graph.values[a.value].member});
  }
  constexpr int stray(const Application& a) {
    Member unnamed;
    unnamed.type = *a.type;
    trace_.graph.misused = trace_.graph.members.size();
    return trace_.declare(operation::parameter, unnamed, Kind::parameter, true);
  }

  constexpr void mark(int i) {
    if (all_[i].again && values_[i] >= 0) compute_again(values_[i]);
  }
  /// Marks, of the nodes written from one on in the region that is being written, those that a word means.
  constexpr void mark(const Recomputation& which, int from) {
    for (const Operation* o : which.operations) {
      bool applied = !trace_.training;
      for (int n = from; n < trace_.graph.nodes.size(); ++n)
        applied = applied ||
                  (trace_.graph.nodes[n].region == trace_.region && comes_of(trace_.graph, trace_.graph.nodes[n], *o));
      if (!applied) trace_.refuse(Reason::recompute_words);
    }
    for (int n = from; n < trace_.graph.nodes.size(); ++n)
      if (const Node& node = trace_.graph.nodes[n]; node.region == trace_.region && which.has(trace_.graph, node))
        keep_nothing_of(node);
    if (!which.whole) return;
    int last = -1;
    for (int n = from; n < trace_.graph.nodes.size(); ++n)
      if (const Node& node = trace_.graph.nodes[n];
          node.region == trace_.region && node.phase == Phase::forward && node.operation->rate == Rate::products)
        last = node.result;
    if (last >= 0) trace_.graph.values[last].keep = Keep::repeated;
  }
  /// What is kept, of the nodes written from one on in the region that is being written, lies on the host.
  constexpr void keep_on_host(int from) {
    for (int n = from; n < trace_.graph.nodes.size(); ++n) {
      const Node& node = trace_.graph.nodes[n];
      if (node.region != trace_.region || node.operation->aliases || node.is(Structural::layer)) continue;
      for (int r = 0; r < node.results; ++r)
        if (Value& v = trace_.graph.values[node.result + r]; v.keep == Keep::saved && v.kind != Kind::parameter)
          v.keep = Keep::on_host;
    }
  }
  constexpr void compute_again(int value) {
    const Node& maker = trace_.graph.maker(value);
    if (maker.operation->computes && !maker.operation->updates)
      keep_nothing_of(maker);  // parameters, inputs and what loops carry are there anyway
    if (!maker.is(Structural::rounded)) return;
    const Node& sum = trace_.graph.maker(maker.operands[1]);  // with the sum goes what it is a sum of
    keep_nothing_of(sum);
    if (const Node& term = trace_.graph.maker(sum.operands[0]); term.operation == &operation::cast)
      keep_nothing_of(term);
  }
  constexpr void keep_nothing_of(const Node& maker) {
    for (int r = 0; r < maker.results; ++r)
      if (Keep& keep = trace_.graph.values[maker.result + r].keep; keep == Keep::saved || keep == Keep::on_host)
        keep = Keep::recomputed;
  }

  Trace& trace_;
  const Vector<Application>& all_;
  Vector<int>* draws_ = nullptr;
  Vector<int> values_{};   ///< per application: its value in the graph, or -1
  Vector<bool> needed_{};  ///< per application: whether the result is made of it
};

}  // namespace parallel::internals
