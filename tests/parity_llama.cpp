// Llama against PyTorch: key heads split like the others, and fewer of them than ranks.
#include <parallel/model/llama.hpp>

#include "parity.hpp"

namespace {

using namespace parity;

template <Dim context, Dim heads, Dim key_heads, class T = float>
using Model = models::Llama<models::LlamaSizes{.context = context,
                                               .channels = channels,
                                               .heads = heads,
                                               .key_heads = key_heads,
                                               .inner = inner / tensor,
                                               .vocabulary = vocabulary / tensor,
                                               .layers = 2,
                                               .base = 100},
                            T>;
template <class T, Dim heads, Dim key_heads>
void check_steps(const std::string& name) {
  const Given given{name, {"input/tokens", "input/targets"}};
  check_training<T, Training<Model<whole, heads, key_heads, T>, Watched, Tokens, Tokens>>(given);
  check_training<T, Training<Model<sliced, heads, key_heads, T>, Watched, Tokens, Tokens>>(given);
}
template <Dim heads, Dim key_heads>
void check(const std::string& name) {
  check_logits<Evaluation<Logits<Model<whole, heads, key_heads>>, Tokens>>({name, {"input/tokens"}});
  check_logits<Evaluation<Logits<Model<sliced, heads, key_heads>>, Tokens>>({name, {"input/tokens"}});
  check_steps<float, heads, key_heads>(name);
  check_steps<double, heads, key_heads>(name);
}

}  // namespace

TEST_CASE("Llama's logits, loss, gradients and ten steps are PyTorch's") { check<8 / tensor, 4 / tensor>("llama"); }
TEST_CASE("Llama's are with fewer key heads than ranks, which every rank holds") {
  check<4 / tensor, 2>("llama_few_keys");
}
