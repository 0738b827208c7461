// Four transformer layers of GPT-2 (124M), trained by AdamW with one sequence a rank, whole or by a stage of ZeRO.
// zero_torch.py has the same model and words; the numbers are those of layer_model.hpp.
#pragma once
#include "layer_model.hpp"

namespace bench {

struct ZeroStack {
  static constexpr models::Gpt2Sizes sizes{
      .context = context, .channels = channels, .heads = heads, .inner = inner, .layers = 4, .dropped = 0};
  Layers<4, models::Gpt2<sizes>::Block> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto target) const {
    return mean(square(blocks(x) - target));
  }
};
using ZeroInput = Tensor<float, Shape<2 / data, context, channels>>;
template <class... S>
using ZeroStep = AllStored<Training<ZeroStack, AdamW, ZeroInput, ZeroInput>, S...>;

inline constexpr double zero_rate = 1e-4;
inline constexpr AdamW::Hyperparameters zero_words{.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1};

/// Gives a rank its part of the parameters and inputs of a trainer's plan.
template <class Trainer>
void give_numbers(const Plan& plan, Trainer& trainer, Parameters& parameters, int rank) {
  int which = 0, position = 0;
  for (const Member& m : plan.graph.members) {
    if (m.role != Role::parameter && m.role != Role::input) continue;
    std::vector<float> whole(static_cast<std::size_t>(m.type.layout.elements()));
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = number(which, static_cast<std::int64_t>(i));
    if (m.role == Role::input)
      trainer.executor().input(position++, whole);
    else if (plan.graph.path(m) != numbers[static_cast<std::size_t>(which)].name)
      throw Failure("zero_model: the model's parameters are not those of layer_model.hpp");
    else
      parameters.set(plan, rank, plan.graph.path(m), whole);
    ++which;
  }
}

}  // namespace bench
