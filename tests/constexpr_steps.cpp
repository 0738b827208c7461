// Plans of which constexpr_steps.py holds how long they take a compiler to compute: of PROGRAM, which it defines.
#include <parallel/model/gpt2.hpp>
#include <parallel/parallel.hpp>

#include "scan_models.hpp"

using namespace parallel;
using namespace parallel::axes;

namespace {

/// A recurrent network whose cell is a GRU.
template <int steps>
struct Recurrent {
  Scan<steps, scans::Gru<float>> scan;
  constexpr auto operator()(Distributed auto state, Distributed auto x) const {
    return mean(square(scan(state, x).last));
  }
};
template <int steps>
using Scanning = Training<Recurrent<steps>, AdamW, Tensor<float, Shape<scans::batch / data, scans::width / tensor>>,
                          Tensor<float, Shape<steps, scans::batch / data, scans::features>>>;

/// GPT-2 whose layers have further words.
template <class... Words>
struct Gpt {
  static constexpr models::Gpt2Sizes sizes{};
  using Whole = models::Gpt2<sizes>;
  Parameter<float, Shape<sizes.vocabulary, sizes.channels>> token{normal(0.02)};
  Parameter<float, Shape<sizes.context.size, sizes.channels>> place{normal(0.01)};
  Layers<sizes.layers, typename Whole::Block, Words...> blocks;
  models::LayerNorm<sizes.channels, float> norm;
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    const auto x = dropout(embedding(tokens, token) + place, sizes.drop());
    return mean_cross_entropy(matmul(norm(blocks(x)), transpose(token)), targets);
  }
};
using Tokens = Tensor<int, Shape<8 / data, 1024>>;
template <class... Words>
using Step = Training<Gpt<Words...>, AdamW, Tokens, Tokens>;

using Short = Scanning<4>;
using Long = Scanning<512>;
using Plain = Step<>;
using Again = AllStored<Step<Recompute<>>, Stored<data>>;

constexpr auto& planned = plan<PROGRAM, Mesh{data = 2, tensor = 2}>;
static_assert(planned.calls() > 0);

}  // namespace
