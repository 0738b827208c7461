// What the plans of a GPT on this mesh are to send: counted by hand from the rule of derivation (docs/placements.md),
// variant by variant.
#pragma once
#include "collectives.hpp"
#include "gpt_model.hpp"

namespace gpt {

inline constexpr Mesh mesh{data = 2, tensor = 2};
inline constexpr Sizes small{};  // 2 sequences of 16 tokens of width 16 on a rank of `data`: 512 elements, 32 tokens
constexpr Collectives sums(std::int64_t count, std::int64_t elements) {
  return {.all_reduce = count, .reduced = elements};
}

// Whatever happens on tensor, data parallelism reduces every parameter's gradient once: 12 of each layer, 4 others; and
// the loss. within the tensor shard
inline constexpr std::int64_t layer_elements = 16 * 3 * 8 + 3 * 8 + 8 * 16 + 16 + 16 * 32 + 32 + 32 * 16 + 16 + 4 * 16;
constexpr bool reduces_once(const Plan& p, std::int64_t table_elements = 16 * 16) {
  return on(data, p.backward) == sums(12 * 2 + 4, 2 * layer_elements + table_elements + 16 * 16 + 2 * 16) &&
         on(data, p.forward) == sums(1, 1) && p.optimizer.collectives(data) == 0;
}

}  // namespace gpt
