// An attention layer whose sequence two ranks share, and the numbers it is begun with, which every peer makes for
// itself: context_torch.py has the same.
#pragma once
#include <array>
#include <vector>

#include <parallel/parallel.hpp>

#include "numbers.hpp"

namespace bench::attending {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

inline constexpr int channels = 512, heads = 8, size = channels / heads;

/// One sequence.
template <Context how, bool causal>
struct Layer {
  Parameter<float, Shape<channels, 3, heads, size>> qkv{normal(0.04)};
  Parameter<float, Shape<heads, size, channels>> projection{normal(0.04)};
  constexpr auto operator()(Distributed auto x) const {
    const auto all = matmul(x, qkv);
    const auto y = attention<causal, how>(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all));
    return mean(square(x + matmul<2>(y, projection)));
  }
};
template <Context how, bool causal, int length, Order order>
using Step = Training<Layer<how, causal>, Sgd, Tensor<float, Shape<1, length / Ordered{&sequence, order}, channels>>>;

/// Of the model, in its order, then the input.
inline constexpr std::array<Numbers, 3> numbers{{{"qkv", 0, 0.07f}, {"projection", 0, 0.07f}, {"input", 0, 1}}};

/// Gives a trainer all of them.
template <class Trainer>
void give_numbers(Trainer& trainer) {
  const auto numbers_of = [](int which) {
    return [which](std::size_t i) {
      return number(numbers[static_cast<std::size_t>(which)], which, static_cast<std::int64_t>(i));
    };
  };
  for (int which = 0; which < 2; ++which) {
    std::vector<float> whole(which == 0 ? std::size_t{3} * channels * channels : std::size_t{channels} * channels);
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = numbers_of(which)(i);
    trainer.executor().set(numbers[static_cast<std::size_t>(which)].name, whole);
  }
  trainer.executor().input(0, numbers_of(2));
}

}  // namespace bench::attending
