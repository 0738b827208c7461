// What an optimizer writes its update of a parameter with: states, numbers, operations. Moves follow by the rule, as in
// a model.
#pragma once
#include <parallel/graph/lowering.hpp>
#include <parallel/graph/stages.hpp>
#include <parallel/operation/embedding.hpp>
#include <parallel/operation/matmul.hpp>
#include <parallel/operation/reshape.hpp>
#include <parallel/operation/update.hpp>

namespace parallel {
namespace internals::optimizing {
/// A gradient as it is without the scale of the loss.
constexpr int unscaled(Trace& trace, int gradient) {
  if (!trace.loss_scaled) return gradient;
  const std::int64_t scale = trace.scalar("loss_scale");
  const Type type = trace.graph.values[gradient].type;
  const int scalars = trace.graph.scalar_value;
  return trace.emit(
      operation::scaled,
      {gradient, trace.enter(scalars, on_host(trace.graph.values[scalars].type.layout, on_host(type.layout)))},
      {{precise(type.dtype), type.layout}}, Kind::activation, {scale, 1});
}
}  // namespace internals::optimizing

/// The update of one parameter, which an optimizer's `update(Update&)` writes: it declares what it remembers and
/// applies operations, the library's or its own, to the parameter, its gradient and these. A value lies as the rule of
/// derivation says of by-value data: a sum over what is split is pending, and is completed by whatever needs it whole.
/// A `Stored` parameter is updated as its gradient lies, each rank its part; operations that can say so
/// (`Operation::of_flat`). What is refused is so by one sentence when the program is planned.
class Update {
 public:
  /// A tensor of the update.
  struct Value {
    int number = -1;
  };
  using Values = internals::List<Value, internals::max_operands>;
  /// Names of run-time numbers, as the members of the optimizer's `Hyperparameters` are called; besides `step`, counted
  /// from 1.
  struct Numbers {
    internals::List<std::string_view, 8> names;
    constexpr Numbers() : names{} {}
    template <std::size_t... n>
    constexpr Numbers(const char (&... name)[n]) : names{std::string_view(name, n - 1)...} {}
  };

  /// For who asks an optimizer: of a member, by a gradient that is completed, times a factor that clips. `at_rest`: the
  /// parameter as it lies between steps.
  constexpr Update(internals::Trace& trace, int member, int at_rest, int gradient, int factor)
      : trace_(trace),
        member_(member),
        parameter_{of(member).value},
        at_rest_{at_rest},
        gradient_{gradient},
        factor_{factor} {
    owned_.push_back({parameter_, member});
    owned_.push_back({at_rest_, member});
    this->gradient(gradient_);
  }
  Update(const Update&) = delete;

  constexpr Value parameter() const { return parameter_; }
  /// From here on a state of its shape and placement takes its place, for an optimizer that this one is made of. What
  /// has replaced `at_rest` is then what a step leaves as the parameter.
  constexpr void parameter(Value state) {
    parameter_ = state;
    for (int i = 0; i < owned_.size(); ++i)
      if (owned_[i].value.number == state.number) current_ = i;
  }
  /// The parameter as it lies between steps, which may be whole where its gradient is split.
  constexpr Value at_rest() const { return at_rest_; }
  /// The parameter as it is from here on: what has replaced it, or itself.
  constexpr Value updated() const { return owned_[current_].value; }
  /// It lies as the parameter does; no rank has a pending sum of it.
  constexpr Value gradient() const { return gradient_; }
  /// From here on another one takes its place, as for an optimizer that this one is made of.
  constexpr void gradient(Value value) {
    if (!(completed(type(value).layout) == type(value).layout)) refuse(Reason::pending_gradient);
    if (!(type(value).layout == type(parameter_).layout))
      value.number = trace_.enter(value.number, type(parameter_).layout);
    gradient_ = value;
  }
  /// A sum that is pending, completed; else the value itself.
  constexpr Value completed(Value value) { return {trace_.enter(value.number, completed(type(value).layout))}; }
  /// f64, a scalar by which the gradient is to be multiplied: below 1 where the norm of all gradients is clipped.
  constexpr Value factor() const { return factor_; }
  constexpr Type type(Value value) const { return trace_.graph.values[value.number].type; }
  /// Whether the first dimension counts layers, each with a parameter of its own.
  constexpr bool stacked() const { return of(member_).layers > 0; }
  /// Whether weight decay applies to the parameter.
  constexpr bool decays() const { return of(member_).initializer.decays; }
  /// Elements of the parameter, of a stack those of one layer.
  constexpr std::int64_t elements() const {
    const Layout layout = type(parameter_).layout;
    return stacked() ? layout.elements() / layout.dims[0].size : layout.elements();
  }

  /// What the optimizer remembers from step to step, 0 at first, by this name behind the parameter's: of the
  /// parameter's shape and placement.
  constexpr Value state(std::string_view name) { return state(name, type(parameter_)); }
  /// From here on states that would be f32 are of this element type, which kernels round to (StatesIn). Gives the one
  /// before.
  constexpr DType states_in(DType dtype) {
    const DType before = states_in_;
    states_in_ = dtype;
    return before;
  }
  /// What the state of a step before is, read from when a step begins: moves of it start there.
  constexpr Value early(Value state) {
    trace_.stand_first(state.number);
    return state;
  }
  /// The same of another type; where that is pending, it lies whole. Of a stack the first dimension counts layers, too.
  constexpr Value state(std::string_view name, Type like) {
    internals::Member described;
    described.path = trace_.graph.name(of(member_).path, {".", name});
    for (const Owned& own : owned_)
      if (const internals::Name& path = of(own.member).path; path.size == described.path.size)
        if (trace_.graph.text(path) == trace_.graph.text(described.path)) refuse(Reason::replaced);
    described.role = internals::Role::state;
    described.type = {states_in_ == DType::f32 ? like.dtype : states_in_, completed(like.layout)};
    if (states_in_ != DType::f32 && like.dtype != DType::f32) refuse(Reason::states_in_bf16);
    described.layers = of(member_).layers;
    described.of = member_;
    described.initializer = {Initializer::Kind::constant, 0, false};
    const int declared = trace_.declare(operation::parameter, described, Kind::parameter, false);
    // an update within a loop goes on from the one before
    const Value value{trace_.region == 0 ? declared : trace_.carry(declared)};
    owned_.push_back({value, trace_.graph.members.size() - 1});
    return value;
  }

  /// The program reads these numbers, also where it has no parameter whose update does.
  constexpr void reads(const Numbers& numbers) {
    for (const std::string_view& name : numbers.names) trace_.scalar_of(member_, name);
  }
  /// Applies an operation. Its whole-number attributes are the positions of `numbers` among the scalars, which become
  /// its last operand if there are any, then `ints`.
  constexpr Values apply(const Operation& operation, const Values& operands, const Numbers& numbers = {},
                         const Ints& ints = {}, double first = 0, double second = 0) {
    return write(operation, 0, operands, numbers, ints, first, second);
  }
  /// The same of an operation that takes the place of its first operands, the parameter or states: their values from
  /// here on are its results, and the old ones are gone. Between the positions and `ints` stands whether the parameter
  /// decays. One without a table goes element by element: operands of the first one's shape lie as it does, others are
  /// scalars.
  constexpr Values replace(const Operation& operation, const Values& owned, const Values& read,
                           const Numbers& numbers = {}, const Ints& ints = {}, double first = 0, double second = 0) {
    Values operands = owned;
    for (const Value& v : read) operands.push_back(v);
    const Values results = write(operation, owned.size(), operands, numbers, ints, first, second);
    if (!operation.updates) refuse(Reason::replaced);
    for (int i = 0; i < owned.size(); ++i) {
      bool its_own = false;
      for (Owned& own : owned_)
        if (own.value.number == owned[i].number) {
          its_own = true;
          own.value = results[i];
          trace_.graph.members[own.member].updated = results[i].number;
          gone_.push_back(owned[i].number);
        }
      if (!its_own) refuse(Reason::replaced);  // also what is named twice, or was replaced before
    }
    return results;
  }

  template <class Owned = Values, class Read = Values>
  requires(std::is_same_v<Owned, Value> || std::is_same_v<Read, Value>) constexpr Values
      replace(const Operation&, const Owned& owned, const Read&, const Numbers& = {}, const Ints& = {}, double = 0,
              double = 0) {
    static_assert(sizeof(Read) > 9999,
                  "parallel::Update: what takes the place of what, and what is read, stand in braces; write "
                  "u.replace(operation, {u.parameter()}, {u.gradient(), u.factor()}, {\"learning_rate\"})");
    return Values{owned};
  }

  /// Applies an operation once more, to operands of the types that those of `made`, a result of it, have.
  constexpr Value again(Value made, const Values& operands) {
    const internals::Node node = trace_.graph.maker(made.number);
    internals::List<int, internals::max_node_operands> numbers;
    for (const Value& v : operands) numbers.push_back(v.number);
    return {
        trace_.emit(*node.operation, numbers, {type(made)}, Kind::activation, node.ints, node.reals[0], node.reals[1])};
  }

  /// How the program's products take the parameter as a matrix; none where an embedding reads it, where no product or
  /// only one in batches does, or where `as_vector` says so.
  struct Matrix {
    int rows = 0;  ///< of the dimensions, behind those of layers, the first that make up the rows; 0: none
    bool inputs_are_rows = true;  ///< the rows are what a product contracts
    constexpr explicit operator bool() const { return rows > 0; }
  };
  constexpr Matrix matrix() const {
    Matrix found;
    const internals::Graph& g = trace_.graph;
    if (!of(member_).initializer.matrix) return {};
    for (const internals::Node& n : g.nodes) {
      if (n.phase != Phase::forward) continue;
      if (n.operation == &operation::embedding && is_parameter(n.operands[1])) return {};
      if (n.operation != &operation::matmul) continue;
      const operation::Product p(n.ints);
      for (int o = 0; o < 2 && !found && p.batch == 0; ++o)
        if (is_parameter(n.operands[o])) {
          const int rank = g.values[n.operands[o]].type.layout.rank();
          found.inputs_are_rows = (o == 0 ? p.left_transposed : 1 - p.right_transposed) != 0;
          found.rows = found.inputs_are_rows ? p.contracted : rank - p.contracted;
        }
    }
    return found;
  }
  /// A value that lies as the parameter does, [layers, rows, columns] with whole matrices, which are shared out among
  /// the ranks of every axis but that of stages: none is on two ranks. Each has as many, of which the last may be
  /// zeros.
  constexpr Value whole_matrices(Value value, const Matrix& matrix) {
    using namespace internals;
    const Type type = this->type(value);
    const Layout layout = stacked() ? type.layout : with_leading(type.layout, Dim(1));
    value = on_device(value);  // ranks exchange what lies there
    int v = stacked() ? value.number : view(value.number, {type.dtype, on_host(layout, false)});
    for (const Axis* a : shared_out(layout)) {
      if (layout.on(a).flat && !is_outermost_flat(layout, a)) v = trace_.move(v, {a}, Invariant);
    }
    for (const Axis* a : shared_out(layout)) v = trace_.move(v, {a}, SplitPadded);
    Layout folded = trace_.graph.values[v].type.layout;
    folded.dims.count = 1;
    std::int64_t rows = 1, columns = 1;
    for (int d = 1; d < layout.rank(); ++d) (d <= matrix.rows ? rows : columns) *= layout.dims[d].size;
    folded.dims.push_back(Dim(rows));
    folded.dims.push_back(Dim(columns));
    return with_parameter({view(v, {type.dtype, folded})});
  }
  /// And back.
  constexpr Value as_parameter(Value matrices) {
    using namespace internals;
    matrices = on_device(matrices);
    const Type type = this->type(matrices);
    const Layout like = on_host(this->type(parameter_).layout, false),
                 layout = stacked() ? like : with_leading(like, Dim(1));
    Layout unfolded = type.layout;
    unfolded.dims = layout.dims;
    for (Dim& d : unfolded.dims) d = d.whole();
    unfolded.dims[0] = type.layout.dims[0];
    int v = view(matrices.number, {type.dtype, unfolded});
    const AxisList axes = shared_out(layout);
    for (int i = axes.size() - 1; i >= 0; --i)
      v = trace_.move(
          v, {axes[i]},
          layout.on(axes[i]).flat && !is_outermost_flat(layout, axes[i]) ? Placement(Invariant) : layout.on(axes[i]));
    v = trace_.enter(v, layout);
    return with_parameter({stacked() ? v : view(v, {type.dtype, like})});
  }

  /// A value in the memory of the device, or of its host, where operations are computed whose operands lie there. By
  /// itself all lies where the parameter does.
  constexpr Value on_device(Value value) { return placed(value, false); }
  constexpr Value with_parameter(Value value) { return placed(value, lies_on_host(parameter_)); }
  /// A gradient without the scale of the loss, in float so that none is lost; only what leaves the program needs it, as
  /// the factor takes the scale out.
  constexpr Value unscaled(Value value) { return {internals::optimizing::unscaled(trace_, value.number)}; }

  /// Makes a value an output of the program, called as the parameter and behind a point `name`.
  constexpr void output(std::string_view name, Value value) {
    trace_.output(trace_.graph.name(of(member_).path, {".", name}), value.number);
    gives_out_ = true;
  }

  /// For who asked: refused where nothing came of it.
  constexpr void settle() {
    if (of(member_).updated < 0 && !gives_out_) refuse(Reason::updates_nothing);
  }

 private:
  struct Owned {
    Value value{};
    int member = -1;
  };

  /// Whether a value is the parameter, as some operation takes it.
  constexpr bool is_parameter(int value) const {
    for (;;) {
      const internals::Node& maker = trace_.graph.maker(value);
      if (maker.is(internals::Structural::parameter)) return maker.ints[0] == member_;
      const bool hands_on = maker.is(internals::Structural::move) || maker.is(internals::Structural::layer) ||
                            maker.is(internals::Structural::stacked) || maker.is(internals::Structural::carry) ||
                            maker.is(internals::Structural::stash) || maker.is(internals::Structural::copy) ||
                            maker.operation == &operation::cast || maker.operation == &operation::reorder;
      if (!hands_on) return false;
      value = maker.operands[0];
    }
  }
  constexpr int view(int value, const Type& type) {
    Ints sizes;
    for (const Dim& d : type.layout.dims) sizes.push_back(d.size);
    trace_.member = member_;
    return trace_.emit(operation::reshape, {value}, {type}, Kind::activation, sizes);
  }
  /// Of several axes that split a flat view the first splits what the others then do.
  static constexpr bool is_outermost_flat(const Layout& layout, const Axis* axis) {
    for (const Placed& p : layout.others)
      if (p.placement.flat) return p.axis == axis;
    return false;
  }
  /// The axes of the program over which matrices can be shared out: those on which ranks hold the same, or a share of
  /// the flat view, then those that split a matrix.
  constexpr AxisList shared_out(const Layout& layout) const {
    AxisList axes;
    for (int order = 0; order < 3; ++order)
      for (const Axis* a : trace_.axes()) {
        if (a == &axes::host) continue;
        const Placement p = layout.on(a);
        const bool outermost = p.flat && is_outermost_flat(layout, a);
        const int own = outermost ? 0 : p.flat || p == Invariant ? 1 : p.split() && p.dim > 0 ? 2 : -1;
        if (own == order && a != trace_.graph.stages) axes.push_back(a);
      }
    return axes;
  }

  constexpr bool lies_on_host(Value value) const { return internals::on_host(type(value).layout); }
  constexpr Value placed(Value value, bool host) {
    return {trace_.enter(value.number, internals::on_host(type(value).layout, host))};
  }
  /// Run-time numbers where an operation reads them.
  constexpr int number(int value, bool host) { return placed({value}, host).number; }
  constexpr const internals::Member& of(int member) const { return trace_.graph.members[member]; }
  static constexpr Layout completed(Layout layout) {
    AxisList axes;
    layout.collect(axes);
    for (const Axis* a : axes)
      if (layout.on(a).pending()) layout = layout.with(a, Invariant);
    return layout;
  }
  /// A layout at those ranks that another is at.
  static constexpr Layout at_those_of(const Layout& other, Layout layout) {
    AxisList axes;
    other.collect(axes);
    for (const Axis* a : axes)
      if (other.on(a).kind == PlacementKind::at) layout = layout.with(a, other.on(a));
    return layout;
  }
  constexpr void refuse(Reason reason) {
    if (trace_.graph.unfit != Reason::none) return;  // what comes after it follows from it
    trace_.graph.misused = member_;
    trace_.graph.unfit = reason;
  }

  constexpr Values write(const Operation& operation, int owned, const Values& operands, const Numbers& numbers,
                         const Ints& more, double first, double second) {
    Ints ints;
    for (const std::string_view& name : numbers.names) ints.push_back(trace_.scalar_of(member_, name));
    if (owned > 0) ints.push_back(decays());
    for (const std::int64_t i : more) ints.push_back(i);
    internals::List<int, internals::max_node_operands> entered;
    internals::List<Type, internals::max_results> results;
    const Kind kind = owned > 0 ? Kind::parameter : Kind::activation;
    bool host = false;  // where one operand is, all go, but for what becomes several nodes
    for (const Value& v : operands) {
      host = host || (operation.lower == nullptr && lies_on_host(v));
      for (int i = 0; i < gone_.size(); ++i)
        if (v.number == gone_[i]) refuse(Reason::replaced);
    }
    AxisList exchanging;
    if (operation.signatures == nullptr)
      element_by_element(owned, operands, host, entered, results);
    else
      by_table(operation, owned, operands, ints, host, entered, results, exchanging);
    if (!numbers.names.empty()) entered.push_back(number(trace_.graph.scalar_value, host));
    if (owned > 0 && trace_.graph.commit >= 0) entered.push_back(number(trace_.graph.commit, host));
    trace_.member = member_;
    int result = -1;
    if (operation.lower != nullptr) {
      Lowering l{{trace_}, &operation, {}, results, exchanging, ints, {first, second}};
      for (int i = 0; i < operands.size(); ++i) l.operands.push_back(entered[i]);
      operation.lower(l);
      result = l.result;
    } else {
      result = trace_.emit(operation, entered, results, kind, ints, first, second);
    }
    Values values;
    for (int r = 0; r < results.size(); ++r) values.push_back({result + r});
    return values;
  }
  constexpr void element_by_element(int owned, const Values& operands, bool host,
                                    internals::List<int, internals::max_node_operands>& entered,
                                    internals::List<Type, internals::max_results>& results) {
    Type like = type(operands[0]);
    if (owned == 0) like.layout = completed(like.layout);
    for (int i = 0; i < operands.size(); ++i) {
      const Type has = type(operands[i]);
      const bool alike = internals::same_extents(has.layout, like.layout);
      if (!alike && has.layout.rank() > 0) refuse(Reason::not_element_by_element);
      const Layout to = internals::on_host(alike ? like.layout : completed(has.layout), host);
      if (i < owned && !(has.layout == like.layout)) refuse(Reason::not_element_by_element);
      entered.push_back(trace_.enter(operands[i].number, to));
    }
    for (int r = 0; r < (owned > 0 ? owned : 1); ++r)
      results.push_back({type(operands[r]).dtype, internals::on_host(like.layout, host)});
  }
  constexpr void by_table(const Operation& operation, int owned, const Values& operands, const Ints& ints, bool host,
                          internals::List<int, internals::max_node_operands>& entered,
                          internals::List<Type, internals::max_results>& results, AxisList& exchanging) {
    Arguments a;
    for (const Value& v : operands) {
      // the rule is of ranks that have it
      a.types.push_back({type(v).dtype, internals::at_all(internals::on_host(type(v).layout, false))});
      a.kinds.push_back(Kind::data);  // nothing goes back through an update, so how whole values are used is all one
    }
    a.ints = ints;
    const Inference inferred = infer(operation, a);
    if (const Reason why = inferred.refusal.reason; why != Reason::none)
      refuse(owned > 0 && why != Reason::no_lowering ? Reason::moves_what_it_updates : why);
    for (int i = 0; i < operands.size(); ++i)
      entered.push_back(inferred.refusal
                            ? operands[i].number
                            : trace_.enter(operands[i].number, at_those_of(type(operands[i]).layout,
                                                                           internals::on_host(inferred.to[i], host))));
    results = inferred.results;
    exchanging = inferred.exchanging;
    for (Type& t : results) t.layout = at_those_of(type(operands[0]).layout, internals::on_host(t.layout, host));
    for (int r = 0; r < owned; ++r)
      if (inferred.refusal || !(results[r] == type(operands[r])) || entered[r] != operands[r].number)
        refuse(Reason::moves_what_it_updates);
  }

  internals::Trace& trace_;
  int member_;
  Value parameter_, at_rest_, gradient_, factor_;
  internals::Vector<Owned> owned_{};
  internals::Vector<int> gone_{};  ///< values whose place another has taken
  int current_ = 0;                ///< of what is owned, what stands in the parameter's place
  DType states_in_ = DType::f32;
  bool gives_out_ = false;
};

namespace internals {
template <class X>
concept Updates = requires(Update& update) {
  X::update(update);
};
}  // namespace internals

}  // namespace parallel
