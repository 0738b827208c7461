// Layers alone, as the plan of a larger model has them: behind an input that wants its gradient, as layers before
// would, and before a loss.
#pragma once
#include <parallel/parallel.hpp>

namespace between {
using namespace parallel;
using namespace parallel::internals;

/// `blocks(x, more...)`, where the last input is what it is compared with.
template <class Block, int layers>
struct Between {
  Layers<layers, Block> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(blocks(x) - y)); }
  constexpr auto operator()(Distributed auto x, Distributed auto seen, Distributed auto y) const {
    return mean(square(blocks(x, seen) - y));
  }
};
template <class Block, int layers, class Hidden, class... More>
using TrainedBetween = Training<Between<Block, layers>, AdamW, Wanted<float, Hidden>, More..., Tensor<float, Hidden>>;

}  // namespace between
