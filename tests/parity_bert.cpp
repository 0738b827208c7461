// The BERT-style encoder against PyTorch: padding, segments and ignored targets, not as many on each rank; without
// dropout and with.
#include <parallel/model/bert.hpp>

#include "parity.hpp"

namespace {

using namespace parity;

template <Dim context, int dropped = 0, class T = float>
using Model = models::Bert<models::BertSizes{.context = context,
                                             .channels = channels,
                                             .heads = 4 / tensor,
                                             .inner = inner / tensor,
                                             .vocabulary = vocabulary / tensor,
                                             .classes = 22,
                                             .layers = 2,
                                             .dropped = dropped,
                                             .epsilon = 5},
                           T>;
const Given given{"bert", {"input/tokens", "input/segments", "input/seen"}};
const Given trained{"bert", {"input/tokens", "input/segments", "input/seen", "input/targets"}};

template <Dim context>
using LogitsOf = Evaluation<Logits<Model<context>>, Tokens, Tokens, Tokens>;
template <Dim context>
using DroppedLogits = Training<Weighed<Logits<Model<context, 10>>>, KeepGradients, LogitsGiven, Tokens, Tokens, Tokens>;
template <class T, Dim context, int dropped>
using Step = Training<Model<context, dropped, T>, Watched, Tokens, Tokens, Tokens, Tokens>;

template <class T, int dropped>
void check_steps() {
  check_training<T, Step<T, whole, dropped>>(trained, dropped > 0 ? "/dropped" : "");
  check_training<T, Step<T, sliced, dropped>>(trained, dropped > 0 ? "/dropped" : "");
}

}  // namespace

TEST_CASE("BERT's logits are PyTorch's") {
  check_logits<LogitsOf<whole>>(given);
  check_logits<LogitsOf<sliced>>(given);
}
TEST_CASE("BERT's logits with dropout are PyTorch's") {
  check_dropped_logits<DroppedLogits<whole>>(given);
  check_dropped_logits<DroppedLogits<sliced>>(given);
}
TEST_CASE("BERT's loss, gradients and ten steps are PyTorch's") {
  check_steps<float, 0>();
  check_steps<double, 0>();
}
TEST_CASE("BERT's loss, gradients and ten steps with dropout are PyTorch's") { check_steps<float, 10>(); }
