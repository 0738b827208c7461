// The gradients of a whole model against differences of its loss, on any mesh.
#pragma once
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include <parallel/device/cpu/device.hpp>
#include <parallel/device/random.hpp>
#include <parallel/run/element.hpp>
#include <parallel/run/executor.hpp>
#include <parallel/run/parameters.hpp>

namespace parallel::internals {

/// How gradients are checked. A zero is replaced by what suits the program: in double a step of 2^-17 and a tolerance
/// of 1e-5, in float 2^-7 and 2e-2, as differences of floats tell little.
struct GradientCheck {
  int samples = 8;         ///< elements of each parameter; all of one that has no more
  double step = 0;         ///< how far an element is moved to each side
  double tolerance = 0;    ///< of the larger of both numbers, or of a hundredth of the parameter's largest
  std::uint64_t seed = 1;  ///< by which elements are chosen
};
/// What was compared where all gradients are right.
struct CheckedGradients {
  int elements = 0;    ///< in how many elements
  double largest = 0;  ///< difference, as a part of what `tolerance` is of
};

namespace gradient_checking {
/// The coarsest element type that a program computes with. Throws Misuse where differences tell nothing in it.
inline DType precision_of(const GraphView& g) {
  DType coarsest = DType::f64;
  for (const Value& v : g.values) {
    if (is_half(v.type.dtype))
      throw Misuse("check_gradients: the program computes in " + std::string(name_of(v.type.dtype)) +
                   ", in which differences of losses are lost; check the same model in double");
    if (v.type.dtype == DType::f32) coarsest = DType::f32;
  }
  return coarsest;
}
/// Where output `PATH.gradient` stands, or -1.
inline int gradient_of(const GraphView& g, std::string_view path) {
  const std::string name = std::string(path) + ".gradient";
  for (std::size_t o = 0; o < g.outputs.size(); ++o)
    if (g.text(g.outputs[o].name) == name) return static_cast<int>(o);
  return -1;
}
/// Whether a plan gives out gradients, of parameters that have one.
inline bool keeps_gradients(const GraphView& g) {
  bool any = false, trains = false;
  for (const Member& m : g.members) {
    any = any || (m.role == Role::parameter && gradient_of(g, g.path(m)) >= 0);
    trains = trains || m.updated >= 0;
  }
  const auto norm = [&](const Output& o) { return g.text(o.name) == "gradient_norm"; };
  return any || (!trains && std::any_of(g.outputs.begin(), g.outputs.end(), norm));
}
/// What forward follows from values that are marked, marked too; `each(node)` for each operation on the way.
template <class F>
void follow(const GraphView& g, std::vector<bool>& marked, F each) {
  for (const int i : g.order) {
    const Node& n = g.node(i);
    const auto is_marked = [&](int o) { return marked[static_cast<std::size_t>(o)]; };
    if (n.phase != Phase::forward || !std::any_of(n.operands.begin(), n.operands.end(), is_marked)) continue;
    for (int r = 0; r < n.results; ++r) marked[static_cast<std::size_t>(n.result + r)] = true;
    if (n.is(Structural::none) && n.operation != &operation::cast) each(n);
  }
}
/// The operation whose gradient may forget a parameter: where it meets what gets a gradient, else the first on the way
/// that has none, or says so, else the first; nullptr where none reads it.
inline const Operation* forgets(const GraphView& g, const Member& parameter) {
  std::vector<bool> reached(g.values.size()), follows(g.values.size());
  for (const Member& m : g.members)
    if (m.role == Role::parameter && gradient_of(g, g.path(m)) >= 0) reached[static_cast<std::size_t>(m.value)] = true;
  follow(g, reached, [](const Node&) {});
  follows[static_cast<std::size_t>(parameter.value)] = true;
  const Operation *met = nullptr, *without = nullptr, *first = nullptr;
  follow(g, follows, [&](const Node& n) {
    if (first == nullptr) first = n.operation;
    const bool gives = n.operation->gradient != nullptr && n.operation->gradient != operation::no_gradient;
    if (without == nullptr && !gives) without = n.operation;
    if (met == nullptr && reached[static_cast<std::size_t>(n.result)]) met = n.operation;
  });
  return met != nullptr ? met : without != nullptr ? without : first;
}
/// Some elements of so many, the same on all ranks, in order.
inline std::vector<std::int64_t> chosen(std::int64_t elements, std::uint64_t stream, const GradientCheck& how) {
  std::vector<std::int64_t> all;
  if (elements <= how.samples) {
    for (std::int64_t e = 0; e < elements; ++e) all.push_back(e);
    return all;
  }
  for (int i = 0; i < how.samples; ++i)
    all.push_back(static_cast<std::int64_t>(random_uniform(how.seed, stream, static_cast<std::uint64_t>(i)) *
                                            static_cast<double>(elements)));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}
/// Some elements of an output, on every rank.
template <class World, class Running>
std::vector<double> elements_of(World& world, Running& executor, int output,
                                const std::vector<std::int64_t>& elements) {
  const Plan& plan = executor.plan();
  const Layout& layout = plan.graph.value(plan.graph.outputs[static_cast<std::size_t>(output)].value).type.layout;
  std::vector<std::byte> room;
  const View v = executor.on_host(executor.output(output), room);
  const std::size_t n = elements.size();
  std::vector<double> sums(2 * n);  // and how many ranks have it
  if (v.data != nullptr)
    each_run(plan, layout, world.rank(), [&](std::int64_t position, std::int64_t index, std::int64_t length) {
      for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t at = elements[i] - index;
        if (at < 0 || at >= length) continue;
        sums[i] +=
            v.dtype == DType::f64 ? v.as<double>()[position + at] : static_cast<double>(v.as<float>()[position + at]);
        sums[n + i] += 1;
      }
    });
  world.aside({Collective::all_reduce, sums.data(), sums.data(), static_cast<std::int64_t>(2 * n), DType::f64, false, 0,
               "gradients to be checked"});
  for (std::size_t i = 0; i < n; ++i) sums[i] /= sums[n + i];
  sums.resize(n);
  return sums;
}
/// A whole input as it was handed over.
template <class T>
std::vector<T> whole_of(const HandedInput& input, std::int64_t elements) {
  std::vector<T> whole(static_cast<std::size_t>(elements));
  if (input.make != nullptr) {
    input.make(input.data, 0, elements, whole.data());
    return whole;
  }
  auto to = whole.begin();
  input.each_piece(0, elements, [&](std::int64_t first, std::int64_t step, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) *to++ = static_cast<const T*>(input.data)[first + i * step];
  });
  return whole;
}
/// `input`: where the member is one, what was handed over for it, `position`.
template <class World, class Device, class T>
void check_member(World& world, Executor<World, Device>& executor, const Member& m, const HandedInput* input,
                  int position, std::uint64_t stream, const GradientCheck& how, CheckedGradients& done, Here here) {
  const Plan& plan = executor.plan();
  const std::string path(plan.graph.path(m));
  std::vector<std::int64_t> sizes;
  for (const Dim& d : m.type.layout.dims) sizes.push_back(d.size);
  const std::vector<std::int64_t> elements = chosen(m.type.layout.elements(), stream, how);
  executor.run(here);
  const double loss = executor.output_scalar("loss");
  const int output = gradient_of(plan.graph, path);
  const std::vector<double> gradients =
      output >= 0 ? elements_of(world, executor, output, elements) : std::vector<double>(elements.size());
  double largest = 0;
  for (const double g : gradients) largest = std::max(largest, std::abs(g));
  const double epsilon = precision_of(plan.graph) == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                                : double{std::numeric_limits<float>::epsilon()};
  const double rounding = 4 * epsilon * std::abs(loss) / how.step;
  std::vector<T> whole(static_cast<std::size_t>(m.type.layout.elements()));
  if (input != nullptr)
    whole = whole_of<T>(*input, m.type.layout.elements());
  else
    executor.get(path, whole);  // this rank's part: no more of it is set
  const auto set = [&] { input != nullptr ? executor.input(position, whole) : executor.set(path, whole, here); };
  for (std::size_t i = 0; i < elements.size(); ++i) {
    T& x = whole[static_cast<std::size_t>(elements[i])];
    const T before = x;
    const auto put_back = [&] {
      x = before;
      set();
    };
    const auto loss_at = [&](double moved) {
      x = static_cast<T>(static_cast<double>(before) + moved);
      set();
      try {
        executor.run(here);
      } catch (...) {  // another rank has failed
        put_back();
        throw;
      }
      return executor.output_scalar("loss");
    };
    const double above = loss_at(how.step), below = loss_at(-how.step), slope = (above - below) / (2 * how.step);
    put_back();
    const double found = gradients[i], apart = std::abs(found - slope);
    const double of = std::max({std::abs(found), std::abs(slope), largest / 100});
    ++done.elements;
    if (of > 0 && apart > rounding) done.largest = std::max(done.largest, apart / of);
    if (apart <= how.tolerance * of + rounding) continue;
    const std::string element = " at " + text_of_element(place_of(elements[i], sizes)),
                      change = ", but the loss changes by " + text_of_number(slope),
                      by = " (central difference, step " + shortest(how.step) + ", tolerance " +
                           shortest(how.tolerance) +
                           (epsilon > 1e-10 ? "; in float: check in double before you believe it" : "") + "); ";
    if (output >= 0)
      throw Failure("the gradient of " + path + " is " + text_of_number(found) + element + change + by +
                    "look at the gradients of own operations behind it, each by verify_operation");
    const Operation* const by_whom = forgets(plan.graph, m);
    throw Failure((input != nullptr ? "" : "the parameter ") + path + " gets no gradient" + change + element + by +
                  (by_whom == nullptr ? "an operation behind it" : "the operation " + std::string(by_whom->name)) +
                  " may forget it: have .gradient give one to each operand, g.give(i, ...)" +
                  (input != nullptr ? "" : ", or freeze the parameter"));
  }
}
}  // namespace gradient_checking

/// Compares gradients of some elements of each parameter, and of each input that is Wanted, with central differences of
/// the loss, on the mesh of a plan of Training<Model, KeepGradients, ...>: two steps for an element. A parameter that
/// gets none is one whose gradient is 0, unless it is frozen. Nothing but the element is moved, and all is as before
/// behind it: operations that draw, as dropout, draw the same in each step. Throws Failure, whose one sentence names
/// the parameter, the element and both numbers; Misuse where a plan keeps no gradients or computes in bf16 or f16.
/// Called by all ranks alike.
///
///     check_gradients(plan, world, parameters, {x, y}, {.samples = 16});
template <Communicator World, Device Device = CpuDouble>
CheckedGradients check_gradients(const Plan& plan, World& world, ParametersIn<MemoryOf<Device>>& parameters,
                                 std::initializer_list<HandedInput> inputs, GradientCheck how = {},
                                 const Device& device = {}, Here here = {}) {
  const GraphView& g = plan.graph;
  if (!gradient_checking::keeps_gradients(g))
    throw Misuse(
        "check_gradients: the plan keeps no gradients; give it the plan of Training<Model, KeepGradients, ...>, "
        "the training's parameters fit it");
  const bool in_double = gradient_checking::precision_of(g) == DType::f64;
  if (how.samples < 1)
    throw Misuse("check_gradients: .samples is " + std::to_string(how.samples) + "; check at least one element");
  if (how.step < 0 || how.tolerance < 0)
    throw Misuse("check_gradients: .step and .tolerance are numbers above 0, or 0 for what suits the program");
  if (how.step == 0) how.step = std::ldexp(1, in_double ? -17 : -7);
  if (how.tolerance == 0) how.tolerance = in_double ? 1e-5 : 2e-2;
  Executor<World, Device> executor(plan, world, parameters, device, nullptr, {}, here);
  executor.inputs({inputs.begin(), inputs.size()});
  CheckedGradients done;
  int inputs_before = 0;
  for (std::size_t i = 0; i < g.members.size(); ++i) {
    const Member& m = g.members[i];
    const bool is_input = m.role == Role::input;
    const int position = is_input ? inputs_before++ : -1;
    if (!is_input && m.role != Role::parameter) continue;
    if (!g.value(m.value).differentiable) continue;  // what is frozen, and inputs of which no gradient is wanted
    const HandedInput* const input = is_input ? inputs.begin() + position : nullptr;
    if (m.type.dtype == DType::f64)
      gradient_checking::check_member<World, Device, double>(world, executor, m, input, position, i, how, done, here);
    else
      gradient_checking::check_member<World, Device, float>(world, executor, m, input, position, i, how, done, here);
  }
  return done;
}

}  // namespace parallel::internals

namespace parallel {
using internals::check_gradients;
using internals::CheckedGradients;
using internals::GradientCheck;
}  // namespace parallel
