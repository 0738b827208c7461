// A program whose notes are made at run time, without a type for each value: what a model's functions would note,
// built as program/program.hpp builds it.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include <parallel/parallel.hpp>

namespace noted {

using namespace parallel;
using namespace parallel::internals;

/// A value, or why there is none.
struct Value {
  int note = -1;  ///< its number among the applications
  Type type{};
  Kind kind = Kind::data;
  bool source = false;  ///< made from nothing, so it is in no program yet
  Refusal refusal{};
  AxisList exchanging{};  ///< axes on which the operation that made it has collectives of its own
};

/// Parameters first, then inputs, then what is applied to them, then `trained` or `evaluated`, once.
class Program {
 public:
  /// `member` without a role: its path, how it begins, its element type and how it lies at rest. `entering`: how it
  /// enters operations. `layers`: it is one of so many layers' parameters, each of this type, used within their body.
  Value parameter(Member member, const Type& entering, int layers = 0) {
    trace_.storing.resize(trace_.graph.members.size() + 1, {});
    trace_.storing.back().whole = trace_.storing.back().split = member.type.layout;
    if (layers > 0) {
      member.layers = layers;
      member.type.layout = with_leading(member.type.layout, Dim(layers));
    }
    const int value = trace_.declare(operation::parameter, member, Kind::parameter, true);
    types_.push_back(entering);
    return {
        notes_.add({.what = Application::What::given, .type = &types_.back(), .stacked = layers > 0, .value = value}),
        entering, Kind::parameter};
  }
  /// Of a member.
  Name name(std::string_view text) { return trace_.graph.name({}, {text}); }
  /// `wanted`: its gradient is an output of the program.
  Value input(const Type& type, bool wanted = false) {
    Member member;
    member.role = Role::input;
    member.path = name("input." + std::to_string(inputs_.size()));
    member.type = type;
    const Kind kind = wanted ? Kind::activation : Kind::data;
    inputs_.push_back(trace_.declare(operation::input, member, kind, wanted));
    return {notes_.add({.what = Application::What::given, .value = inputs_.back()}), type, kind};
  }
  /// A source of which every element is a number, or counts.
  Value source(const Operation& operation, const Type& type, double number = 0) {
    types_.push_back(type);
    return {notes_.add({.what = Application::What::source,
                        .operation = &operation,
                        .type = &types_.back(),
                        .kind = Kind::constant,
                        .first = number}),
            type, Kind::constant, true};
  }
  Value apply(const Operation& operation, const std::vector<Value>& operands, const Ints& ints = {}, double first = 0,
              double second = 0, int line = 0) {
    Arguments met;
    List<int, max_operands> notes;
    bool any = operands.empty();
    for (const Value& o : operands) {
      met.types.push_back(o.type);
      met.kinds.push_back(o.kind);
      notes.push_back(o.note);
      any = any || !o.source;
    }
    met.ints = ints;
    inferred_.push_back(infer(operation, met));
    ints_.push_back(ints);
    const Inference& inferred = inferred_.back();
    if (inferred.refusal) return {.refusal = inferred.refusal};
    if (!any) return {.refusal = {Reason::only_sources, {static_cast<std::int64_t>(operands.size())}}};
    return {notes_.add({.operation = &operation,
                        .operands = notes,
                        .inferred = &inferred,
                        .ints = &ints_.back(),
                        .first = first,
                        .second = second,
                        .where = {"program", line}}),
            inferred.results[0],
            inferred.kind,
            false,
            {},
            inferred.exchanging};
  }
  /// The verb `to`.
  Value to(const Value& x, const Layout& layout, int line = 0) {
    if (x.source) return {.refusal = {Reason::only_sources, {1}}};
    if (const Refusal refusal = spelling::refused_move(x.type, layout)) return {.refusal = refusal};
    types_.push_back({x.type.dtype, layout});
    return {notes_.add({.what = Application::What::move,
                        .operands = {x.note},
                        .type = &types_.back(),
                        .where = {"program", line}}),
            types_.back(), x.kind};
  }
  /// Begins the body of layers and returns what each takes: `initial`, or what the one before returned.
  Value begin_layers(const Value& initial) {
    const int carried = notes_.add({.what = Application::What::carried});
    notes_.all[carried].loop = notes_.loop = carried;
    return {carried, initial.type, Kind::activation};
  }
  /// Ends it and returns what the last layer returned.
  Value end_layers(const Value& initial, const Value& carried, const Value& returned, int count) {
    notes_.loop = -1;
    if (const Refusal refusal = spelling::refused_move(returned.type, initial.type.layout)) return {.refusal = refusal};
    types_.push_back(initial.type);
    return {notes_.add({.what = Application::What::loop,
                        .operands = {initial.note},
                        .type = &types_.back(),
                        .carried = carried.note,
                        .returned = returned.note,
                        .count = count}),
            initial.type, Kind::activation};
  }
  /// The backward pass computes it again.
  void recompute(const Value& x) { notes_.all[x.note].again = true; }

  /// The graph of a training with this loss, not yet fused; `refused` says whether it is one.
  static Refusal refused(const Value& loss, bool training) {
    return training ? building::refused_loss(loss.type) : Refusal{};
  }
  template <class Optimizer>
  Graph trained(const Value& loss) {
    trace_.training = true;
    const int result = written(loss);
    Differentiation gradients(trace_);
    gradients.run(result, 1);
    note_read(gradients);
    trace_.phase = Phase::forward;
    trace_.output({}, building::complete(trace_, result));
    building::optimize<Optimizer>(trace_, gradients);
    for (const int input : inputs_)
      if (gradients.of(input) >= 0) trace_.output({}, building::complete(trace_, gradients.of(input)));
    return finished();
  }
  /// Of a training: whether a node stood there when it was differentiated, before gradients were completed together,
  /// and something read what it made, or it made the gradient of a parameter or an input.
  bool derived(int node) const {
    return static_cast<std::size_t>(node) < derived_.size() && derived_[static_cast<std::size_t>(node)];
  }
  Graph evaluated(const Value& result) {
    const int value = written(result);
    trace_.output({}, building::summed(trace_, value));
    return finished();
  }

 private:
  int written(const Value& result) {
    trace_.graph.schedule = &schedules::one_forward_one_backward;
    Writing writing(trace_, notes_);
    const int value = writing.program(List<int, 1>{result.note})[0];
    writing.mark_recomputed();
    staging::settle(trace_);
    return value;
  }
  void note_read(const Differentiation& gradients) {
    const Graph& g = trace_.graph;
    derived_.resize(static_cast<std::size_t>(g.nodes.size()));
    const auto read = [&](int value) { derived_[static_cast<std::size_t>(g.values[value].node)] = true; };
    for (const Node& n : g.nodes)
      for (const int o : n.operands) read(o);
    for (const Member& m : g.members)
      if (gradients.of(m.value) >= 0) read(gradients.of(m.value));
  }
  Graph finished() {
    staging::place(trace_.graph);
    for (Node& node : trace_.graph.nodes) node.flops = trace_.graph.flops(node);
    return std::move(trace_.graph);
  }

  Trace trace_{};
  Applications notes_{};
  std::vector<int> inputs_{};
  std::vector<bool> derived_{};
  std::deque<Type> types_{};  // the notes point to these
  std::deque<Inference> inferred_{};
  std::deque<Ints> ints_{};
};

}  // namespace noted
