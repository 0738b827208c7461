// The collectives of a GPT under tensor parallelism.
#include <doctest/doctest.h>

#include "gpt_rows.hpp"

using namespace gpt;

namespace {
// Megatron: f and g of every layer, of the embedding and of the head; three exchanges of the vocabulary's cross
// entropy.
constexpr auto& plain = plan<Trained<small>, mesh>;
static_assert(on(tensor, plain.forward) == sums(5 + 3, 2560 + 96));
static_assert(on(tensor, plain.backward) == sums(5, 2560));
static_assert(plain.forward.largest_message() == 4 * 512 && plain.forward.sent(tensor) == 4 * (2560 + 96));

// The vocabulary whole: neither embedding nor head nor loss communicate.
constexpr auto& whole_vocabulary = plan<Trained<small, Plain<small>, WholeVocabulary<small>>, mesh>;
static_assert(on(tensor, whole_vocabulary.forward) == sums(4, 2048));
static_assert(on(tensor, whole_vocabulary.backward) == sums(4, 2048));

static_assert(reduces_once(plain) && reduces_once(whole_vocabulary, 32 * 16));
}  // namespace

TEST_CASE("the plan of a GPT at start-up is the compiler's") {
  CHECK(text(derive<Trained<small>>(mesh).get()) == text(plain));
}
