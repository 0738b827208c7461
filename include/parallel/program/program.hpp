// A program's graph: building it runs the model once on symbolic values, and writes what that applied into the graph.
#pragma once
#include <parallel/operation/reduce.hpp>
#include <parallel/program/accept.hpp>
#include <parallel/program/asynchronous.hpp>
#include <parallel/program/bucket.hpp>
#include <parallel/program/differentiate.hpp>
#include <parallel/program/fuse.hpp>
#include <parallel/program/last_iteration.hpp>
#include <parallel/program/recompute.hpp>
#include <parallel/program/tried.hpp>

namespace parallel {
namespace internals {
namespace building {
/// Several micro-batches lie one behind the other.
template <class Input>
constexpr int declare_input(Trace& trace, int position, int micro_batches) {
  Member member;
  member.role = Role::input;
  const char digit = static_cast<char>('0' + position);
  member.path = trace.graph.name({}, {"input.", std::string_view(&digit, 1)});
  member.type = Input::type;
  if (micro_batches > 1) {
    member.type.layout = with_leading(member.type.layout, Dim(micro_batches));
    member.layers = micro_batches;
  }
  return trace.declare(operation::input, member, kind_of_input<Input>, kind_of_input<Input> == Kind::activation);
}

/// Results of a program: a sum is completed to Invariant, a Broadcast is masked and completed, so that every rank
/// returns the same bits.
constexpr int summed(Trace& trace, int value) {
  Layout layout = trace.graph.values[value].type.layout;
  AxisList axes;
  layout.collect(axes);
  trace.from({&operation::returned,
              {value},
              {},
              {},
              trace.graph.source(trace.graph.maker(value)),
              trace.graph.values[value].member});
  for (const Axis* a : axes)
    if (layout.on(a) == Broadcast) value = trace.enter(value, layout = layout.with(a, Partial));
  for (const Axis* a : axes)
    if (layout.on(a) == Partial) layout = layout.with(a, Invariant);
  return trace.enter(value, layout);
}
/// And what only some stages have goes to all.
constexpr int on_every_stage(Trace& trace, int value) {
  const std::uint8_t home = trace.graph.values[value].home;
  return home == staging::all
             ? value
             : staging::moved(trace, value, Collective::broadcast, staging::placement(home), Invariant, staging::all);
}
constexpr int complete(Trace& trace, int value) { return on_every_stage(trace, summed(trace, value)); }
/// And what only some ranks have: all of them decide by the loss.
constexpr int on_every_rank(Trace& trace, int value) {
  return trace.enter(value, at_all(trace.graph.values[value].type.layout));
}

/// Adds the update of every parameter that a gradient reaches. The loss is the first output.
template <class Optimizer>
constexpr void optimize(Trace& trace, const Differentiation& gradients) {
  Vector<int> members, of;
  for (int i = 0; i < trace.graph.members.size(); ++i) {
    const Member& member = trace.graph.members[i];
    if (member.role != Role::parameter || gradients.of(member.value) < 0) continue;
    members.push_back(i);
    of.push_back(gradients.of(member.value));
  }
  if (members.empty()) {  // the norm of nothing
    trace.phase = Phase::optimizer;
    trace.output(trace.graph.name({}, {"gradient_norm"}),
                 trace.emit(operation::constant, {}, {{DType::f64, {}}}, Kind::constant));
    return;
  }
  complete_together(trace, of);
  trace.phase = Phase::optimizer;
  trace.from({&operation::clip});
  const optimizing::Norm norm = optimizing::clip_by_global_norm(trace, of, trace.graph.outputs[0].value);
  trace.output(trace.graph.name({}, {"gradient_norm"}), norm.norm);
  trace.graph.commit = norm.finite;
  for (int i = 0; i < members.size(); ++i) {
    optimizing::update_as_it_lies<Optimizer>(trace, members[i], of[i], norm.factor);
  }
  trace.member = -1;
}

/// Refuses a loss that is constant almost everywhere and reads parameters.
constexpr void check_trained(Trace& trace, int loss) {
  if (trace.graph.values[loss].differentiable) return;
  int parameter = -1;
  for (int i = trace.graph.members.size() - 1; i >= 0; --i)
    for (const Node& n : trace.graph.nodes)
      if (const Member& m = trace.graph.members[i];
          m.role == Role::parameter && trace.graph.values[m.value].differentiable && n.operands.contains(m.value))
        parameter = i;
  if (parameter >= 0) trace.refuse(Reason::constant_loss, parameter);
}

template <class Program, class... Input>
constexpr void build(Trace& trace, Types<Input...>) {
  typename Program::Model model{};
  trace.training = is_trained<Program>;
  trace.loss_scaled = requires { Program::loss_scaled; };
  if (trace.loss_scaled) trace.scalar("loss_scale");
  if constexpr (requires { Program::sums; }) trace.sums = Program::sums;
  if constexpr (requires { Program::grouping; }) trace.grouping = Program::grouping;
  trace.graph.schedule = schedule_of<Program>();
  trace.graph.chunks = trace.graph.schedule->chunks;
  trace.graph.balanced = requires { Program::balanced; };
  say_stored<Program>(trace);
  if constexpr (trying::tries && is_trained<Program>) (trying::store(trace, Input::type.layout), ...);
  Applications program;
  Vector<char> path;
  declare(model, trace, program, path);
  constexpr int m = Program::micro_batches;
  List<int, 8> inputs;
  (inputs.push_back(declare_input<Input>(trace, inputs.size(), m)), ...);
  int total = -1;
  // stages take even one micro-batch in parts, forward and backward
  const bool loop = m > 1 || trace.graph.stages != nullptr;
  if (loop) {
    if (is_trained<Program>) total = trace.emit(operation::constant, {}, {Type{}}, Kind::constant);
    trace.begin(RegionKind::micro_batches, m);
    if (is_trained<Program>) total = trace.carry(total);
    // also a loss that needs no layer counts once
    if (is_trained<Program> && trace.graph.stages != nullptr) trace.graph.values[total].home = staging::last;
  }
  const bool stashed = trace.graph.stashed =
      is_trained<Program> && trace.graph.stages != nullptr && trace.graph.schedule->asynchronous;
  if (stashed) asynchronous::stash(model, trace, program);
  const int first_input = program.all.size();
  for (const int input : inputs)
    program.add({.what = Application::What::given, .value = input, .region = m > 1 ? trace.region : -1});
  const auto returned = [&]<int... i>(std::integer_sequence<int, i...>) {
    return model(Entering<Input>(&program, first_input + i)...);
  }
  (std::make_integer_sequence<int, sizeof...(Input)>{});
  List<int, meta::max_members> last;
  each_result(returned, [&](const auto& tensor, std::string_view) { last.push_back(tensor.enter(program)); });
  if constexpr (trying::tries)
    for (Application& a : program.all)
      if (a.what == Application::What::loop) trying::keep(a);
  Writing writing(trace, program);
  const auto results = writing.program(last);
  writing.mark_recomputed();
  if (requires { Program::schedule; } && trace.graph.stages == nullptr) trace.refuse(Reason::nothing_staged);
  if constexpr (is_trained<Program>) {
    for (int i = 0; i < inputs.size(); ++i)
      if (!writing.needs(first_input + i)) trace.refuse(Reason::input_unread, trace.graph.maker(inputs[i]).ints[0]);
    const int result = results[0];
    if (loop) {  // the mean of the micro-batches' losses, pending as they are
      const Type scalar = trace.graph.values[result].type;
      trace.graph.values[trace.graph.maker(total).operands[0]].type = trace.graph.values[total].type = scalar;
      const int share = trace.emit(operation::scale, {result}, {scalar}, Kind::data, {}, 1.0 / m);
      trace.hand_on(total, trace.emit(operation::accumulate, {total, share}, {scalar}, Kind::data));
    }
    staging::settle(trace);
    Differentiation gradients(trace);
    if (stashed)
      asynchronous::back<typename Program::Optimizer>(trace, gradients, result);
    else
      gradients.run(result, 1.0 / m);
    trace.phase = Phase::forward;
    trace.output(trace.graph.name({}, {"loss"}),
                 on_every_rank(trace, complete(trace, loop ? trace.result_of(total) : result)));
    if (stashed)
      asynchronous::finish(trace);
    else
      optimize<typename Program::Optimizer>(trace, gradients);
    check_trained(trace, result);
    for (const Member& member : trace.graph.members)
      if (const int gradient = member.role == Role::input ? gradients.of(member.value) : -1; gradient >= 0)
        trace.output(trace.graph.name(member.path, {".gradient"}),
                     optimizing::unscaled(trace, complete(trace, gradient)));
  } else {
    staging::settle(trace, results);
    List<int, meta::max_members> whole;
    for (const int result : results) whole.push_back(summed(trace, result));
    if (loop) trace.end();
    int i = 0;
    each_result(returned, [&](const auto&, std::string_view name) {
      trace.output(trace.graph.name({}, {name}), on_every_stage(trace, whole[i++]));
    });
  }
  staging::place(trace.graph);
}
}  // namespace building

/// The graph of a program, each operation a node: forward, and for a training backward and optimizer. Outputs: the
/// result; of a training the loss, the gradient norm, what the optimizer gives out, and gradients of wanted inputs.
template <class Program>
constexpr Graph build_unfused() {
  Trace trace;
  if constexpr (!building::refused<Program>()) building::build<Program>(trace, typename Program::Inputs{});
  recompute_marked(trace.graph);
  complete_in_last_iteration(trace.graph);
  for (Node& node : trace.graph.nodes) node.flops = trace.graph.flops(node);
  return static_cast<Graph&&>(trace.graph);
}
/// The graph of a program as it is planned: operations that stand one behind the other are fused.
template <class Program>
constexpr Graph build() {
  return fuse(build_unfused<Program>());
}
}  // namespace internals
}  // namespace parallel
