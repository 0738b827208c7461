// Some transformer layers of GPT-2 (124M) as a step: forward, backward, the norm of the gradients. Sizes, the model,
// and the numbers it is begun with, which every peer makes for itself: layer_torch.py has the same three.
#pragma once
#include <array>

#include <parallel/model/gpt2.hpp>
#include <parallel/parallel.hpp>

#include "numbers.hpp"

namespace bench {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

inline constexpr int channels = 768, heads = 12, head_size = channels / heads, inner = 4 * channels, context = 512;
/// One layer has two sequences, several have one, so that a step on two ranks takes some 250 ms a sequence and layer,
/// or half of that.
constexpr int batch_of(int layers) { return layers == 1 ? 2 : 1; }

/// `sequence`: the hidden state lies split along the sequence between products (Korthikanti et al., 2022).
template <int layers, bool sequence>
struct LayerStack {
  static constexpr Dim positions = sequence ? context / tensor : Dim(context);
  static constexpr models::Gpt2Sizes sizes{.context = positions,
                                           .channels = channels,
                                           .heads = heads / tensor,
                                           .inner = inner / tensor,
                                           .layers = layers,
                                           .dropped = 0};
  using Hidden = Shape<batch_of(layers), positions, channels>;

  Layers<layers, typename models::Gpt2<sizes>::Block> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto target) const {
    return mean(square(blocks(x) - target));
  }
};
/// The gradient of the input is wanted, as the layers below would.
template <int layers, bool sequence, class Stack = LayerStack<layers, sequence>>
using LayerStep =
    Training<Stack, KeepGradients, Wanted<float, typename Stack::Hidden>, Tensor<float, typename Stack::Hidden>>;

/// Of the model, in its order, then the input and what it is compared with.
inline constexpr std::array<Numbers, 14> numbers{{{"blocks.*.norm1.gain", 1, 0.1f},
                                                  {"blocks.*.norm1.shift", 0, 0.1f},
                                                  {"blocks.*.attention.qkv", 0, 0.07f},
                                                  {"blocks.*.attention.qkv_bias", 0, 0.1f},
                                                  {"blocks.*.attention.projection", 0, 0.07f},
                                                  {"blocks.*.attention.projection_bias", 0, 0.1f},
                                                  {"blocks.*.norm2.gain", 1, 0.1f},
                                                  {"blocks.*.norm2.shift", 0, 0.1f},
                                                  {"blocks.*.mlp.up", 0, 0.07f},
                                                  {"blocks.*.mlp.up_bias", 0, 0.1f},
                                                  {"blocks.*.mlp.down", 0, 0.07f},
                                                  {"blocks.*.mlp.down_bias", 0, 0.1f},
                                                  {"input", 0, 1},
                                                  {"target", 0, 1}}};
inline float number(int which, std::int64_t index) {
  return number(numbers[static_cast<std::size_t>(which)], which, index);
}

}  // namespace bench
