// The nodes that say where values come from and go to; no user calls them.
#pragma once
#include <parallel/graph/graph.hpp>

namespace parallel {

namespace operation {
inline constexpr Operation move{.name = "move"};  ///< a transition; its node says which
/// a value that exists before the program runs
inline constexpr Operation parameter{.name = "parameter", .computes = false};
inline constexpr Operation input{.name = "input", .computes = false};
/// all run-time scalars, f64[count]
inline constexpr Operation scalars{.name = "scalars", .computes = false};
/// what an iteration takes from the one before
inline constexpr Operation carry{.name = "carry", .computes = false};
/// what the last iteration returned
inline constexpr Operation carried{.name = "carried", .computes = false};
/// one layer's slice of a stacked value
inline constexpr Operation layer{.name = "layer", .aliases = true, .computes = false};
/// the iterations' values, one behind the other
inline constexpr Operation stacked{.name = "stacked", .computes = false};
inline constexpr Operation copy{.name = "copy"};
/// the same values in another element type
inline constexpr Operation cast{.name = "cast"};
/// (term, sum): a cast of a sum over ranks back to the type that its terms had before they were cast. Where one rank
/// adds it is the term itself.
inline constexpr Operation rounded{.name = "rounded"};
/// weights as a micro-batch found them
inline constexpr Operation stash{.name = "stash"};
/// its operands one behind the other
inline constexpr Operation bucket{.name = "bucket"};
/// one of them, from element ints[0] on
inline constexpr Operation in_bucket{.name = "in_bucket", .aliases = true};
/// a program's result; only an origin, never a node
inline constexpr Operation returned{.name = "returned", .computes = false};
inline constexpr Operation begin_region{.name = "begin", .computes = false};
inline constexpr Operation end_region{.name = "end", .computes = false};
}  // namespace operation

}  // namespace parallel
