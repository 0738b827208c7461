// Optimizers as nodes of the graph: their state lies like the parameter, their numbers (learning rate, decay, ...) are
// run-time scalars.
#pragma once
#include <parallel/graph/stages.hpp>
#include <parallel/operation/update.hpp>

namespace parallel {
namespace internals {
namespace optimizing {
/// The global norm of all gradients. A gradient that is split contributes each rank's part, one that every rank holds
/// counts once.
struct Norm {
  int factor = -1, norm = -1, finite = -1;
};
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
    int square = trace.emit(operation::square_sum, {g}, {type}, Kind::activation);
    if (trace.graph.values[g].home != staging::all) {  // only some stages have it, and the first of them counts it
      square = staging::moved(trace, square, Collective::zero_pad, staging::placement(trace.graph.values[g].home),
                              Partial, staging::all);
      trace.graph.values[square].type.layout = trace.graph.values[square].type.layout.with(trace.graph.stages, Partial);
      if (!split.contains(trace.graph.stages)) split.push_back(trace.graph.stages);
    }
    squares.push_back(square);
  }
  Type pending{DType::f64, {}};
  for (const Axis* a : split) pending.layout = pending.layout.with(a, Partial);
  int total = -1;
  // a sum that is whole on an axis joins the pending total there: I -> P, on one rank only
  for (const int s : squares) {
    const int term = trace.enter(s, pending.layout);
    total = total < 0 ? term : trace.emit(operation::add_scalars, {total, term}, {pending}, Kind::activation);
  }
  total = trace.enter(total, Layout{});
  const Type scalar{DType::f64, {}};
  const std::int64_t limit = trace.scalar("clip_norm");
  const int norm = trace.emit(operation::clip, {total, trace.graph.scalar_value, loss}, {scalar, scalar, scalar},
                              Kind::activation, {limit});
  return {norm + 1, norm, norm + 2};
}

/// Optimizer state of a parameter's own shape and placement, zero at first.
constexpr int state(Trace& trace, int member, std::string_view name) {
  Member described;
  const Member of = trace.graph.members[member];
  described.path = trace.graph.name(of.path, {".", name});
  described.role = Role::state;
  described.type = of.type;
  described.layers = of.layers;
  described.of = member;
  described.initializer = {Initializer::Kind::constant, 0, false};
  const int value = trace.declare(operation::parameter, described, Kind::parameter, false);
  return trace.region == 0 ? value : trace.carry(value);  // an update within a loop goes on from the one before
}
}  // namespace optimizing
}  // namespace internals

// Each optimizer has its numbers as `Hyperparameters`: a struct of doubles, whose members' names are those of the
// program's scalars. Defaults are PyTorch's.

/// Updates nothing: every parameter's gradient is an output, in the order of the parameters, as it lies for an
/// optimizer.
struct KeepGradients {
  struct Hyperparameters {
    double clip_norm = 0;  ///< nothing is clipped; it is only what every program with gradients reads
  };
  static constexpr void update(internals::Trace& trace, int, int gradient, int) {
    trace.graph.outputs.push_back(gradient);
  }
};

/// Stochastic gradient descent with momentum: m = momentum m + g; p -= learning_rate m.
struct Sgd {
  struct Hyperparameters {
    double learning_rate = 1e-3;
    double momentum = 0;
    double weight_decay = 0;  ///< times the parameter is added to its gradient
    double clip_norm = 0;     ///< of the norm of all gradients together; 0: no clipping
  };
  static constexpr void update(internals::Trace& trace, int member, int gradient, int factor) {
    const int momentum = internals::optimizing::state(trace, member, "momentum");
    const int first = trace.graph.members.size() - 1;
    const Ints ints{trace.scalar("learning_rate"), trace.scalar("momentum"), trace.scalar("weight_decay"),
                    trace.graph.members[member].initializer.decays};
    const int value = trace.graph.members[member].value;
    const int updated =
        trace.emit(operation::sgd, {value, momentum, gradient, factor, trace.graph.scalar_value},
                   {trace.graph.values[value].type, trace.graph.values[momentum].type}, Kind::parameter, ints);
    trace.graph.members[member].updated = updated;
    trace.graph.members[first].updated = updated + 1;
  }
};

/// AdamW (Loshchilov and Hutter, 2019), as PyTorch's. Beside its hyperparameters it reads the scalar `step`, counted
/// from 1.
struct AdamW {
  struct Hyperparameters {
    double learning_rate = 1e-3;
    double beta1 = 0.9, beta2 = 0.999;  ///< how much is kept of the gradient's mean, and of its square's
    double epsilon = 1e-8;              ///< added to the root of the variance
    double weight_decay = 0.01;         ///< times the learning rate is taken off a parameter
    double clip_norm = 0;               ///< of the norm of all gradients together; 0: no clipping
  };
  static constexpr void update(internals::Trace& trace, int member, int gradient, int factor) {
    const int mean = internals::optimizing::state(trace, member, "mean");
    const int variance = internals::optimizing::state(trace, member, "variance");
    const int first = trace.graph.members.size() - 2;
    const Ints ints{trace.scalar("learning_rate"),
                    trace.scalar("beta1"),
                    trace.scalar("beta2"),
                    trace.scalar("epsilon"),
                    trace.scalar("weight_decay"),
                    trace.scalar("step"),
                    trace.graph.members[member].initializer.decays};
    const int value = trace.graph.members[member].value;
    const Type type = trace.graph.values[value].type;
    const int updated =
        trace.emit(operation::adamw, {value, mean, variance, gradient, factor, trace.graph.scalar_value},
                   {type, type, type}, Kind::parameter, ints);
    trace.graph.members[member].updated = updated;
    trace.graph.members[first].updated = updated + 1;
    trace.graph.members[first + 1].updated = updated + 2;
  }
};

}  // namespace parallel
