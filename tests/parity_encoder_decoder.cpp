// The encoder-decoder against PyTorch: padding of the source, ignored targets, smoothed labels; without dropout and
// with.
#include <parallel/model/encoder_decoder.hpp>

#include "parity.hpp"

namespace {

using namespace parity;

template <Dim context, int dropped = 0, class T = float>
using Model = models::EncoderDecoder<models::EncoderDecoderSizes{.context = context,
                                                                 .channels = channels,
                                                                 .heads = 4 / tensor,
                                                                 .inner = inner / tensor,
                                                                 .vocabulary = vocabulary / tensor,
                                                                 .classes = vocabulary,
                                                                 .layers = 2,
                                                                 .dropped = dropped,
                                                                 .smoothing = 10},
                                     T>;
const Given given{"encoder_decoder", {"input/source", "input/seen", "input/tokens"}};
const Given trained{"encoder_decoder", {"input/source", "input/seen", "input/tokens", "input/targets"}};

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

TEST_CASE("the encoder-decoder's logits are PyTorch's") {
  check_logits<LogitsOf<whole>>(given);
  check_logits<LogitsOf<sliced>>(given);
}
TEST_CASE("the encoder-decoder's logits with dropout are PyTorch's") {
  check_dropped_logits<DroppedLogits<whole>>(given);
  check_dropped_logits<DroppedLogits<sliced>>(given);
}
TEST_CASE("the encoder-decoder's loss, gradients and ten steps are PyTorch's") {
  check_steps<float, 0>();
  check_steps<double, 0>();
}
TEST_CASE("the encoder-decoder's loss, gradients and ten steps with dropout are PyTorch's") {
  check_steps<float, 10>();
}
