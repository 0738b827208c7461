// Optimizers as nodes of the graph: their state lies like the parameter, their numbers (learning rate, decay, ...) are
// run-time scalars.
#pragma once
#include <parallel/model/update.hpp>
#include <parallel/operation/optimizing.hpp>
#include <parallel/operation/reduce.hpp>

namespace parallel {
namespace internals {
namespace optimizing {
/// The global norm of all gradients. A gradient that is split contributes each rank's part, one that several ranks hold
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
    for (const Axis* a : axes) {
      const bool at_some = layout.on(a).kind == PlacementKind::at;
      if (!layout.on(a).split() && !at_some) continue;
      type.layout = type.layout.with(a, at_some ? layout.on(a) : Partial);
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

/// Has an optimizer update a parameter as its gradient lies: where the parameter lies whole and its gradient split,
/// each rank updates its part, and the parts are gathered in the parameter's place. A gradient that has been added up
/// in halves is cast, unless the optimizer takes it so.
template <class Optimizer>
constexpr void update_as_it_lies(Trace& trace, int member, int gradient, int factor) {
  const int whole = trace.graph.members[member].value;
  const Layout rest = trace.graph.values[whole].type.layout;
  trace.member = member;
  trace.origin = -1;
  trace.graph.members[member].value = trace.enter(whole, trace.graph.values[gradient].type.layout);
  if constexpr (!requires { Optimizer::takes_halves; })
    gradient = trace.cast(gradient, trace.graph.values[whole].type.dtype);
  {
    Update update(trace, member, whole, gradient, factor);
    Optimizer::update(update);
    update.settle();
  }
  trace.member = member;
  Member& updated = trace.graph.members[member];
  updated.value = whole;
  if (updated.updated >= 0) {
    const int gathered = trace.gathered(updated.updated, rest);
    trace.graph.members[member].updated = gathered;
  }
}
}  // namespace optimizing
}  // namespace internals

// Each optimizer has its numbers as `Hyperparameters`: a struct of doubles, whose members' names are those of the
// program's scalars. Defaults are PyTorch's, but of a momentum, which is 0 there, and of Lion, which is not there. In
// the formulas g is the gradient times the factor that clips and unscales, and t counts steps from 1; parameters that
// begin with `zeros`, `ones` or `without_decay` have no weight decay.

/// Updates nothing: every parameter's gradient is an output, in the order of the parameters, as it lies for an
/// optimizer.
struct KeepGradients {
  static constexpr bool takes_halves = true;
  struct Hyperparameters {
    double clip_norm = 0;  ///< nothing is clipped; it is only what every program with gradients reads
  };
  static constexpr void update(Update& u) { u.output("gradient", u.unscaled(u.gradient())); }
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
  static constexpr void update(Update& u) {
    u.replace(operation::sgd, {u.parameter()}, {u.gradient(), u.factor()}, {"learning_rate", "weight_decay"});
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
  static constexpr void update(Update& u) {
    u.replace(operation::momentum, {u.parameter(), u.state("momentum")}, {u.gradient(), u.factor()},
              {"learning_rate", "momentum", "weight_decay"});
  }
};

/// Momentum that looks ahead (Nesterov, 1983; Sutskever et al., 2013), as PyTorch's SGD with `nesterov`:
/// h = g + weight_decay p; m = momentum m + h; p -= learning_rate (h + momentum m).
struct Nesterov {
  static constexpr bool takes_halves = true;
  using Hyperparameters = Momentum::Hyperparameters;
  static constexpr void update(Update& u) {
    u.replace(operation::nesterov, {u.parameter(), u.state("momentum")}, {u.gradient(), u.factor()},
              {"learning_rate", "momentum", "weight_decay"});
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
  static constexpr void update(Update& u) {
    u.replace(operation::adam, {u.parameter(), u.state("mean"), u.state("variance")}, {u.gradient(), u.factor()},
              {"learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "step"});
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
  static constexpr void update(Update& u) {
    u.replace(operation::adamw, {u.parameter(), u.state("mean"), u.state("variance")}, {u.gradient(), u.factor()},
              {"learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "step"});
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
  static constexpr void update(Update& u) {
    u.replace(operation::lion, {u.parameter(), u.state("mean")}, {u.gradient(), u.factor()},
              {"learning_rate", "beta1", "beta2", "weight_decay"});
  }
};

/// Adafactor (Shazeer and Stern, 2018), as PyTorch's: of a matrix it remembers the means of its squared gradients by
/// row and by column, R and C, and takes R C / mean(R) for their means; of a vector each. A parameter of more
/// dimensions is matrices of its last two; a layer's is a parameter of its own. With w = t^-beta2_decay, R = (1 - w) R
/// + w rows(g^2), C alike; u = g / max(root of these, epsilon1); p -= min(learning_rate, 1 / root(t)) max(epsilon2,
/// rms(p)) u / max(1, rms(u) / clip_threshold), behind p -= learning_rate weight_decay p. Beside its hyperparameters it
/// reads the scalar `step`, which is t.
struct Adafactor {
  struct Hyperparameters {
    double learning_rate = 1e-2;  ///< of the size of a parameter, at most; later 1 / root(t) is
    double beta2_decay = 0.8;     ///< 1 / t to this power is forgotten of the means (PyTorch has it with its sign)
    double epsilon1 = 0;          ///< below which a root does not fall; 0: the distance from 1 to the next number
    double epsilon2 = 1e-3;       ///< below which the size of a parameter does not fall
    double clip_threshold = 1;    ///< of the update's root mean square
    double weight_decay = 0;      ///< times the learning rate is taken off a parameter
    double clip_norm = 0;         ///< of the norm of all gradients together; 0: no clipping
  };
  static constexpr void update(Update& u) {
    const Layout layout = u.type(u.parameter()).layout;
    const std::int64_t stacked = u.stacked();
    const auto size = [&](const Operation& squares, const Update::Values& operands) {
      return u.apply(operation::adafactor_size,
                     {u.apply(squares, operands, {"epsilon1"}, {stacked})[0],
                      u.apply(operation::layer_squares, {u.parameter()}, {}, {stacked})[0]},
                     {"learning_rate", "step", "epsilon2", "clip_threshold"}, {}, static_cast<double>(u.elements()))[0];
    };
    if (const int rank = layout.rank(); rank - stacked < 2) {
      const Update::Value squares = u.replace(operation::adafactor_squares, {u.state("squares")},
                                              {u.gradient(), u.factor()}, {"step", "beta2_decay"})[0];
      const Update::Value by = size(operation::full_update_squares, {u.gradient(), u.factor(), squares});
      u.replace(operation::adafactor_full, {u.parameter()}, {u.gradient(), u.factor(), squares, by},
                {"epsilon1", "learning_rate", "weight_decay"}, {stacked});
    } else {
      const double m = static_cast<double>(layout.dims[rank - 2].size),
                   n = static_cast<double>(layout.dims[rank - 1].size);
      const Update::Values sums = u.apply(operation::factored_squares, {u.gradient(), u.factor()}, {}, {stacked});
      const auto mean = [&](std::string_view name, Update::Value sum, double count) {
        return u.replace(operation::adafactor_mean, {u.state(name, u.type(sum))}, {sum}, {"step", "beta2_decay"}, {},
                         1 / count)[0];
      };
      const Update::Value rows = mean("rows", sums[0], n), columns = mean("columns", sums[1], m);
      const Update::Value of_rows = u.apply(operation::sum, {rows}, {}, {rank - 2}, 1 / m)[0];
      const Update::Value by =
          size(operation::factored_update_squares, {u.gradient(), u.factor(), rows, columns, of_rows});
      u.replace(operation::adafactor, {u.parameter()}, {u.gradient(), u.factor(), rows, columns, of_rows, by},
                {"epsilon1", "learning_rate", "weight_decay"}, {stacked});
    }
  }
};

namespace internals {
namespace optimizing {
constexpr double root(double x) {
  double root = x > 1 ? x : 1;
  for (int i = 0; i < 60; ++i) root = (root + x / root) / 2;
  return root;
}
/// The nearest orthogonal matrices, roughly: singular values from 0.7 to 1.2, by five steps of the iteration x = a x +
/// (b (x x^T) + c (x x^T)^2) x, which begins at x over its norm. It multiplies at the matrices' shorter side.
constexpr Update::Value orthogonalized(Update& u, Update::Value x) {
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315, epsilon = 1e-7;
  const Layout layout = u.type(x).layout;
  const bool wide = layout.dims[1].size <= layout.dims[2].size;
  x = u.apply(operation::normalized, {x, u.apply(operation::layer_squares, {x}, {}, {1})[0]}, {}, {}, epsilon)[0];
  const auto product = [&](Update::Value left, Update::Value right, int left_transposed, int right_transposed) {
    return u.apply(operation::matmul, {left, right}, {},
                   operation::Product(1, left_transposed, right_transposed, 1))[0];
  };
  Update::Value gram = product(x, x, !wide, wide), square = product(gram, gram, 0, 0);
  Update::Value by = u.apply(operation::weighted_sum, {gram, square}, {}, {}, b, c)[0];
  Update::Value turned = wide ? product(by, x, 0, 0) : product(x, by, 0, 0);
  x = u.apply(operation::weighted_sum, {x, turned}, {}, {}, a, 1)[0];
  for (int step = 1; step < 5; ++step) {
    gram = u.again(gram, {x, x});
    square = u.again(square, {gram, gram});
    by = u.again(by, {gram, square});
    turned = wide ? u.again(turned, {by, x}) : u.again(turned, {x, by});
    x = u.again(x, {x, turned});
  }
  return x;
}
/// Muon's update of a matrix; whether the parameter is one.
constexpr bool update_by_muon(Update& u, const Operation& muon, bool matches_adamw) {
  const Update::Matrix matrix = u.matrix();
  if (!matrix) return false;
  const Update::Value gradient = u.whole_matrices(u.gradient(), matrix);
  const Update::Value momentum = u.replace(operation::muon_momentum, {u.state("momentum", u.type(gradient))},
                                           {gradient, u.factor()}, {"momentum"})[0];
  const Layout layout = u.type(gradient).layout;
  const auto rows = static_cast<double>(layout.dims[1].size), columns = static_cast<double>(layout.dims[2].size);
  const double outputs = matrix.inputs_are_rows ? columns : rows, inputs = matrix.inputs_are_rows ? rows : columns;
  const double scale = matches_adamw      ? 0.2 * root(outputs > inputs ? outputs : inputs)
                       : outputs > inputs ? root(outputs / inputs)
                                          : 1;
  const Update::Value direction = u.apply(operation::muon_direction, {gradient, momentum, u.factor()}, {"momentum"})[0];
  u.replace(muon, {u.parameter()}, {u.as_parameter(orthogonalized(u, u.on_device(direction)))},
            {"learning_rate", "weight_decay"}, {}, scale);
  return true;
}
}  // namespace optimizing
}  // namespace internals

/// Muon (Jordan et al., 2024), as PyTorch's but for the iteration, which is in f32 here: m = momentum m + (1 -
/// momentum) g; p -= learning_rate root(max(1, outputs / inputs)) o, behind p -= learning_rate weight_decay p, where o
/// is g + momentum (m - g) made orthogonal. It is of matrices: parameters that a product reads, of more dimensions by
/// those that it contracts and the others. They are made orthogonal whole, each on one rank, among all ranks of a
/// stage; so is their momentum. All else, vectors and what an embedding reads, or what says `as_vector`, is updated by
/// AdamW with a learning rate of its own.
struct Muon {
  struct Hyperparameters {
    double learning_rate = 1e-3;
    double momentum = 0.95;             ///< how much is kept of the steps before
    double weight_decay = 0.1;          ///< times a learning rate is taken off a parameter
    double adamw_learning_rate = 3e-4;  ///< of what is no matrix; here and below
    double beta1 = 0.9, beta2 = 0.95;   ///< how much is kept of the gradient's mean, and of its square's
    double epsilon = 1e-10;             ///< added to the root of the variance
    double clip_norm = 0;               ///< of the norm of all gradients together; 0: no clipping
  };
  static constexpr void update(Update& u) {
    u.reads({"learning_rate", "momentum", "weight_decay", "adamw_learning_rate", "beta1", "beta2", "epsilon"});
    if (internals::optimizing::update_by_muon(u, operation::muon, false)) return;
    u.replace(operation::adamw, {u.parameter(), u.state("mean"), u.state("variance")}, {u.gradient(), u.factor()},
              {"adamw_learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "step"});
  }
};

/// Muon whose steps have the root mean square that AdamW's have (Liu et al., 2025), as PyTorch's `match_rms_adamw`:
/// p -= learning_rate 0.2 root(max(outputs, inputs)) o. So one learning rate serves AdamW's part, too.
struct MuonMatchingAdamW {
  struct Hyperparameters {
    double learning_rate = 1e-3;
    double momentum = 0.95;            ///< how much is kept of the steps before
    double weight_decay = 0.1;         ///< times the learning rate is taken off a parameter
    double beta1 = 0.9, beta2 = 0.95;  ///< of what is no matrix: how much is kept of the mean, and of the square's
    double epsilon = 1e-10;            ///< added to the root of the variance
    double clip_norm = 0;              ///< of the norm of all gradients together; 0: no clipping
  };
  static constexpr void update(Update& u) {
    u.reads({"learning_rate", "momentum", "weight_decay", "beta1", "beta2", "epsilon"});
    if (internals::optimizing::update_by_muon(u, operation::muon_matching_adamw, true)) return;
    u.replace(operation::adamw, {u.parameter(), u.state("mean"), u.state("variance")}, {u.gradient(), u.factor()},
              {"learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "step"});
  }
};

/// An optimizer whose states are kept in bf16, in half the memory: `StatesIn<bfloat16, AdamW>`. They are computed in
/// f32, and rounded to the nearest, of two the even, when they are written; parameters are float.
template <class T, class Optimizer>
struct StatesIn : Optimizer {
  static constexpr bool states_fit = std::is_same_v<T, bfloat16> && internals::Updates<Optimizer>;
  static constexpr void update(Update& u) {
    u.states_in(DType::bf16);
    if constexpr (states_fit) Optimizer::update(u);
  }
};

}  // namespace parallel
