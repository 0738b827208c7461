// The nodes that say where values come from and go to; no user calls them.
#pragma once
#include <parallel/graph/graph.hpp>

namespace parallel {

// Descriptions and what they are made of use the graph's records and the algebra's by their names alone.
namespace PARALLEL_SHARED operation {
using namespace internals;

inline constexpr Operation move{.name = "move", .structural = Structural::move};  ///< a transition; its node says which
/// a value that exists before the program runs
inline constexpr Operation parameter{.name = "parameter", .computes = false, .structural = Structural::parameter};
inline constexpr Operation input{.name = "input", .computes = false, .structural = Structural::input};
/// all run-time scalars, f64[count]
inline constexpr Operation scalars{.name = "scalars", .computes = false, .structural = Structural::scalars};
/// what an iteration takes from the one before
inline constexpr Operation carry{.name = "carry", .computes = false, .structural = Structural::carry};
/// what the last iteration returned
inline constexpr Operation carried{.name = "carried", .computes = false, .structural = Structural::carried};
/// one layer's slice of a stacked value: of those that an iteration takes number ints[0]
inline constexpr Operation layer{.name = "layer", .aliases = true, .computes = false, .structural = Structural::layer};
/// the iterations' values, one behind the other; its operands are those of one iteration
inline constexpr Operation stacked{.name = "stacked", .computes = false, .structural = Structural::stacked};
inline constexpr Operation copy{.name = "copy", .structural = Structural::copy};
/// the same values in another element type
inline constexpr Operation cast{.name = "cast"};
/// the elements of dimension ints[0] in another order: its operand says from which, its result to which
inline constexpr Operation reorder{.name = "reorder"};
/// (term, sum): a cast of a sum over ranks back to the type that its terms had before they were cast. Where one rank
/// adds it is the term itself.
inline constexpr Operation rounded{.name = "rounded", .structural = Structural::rounded};
/// weights as a micro-batch found them
inline constexpr Operation stash{.name = "stash", .structural = Structural::stash};
/// its operands one behind the other
inline constexpr Operation bucket{.name = "bucket", .structural = Structural::bucket};
/// one of them, from element ints[0] on
inline constexpr Operation in_bucket{.name = "in_bucket", .aliases = true, .structural = Structural::in_bucket};
/// a program's result; only an origin, never a node
inline constexpr Operation returned{.name = "returned", .computes = false, .structural = Structural::returned};
inline constexpr Operation begin_region{.name = "begin", .computes = false, .structural = Structural::begin_region};
inline constexpr Operation end_region{.name = "end", .computes = false, .structural = Structural::end_region};

/// The structural ones by their numbers.
inline constexpr const Operation* structural[] = {nullptr,     &move,   &parameter, &input, &scalars,  &carry,
                                                  &carried,    &layer,  &stacked,   &copy,  &returned, &begin_region,
                                                  &end_region, &bucket, &in_bucket, &stash, &rounded};
}  // namespace operation

}  // namespace parallel
