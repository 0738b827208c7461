// The gradient of what was carried out: the applications that a scalar was made of, as one program and its way back.
#pragma once
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <parallel/program/program.hpp>
#include <parallel/run/misuse.hpp>
#include <parallel/run/small_program.hpp>

namespace parallel::internals::eagerly {

/// The value of an application of which a gradient can be asked. Throws Misuse for others.
inline int value_of(const Applications& all, int number) {
  const Application& a = all.all[number];
  if (a.what == Application::What::given && a.value >= 0 && (a.type != nullptr || a.kind == Kind::activation))
    return a.value;
  throw Misuse(
      "a gradient is asked of what was computed, or is data; ask for those of parameters, and of tensors that "
      "`wanted` made");
}

/// A program that gives gradients, and what it takes.
struct TapeGradient {
  Graph graph;
  std::vector<Held> inputs;
};
/// Goes back from the application `loss`, a scalar, to those `of` which gradients are asked, which are its outputs, in
/// the types `as`. `declared`: the parameters. `tape`: all that was applied, with its random numbers (`draws`) and
/// what is held of it. Throws Misuse.
inline TapeGradient tape_gradient(const Trace& declared, const Applications& tape, const Vector<int>& draws,
                                  std::span<const Held> held, int loss, std::span<const int> of,
                                  std::span<const Type> as) {
  Trace trace = declared;
  Applications all;
  all.all = tape.all;
  std::vector<Held> inputs;
  for (int i = 0; i < all.all.size(); ++i) {
    const Held& value = held[static_cast<std::size_t>(i)];
    if (all.all[i].what != Application::What::given || all.all[i].type != nullptr || value.data == nullptr) continue;
    all.all[i].value = declare_held(trace, value, value.kind == Kind::activation);
    inputs.push_back(value);
  }
  Vector<int> known = draws;
  Writing writing(trace, all, &known);
  const int result = writing.program(List<int, 1>{loss})[0];
  writing.mark_recomputed();
  staging::settle(trace);
  Differentiation backward(trace);
  backward.run(result, 1.0);
  Vector<int> completed;
  for (std::size_t i = 0; i < of.size(); ++i) {
    const int value = value_of(all, of[i]);
    const int gradient = backward.of(value);
    if (gradient < 0)
      throw Misuse("no gradient comes to operand " + std::to_string(i + 1) +
                   " of eager.gradient: the scalar was not made of it, or only by what has no "
                   "gradient, as argmax, sign and comparisons; leave it out");
    completed.push_back(gradient);
  }
  complete_together(trace, completed);
  trace.phase = Phase::forward;
  for (int i = 0; i < completed.size(); ++i) {
    const Type& type = as[static_cast<std::size_t>(i)];
    trace.output(trace.graph.name({}, {"gradient"}), trace.enter(trace.cast(completed[i], type.dtype), type.layout));
  }
  staging::place(trace.graph);
  recompute_marked(trace.graph);
  return {fuse(std::move(trace.graph)), std::move(inputs)};
}

}  // namespace parallel::internals::eagerly
