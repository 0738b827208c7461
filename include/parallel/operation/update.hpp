// Operations that take the place of an operand, and what decides about them; no user calls them.
#pragma once
#include <parallel/graph/graph.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {

/// (sum, x): sum + x in the storage of sum; x may be half of it where the sum is f32.
inline constexpr Operation accumulate{.name = "accumulate", .updates = true};
inline constexpr Operation square_sum{.name = "square_sum"};  ///< the sum of squares of a rank's part, a scalar f64
inline constexpr Operation add_scalars{.name = "add_scalars"};
/// (x, scalars): x times a number of the run, or divided by it; of halves the result may be float. ints: its position,
/// whether it divides.
inline constexpr Operation scaled{.name = "scaled"};
/// (sum of squares, scalars, loss): the norm, the factor min(1, clip / norm), and whether norm and loss are finite
/// numbers. ints: positions of clip_norm, and of loss_scale where gradients are scaled: norm and factor take it out.
inline constexpr Operation clip{.name = "clip"};

// Updates of a parameter and its state: ints are the positions of their scalars, then whether the parameter decays.
// Behind the operands that are named stands the scalar that is 0 where nothing is to be updated (Graph::commit).

/// (parameter, gradient, factor, scalars) -> parameter; positions of learning_rate, weight_decay
inline constexpr Operation sgd{.name = "sgd", .updates = true};
/// (parameter, momentum, gradient, factor, scalars) -> parameter, momentum; positions of learning_rate, momentum,
/// weight_decay
inline constexpr Operation momentum{.name = "momentum", .updates = true};
inline constexpr Operation nesterov{.name = "nesterov", .updates = true};  ///< as momentum
/// (parameter, mean, variance, gradient, factor, scalars) -> parameter, mean, variance; positions of learning_rate,
/// beta1, beta2, epsilon, weight_decay, step
inline constexpr Operation adam{.name = "adam", .updates = true};
inline constexpr Operation adamw{.name = "adamw", .updates = true};  ///< as adam
/// (parameter, mean, gradient, factor, scalars) -> parameter, mean; positions of learning_rate, beta1, beta2,
/// weight_decay
inline constexpr Operation lion{.name = "lion", .updates = true};
/// (average, parameter, scalars) -> average; positions of average_decay, average_from, step, and behind whether the
/// parameter decays, which is all one, whether the average is corrected for its beginning
inline constexpr Operation average{.name = "average", .updates = true};
/// (version, other, scalars) -> version: the other takes its place, in the first step alone or in all but that. Position
/// of step, and behind whether the parameter decays, which is all one, whether it is the first step's
inline constexpr Operation handed_down{.name = "handed_down", .updates = true};

}  // namespace operation

namespace internals {
/// Whether an operation updates any element without the others: as it has no table (Update::replace), and updates more
/// than a part. Operands of other sizes are numbers then, which all elements share.
constexpr bool updates_by_element(const Operation& operation) {
  return operation.updates && operation.signatures == nullptr && operation.reads_part_of < 0;
}
}  // namespace internals
}  // namespace parallel
