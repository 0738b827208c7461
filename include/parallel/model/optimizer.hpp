// Optimizers as nodes of the graph: their state lies like the parameter, their numbers (learning rate, decay, ...) are
// run-time scalars.
#pragma once
#include <parallel/graph/stages.hpp>
#include <parallel/operation/update.hpp>

namespace parallel {
namespace internals {
namespace optimizing {
/// A gradient as it is without the scale of the loss, in float so that none is lost; only what leaves the program needs
/// it, as updates are by a factor that takes the scale out.
constexpr int unscaled(Trace& trace, int gradient) {
  if (!trace.loss_scaled) return gradient;
  const std::int64_t scale = trace.scalar("loss_scale");
  const Type& type = trace.graph.values[gradient].type;
  return trace.emit(operation::scaled, {gradient, trace.graph.scalar_value}, {{precise(type.dtype), type.layout}},
                    Kind::activation, {scale, 1});
}
/// The global norm of all gradients. A gradient that is split contributes each rank's part, one that every rank holds
/// counts once.
struct Norm {
  int factor = -1, norm = -1, finite = -1;
};
constexpr int added(Trace& trace, int a, int b) {
  return trace.emit(operation::add_scalars, {a, b}, {trace.graph.values[a].type}, Kind::activation);
}
/// `loss`: whole on every rank, so that all of them decide alike.
constexpr Norm clip_by_global_norm(Trace& trace, const Vector<int>& gradients, int loss) {
  Vector<int> squares;
  AxisList split;
  trace.member = -1;
  for (const int g : gradients) {
    Type type{DType::f64, {}};
    AxisList axes;
    const Layout layout = trace.graph.values[g].type.layout;
    layout.collect(axes);
    for (const Axis* a : axes)
      if (layout.on(a).split()) {
        type.layout = type.layout.with(a, Partial);
        if (!split.contains(a)) split.push_back(a);
      }
    type.layout = on_host(type.layout, on_host(layout));
    int square = trace.emit(operation::square_sum, {g}, {type}, Kind::activation);
    if (trace.graph.values[g].home != staging::all) {  // only some stages have it, and the first of them counts it
      square = staging::moved(trace, square, Collective::zero_pad, staging::placement(trace.graph.values[g].home),
                              Partial, staging::all);
      trace.graph.values[square].type.layout = trace.graph.values[square].type.layout.with(trace.graph.stages, Partial);
      if (!split.contains(trace.graph.stages)) split.push_back(trace.graph.stages);
    }
    squares.push_back(square);
  }
  Layout pending;
  for (const Axis* a : split) pending = pending.with(a, Partial);
  int total = -1;
  // a sum that is whole on an axis joins the pending total there: I -> P, on one rank only; the host's are added there
  for (const bool host : {false, true}) {
    int sum = -1;
    for (const int s : squares) {
      if (on_host(trace.graph.values[s].type.layout) != host) continue;
      const int term = trace.enter(s, on_host(pending, host));
      sum = sum < 0 ? term : added(trace, sum, term);
    }
    if (sum >= 0) sum = trace.enter(sum, pending);
    total = total < 0 || sum < 0 ? (total < 0 ? sum : total) : added(trace, total, sum);
  }
  total = trace.enter(total, Layout{});
  const Type scalar{DType::f64, {}};
  Ints positions{trace.scalar("clip_norm")};
  if (trace.loss_scaled) positions.push_back(trace.scalar("loss_scale"));
  const int norm = trace.emit(operation::clip, {total, trace.graph.scalar_value, loss}, {scalar, scalar, scalar},
                              Kind::activation, positions);
  return {norm + 1, norm, norm + 2};
}

/// Optimizer state of the shape and placement in which the parameter is updated, zero at first.
constexpr int state(Trace& trace, int member, std::string_view name) {
  Member described;
  const Member of = trace.graph.members[member];
  described.path = trace.graph.name(of.path, {".", name});
  described.role = Role::state;
  described.type = trace.graph.values[of.value].type;
  described.layers = of.layers;
  described.of = member;
  described.initializer = {Initializer::Kind::constant, 0, false};
  const int value = trace.declare(operation::parameter, described, Kind::parameter, false);
  return trace.region == 0 ? value : trace.carry(value);  // an update within a loop goes on from the one before
}
/// Has an optimizer update a parameter as its gradient lies: where the parameter lies whole and its gradient split, each
/// rank updates its part, and the parts are gathered in the parameter's place. A gradient that has been added up in
/// halves is cast, unless the optimizer takes it so.
template <class Optimizer>
constexpr void update_as_it_lies(Trace& trace, int member, int gradient, int factor) {
  const int whole = trace.graph.members[member].value;
  const Layout rest = trace.graph.values[whole].type.layout;
  trace.member = member;
  trace.origin = -1;
  trace.graph.members[member].value = trace.enter(whole, trace.graph.values[gradient].type.layout);
  if constexpr (!requires { Optimizer::takes_halves; })
    gradient = trace.cast(gradient, trace.graph.values[whole].type.dtype);
  Optimizer::update(trace, member, gradient, factor);
  trace.member = member;
  Member& updated = trace.graph.members[member];
  updated.value = whole;
  if (updated.updated >= 0) {
    const int gathered = trace.gathered(updated.updated, rest);
    trace.graph.members[member].updated = gathered;
  }
}
/// Writes the node that updates a parameter and the states that were declared last, where they lie. `positions`: of the
/// scalars that it reads; behind them stands whether the parameter decays. Its last operand is `Graph::commit`.
constexpr void update(Trace& trace, const Operation& operation, int member, const List<int, max_results>& states,
                      int gradient, int factor, Ints positions) {
  positions.push_back(trace.graph.members[member].initializer.decays);
  const int value = trace.graph.members[member].value, first = trace.graph.members.size() - states.size();
  const Type type = trace.graph.values[value].type;
  List<int, max_node_operands> operands{value};
  List<Type, max_results> types{type};
  for (const int kept : states) {
    operands.push_back(kept);
    types.push_back(type);
  }
  operands.push_back(gradient);
  for (const int number : {factor, int{trace.graph.scalar_value}, int{trace.graph.commit}})
    if (number >= 0)
      operands.push_back(trace.enter(number, on_host(trace.graph.values[number].type.layout, on_host(type.layout))));
  const int updated = trace.emit(operation, operands, types, Kind::parameter, positions);
  trace.graph.members[member].updated = updated;
  for (int i = 0; i < states.size(); ++i) trace.graph.members[first + i].updated = updated + 1 + i;
}
/// Of stochastic gradient descent with a momentum: Momentum and Nesterov.
constexpr void update_by_momentum(Trace& trace, const Operation& operation, int member, int gradient, int factor) {
  const int momentum = state(trace, member, "momentum");
  update(trace, operation, member, {momentum}, gradient, factor,
         {trace.scalar("learning_rate"), trace.scalar("momentum"), trace.scalar("weight_decay")});
}
/// Of Adam and AdamW.
constexpr void update_by_moments(Trace& trace, const Operation& operation, int member, int gradient, int factor) {
  const int mean = state(trace, member, "mean");
  const int variance = state(trace, member, "variance");
  update(trace, operation, member, {mean, variance}, gradient, factor,
         {trace.scalar("learning_rate"), trace.scalar("beta1"), trace.scalar("beta2"), trace.scalar("epsilon"),
          trace.scalar("weight_decay"), trace.scalar("step")});
}
}  // namespace optimizing
}  // namespace internals

// Each optimizer has its numbers as `Hyperparameters`: a struct of doubles, whose members' names are those of the
// program's scalars. Defaults are PyTorch's, but of a momentum, which is 0 there, and of Lion, which is not there. In
// the formulas g is the gradient times the factor that clips and unscales, and t counts steps from 1; parameters that begin with
// `zeros`, `ones` or `without_decay` have no weight decay.

/// Updates nothing: every parameter's gradient is an output, in the order of the parameters, as it lies for an
/// optimizer.
struct KeepGradients {
  static constexpr bool takes_halves = true;
  struct Hyperparameters {
    double clip_norm = 0;  ///< nothing is clipped; it is only what every program with gradients reads
  };
  static constexpr void update(internals::Trace& trace, int, int gradient, int) {
    trace.graph.outputs.push_back(internals::optimizing::unscaled(trace, gradient));
  }
};

/// Stochastic gradient descent (Robbins and Monro, 1951), as PyTorch's without momentum:
/// p -= learning_rate (g + weight_decay p). It keeps no state.
struct Sgd {
  static constexpr bool takes_halves = true;
  struct Hyperparameters {
    double learning_rate = 1e-3;
    double weight_decay = 0;  ///< times the parameter is added to its gradient
    double clip_norm = 0;     ///< of the norm of all gradients together; 0: no clipping
  };
  static constexpr void update(internals::Trace& trace, int member, int gradient, int factor) {
    internals::optimizing::update(trace, operation::sgd, member, {}, gradient, factor,
                                  {trace.scalar("learning_rate"), trace.scalar("weight_decay")});
  }
};

/// Stochastic gradient descent with momentum (Polyak, 1964), as PyTorch's SGD: m = momentum m + g + weight_decay p;
/// p -= learning_rate m.
struct Momentum {
  static constexpr bool takes_halves = true;
  struct Hyperparameters {
    double learning_rate = 1e-3;
    double momentum = 0.9;    ///< how much is kept of the steps before
    double weight_decay = 0;  ///< times the parameter is added to its gradient
    double clip_norm = 0;     ///< of the norm of all gradients together; 0: no clipping
  };
  static constexpr void update(internals::Trace& trace, int member, int gradient, int factor) {
    internals::optimizing::update_by_momentum(trace, operation::momentum, member, gradient, factor);
  }
};

/// Momentum that looks ahead (Nesterov, 1983; Sutskever et al., 2013), as PyTorch's SGD with `nesterov`:
/// h = g + weight_decay p; m = momentum m + h; p -= learning_rate (h + momentum m).
struct Nesterov {
  static constexpr bool takes_halves = true;
  using Hyperparameters = Momentum::Hyperparameters;
  static constexpr void update(internals::Trace& trace, int member, int gradient, int factor) {
    internals::optimizing::update_by_momentum(trace, operation::nesterov, member, gradient, factor);
  }
};

/// Adam (Kingma and Ba, 2015), as PyTorch's: h = g + weight_decay p; m = beta1 m + (1 - beta1) h;
/// v = beta2 v + (1 - beta2) h^2; p -= learning_rate m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon). Beside
/// its hyperparameters it reads the scalar `step`, which is t.
struct Adam {
  static constexpr bool takes_halves = true;
  struct Hyperparameters {
    double learning_rate = 1e-3;
    double beta1 = 0.9, beta2 = 0.999;  ///< how much is kept of the gradient's mean, and of its square's
    double epsilon = 1e-8;              ///< added to the root of the variance
    double weight_decay = 0;            ///< times the parameter is added to its gradient
    double clip_norm = 0;               ///< of the norm of all gradients together; 0: no clipping
  };
  static constexpr void update(internals::Trace& trace, int member, int gradient, int factor) {
    internals::optimizing::update_by_moments(trace, operation::adam, member, gradient, factor);
  }
};

/// AdamW (Loshchilov and Hutter, 2019), as PyTorch's: Adam with h = g, and what decays is the parameter,
/// p -= learning_rate weight_decay p. Beside its hyperparameters it reads the scalar `step`, counted from 1.
struct AdamW {
  static constexpr bool takes_halves = true;
  struct Hyperparameters {
    double learning_rate = 1e-3;
    double beta1 = 0.9, beta2 = 0.999;  ///< how much is kept of the gradient's mean, and of its square's
    double epsilon = 1e-8;              ///< added to the root of the variance
    double weight_decay = 0.01;         ///< times the learning rate is taken off a parameter
    double clip_norm = 0;               ///< of the norm of all gradients together; 0: no clipping
  };
  static constexpr void update(internals::Trace& trace, int member, int gradient, int factor) {
    internals::optimizing::update_by_moments(trace, operation::adamw, member, gradient, factor);
  }
};

/// Lion (Chen et al., 2023, "Symbolic Discovery of Optimization Algorithms"): c = beta1 m + (1 - beta1) g;
/// p -= learning_rate (sign(c) + weight_decay p); m = beta2 m + (1 - beta2) g. The sign of 0 is 0. Defaults are its
/// authors'.
struct Lion {
  static constexpr bool takes_halves = true;
  struct Hyperparameters {
    double learning_rate = 1e-4;
    double beta1 = 0.9, beta2 = 0.99;  ///< how much of the gradient's mean is in a step, and how much of it is kept
    double weight_decay = 0;           ///< times the learning rate is taken off a parameter
    double clip_norm = 0;              ///< of the norm of all gradients together; 0: no clipping
  };
  static constexpr void update(internals::Trace& trace, int member, int gradient, int factor) {
    const int mean = internals::optimizing::state(trace, member, "mean");
    internals::optimizing::update(
        trace, operation::lion, member, {mean}, gradient, factor,
        {trace.scalar("learning_rate"), trace.scalar("beta1"), trace.scalar("beta2"), trace.scalar("weight_decay")});
  }
};

}  // namespace parallel
