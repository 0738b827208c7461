// Programs of every kind: nested calls, random numbers, loops, stages, memory, several element types. Each has a name
// and a type.
#pragma once
#include <parallel/model/bert.hpp>
#include <parallel/model/encoder_decoder.hpp>
#include <parallel/model/gpt2.hpp>
#include <parallel/model/llama.hpp>

#include "long_paths.hpp"
#include "models.hpp"
#include "pipeline_models.hpp"

namespace every {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

using X = Tensor<float, Shape<8 / data, 4, 16>>;

/// Its arguments are calls, each with a pending sum of another size. `Statements` says in which order they are made;
/// nothing depends on it.
enum class Statements { nested, forwards, backwards };
template <Statements order, bool unneeded = false>
struct Nested {
  Parameter<float, Shape<16 / tensor, 8, 4>> a{normal(0.3)};
  Parameter<float, Shape<16 / tensor, 4, 4>> b{normal(0.3)}, c{normal(0.3)};
  Parameter<float, Shape<16>> g{ones}, h{ones};

  constexpr auto some(Distributed auto x) const { return dropout(x * g, 0.5); }
  constexpr auto other(Distributed auto x) const { return dropout(square(x) * h, 0.3); }
  constexpr auto operator()(Distributed auto given) const {
    if constexpr (unneeded) static_cast<void>(other(given) + random<float, Shape<8, 4, 16>>());
    if constexpr (order == Statements::nested) {
      const auto x = some(given) + other(given);
      return mean(square(attention(matmul(x, a), matmul(x, b), matmul(x, c))));
    } else if constexpr (order == Statements::forwards) {
      const auto first = some(given);
      const auto second = other(given);
      const auto x = first + second;
      const auto q = matmul(x, a);
      const auto k = matmul(x, b);
      const auto v = matmul(x, c);
      return mean(square(attention(q, k, v)));
    } else {
      const auto second = other(given);
      const auto first = some(given);
      const auto x = first + second;
      const auto v = matmul(x, c);
      const auto k = matmul(x, b);
      const auto q = matmul(x, a);
      return mean(square(attention(q, k, v)));
    }
  }
};
template <Statements order, bool unneeded = false>
using NestedStep = Training<Nested<order, unneeded>, AdamW, X>;

/// Layers whose body takes values from outside that nothing before them made, in arguments that are calls; a parameter
/// that is stored split. By words the blocks are computed again.
template <class... Word>
struct Outside {
  struct Block {
    Parameter<float, Shape<16, 16>, Stored<data, Split<0>>> w{normal(0.3)};
    Parameter<float, Shape<16>> gain{ones};
    constexpr auto operator()(Distributed auto x, Distributed auto a, Distributed auto b) const {
      return recompute(rms_norm(x, gain)) + (dropout(matmul(x, w), 0.1) * (b + a) + dropout(b * x, 0.2));
    }
  };
  Parameter<float, Shape<16>> scale{ones}, shift{zeros};
  Layers<4, Block, Word...> blocks;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(blocks(x + random<float, Shape<8, 4, 16>>(0.1), scale + shift, gelu(shift) + 1.0)));
  }
};

/// What one run writes and another reads, and what this one does not read.
struct Remembering {
  Parameter<float, Shape<16, 16>> w{normal(0.3)}, u{normal(0.3)};
  constexpr auto operator()(Distributed auto x, Distributed auto position) const {
    const auto unread = remember<1, 12>(matmul(x, u), position);
    static_cast<void>(remember<1, 12>(x + x, position));
    static_cast<void>(unread);
    return remember<1, 12>(matmul(x, w), position);
  }
};

inline constexpr parallel::models::LlamaSizes llama{.context = 16,
                                                    .channels = 32,
                                                    .heads = 8 / tensor,
                                                    .key_heads = 2,
                                                    .inner = 64 / tensor,
                                                    .vocabulary = 64 / tensor};
inline constexpr parallel::models::LlamaSizes staged_llama{.context = 16,
                                                           .channels = 32,
                                                           .heads = 8 / tensor,
                                                           .key_heads = 4 / tensor,
                                                           .inner = 64 / tensor,
                                                           .vocabulary = 64 / tensor,
                                                           .layers = 4 / stage};
inline constexpr parallel::models::LlamaSizes ring_llama{.context = 16 / sequence,
                                                         .attention = Context::ring,
                                                         .channels = 32,
                                                         .heads = 8 / tensor,
                                                         .key_heads = 4 / tensor,
                                                         .inner = 64 / tensor,
                                                         .vocabulary = 64 / tensor,
                                                         .layers = 2};
template <const parallel::models::LlamaSizes& sizes>
struct Generating {
  parallel::models::Llama<sizes> model;
  constexpr auto operator()(Distributed auto more, Distributed auto position) const { return model(more, position); }
};
using Text = Tensor<int, Shape<8 / data, 16>>;
using SplitText = Tensor<int, Shape<8 / data, 16 / sequence>>;
using Gpt = ::models::Gpt<float, ::models::multiples_of(4)>;
using Staged = Training<pipelines::Gpt<float>, AdamW, pipelines::Tokens, pipelines::Tokens, pipelines::Tokens>;

/// Calls f.template operator()<Program>(name) for each.
template <class F>
void program(F f) {
  f.template operator()<NestedStep<Statements::nested>>("nested");
  f.template operator()<NestedStep<Statements::backwards>>("backwards");
  f.template operator()<Training<Outside<>, Sgd, X>>("outside");
  f.template operator()<Training<Outside<Recompute<2, Repeat::collectives>>, Sgd, X>>("computed again");
  f.template operator()<AllStored<Accumulate<2, Training<Outside<RecomputeAsPublished>, AdamW, X>>, Stored<data>>>(
      "stored and computed again");
  f.template operator()<AllStored<Accumulate<2, Training<Outside<Recompute<>>, AdamW, X>>, Stored<data>, Stored<host>>>(
      "on the host");
  f.template operator()<Accumulate<2, Training<Outside<>, StatesIn<bfloat16, Muon>, X>>>("muon");
  f.template operator()<AllStored<Training<Outside<>, Adafactor, X>, Stored<data>>>("adafactor");
  f.template operator()<AllStored<Training<Outside<>, Muon, X>, Stored<data>, Stored<host>>>("muon on the host");
  f.template operator()<Evaluation<Remembering, X, Tensor<int, Shape<>>>>("memory");
  f.template operator()<Training<Gpt, AdamW, Gpt::Tokens, Gpt::Tokens>>("gpt");
  f.template operator()<Accumulate<2, Training<parallel::models::Llama<llama>, AdamW, Text, Text>>>("llama");
  f.template operator()<AllStored<
      Accumulate<2, Training<parallel::models::Llama<ring_llama>, AdamW, SplitText, SplitText>>, Stored<data>>>(
      "llama around a ring");
  f.template operator()<Evaluation<Generating<llama>, Tensor<int, Shape<8 / data, 1>>, Tensor<int, Shape<>>>>(
      "generating");
  f.template operator()<Accumulate<4, Training<parallel::models::Llama<staged_llama>, AdamW, Text, Text>>>(
      "llama in stages");
  f.template operator()<Pipelined<schedules::interleaved<2>, Accumulate<4, Staged>>>("gpt in stages");
  f.template operator()<Pipelined<schedules::pipedream, Accumulate<4, Staged>>>("gpt, asynchronous");
  f.template operator()<long_paths::Step>("long paths");
}

}  // namespace every
