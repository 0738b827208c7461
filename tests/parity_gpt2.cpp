// GPT-2 against PyTorch, with a padded vocabulary, without dropout and with.
#include <parallel/model/gpt2.hpp>

#include "parity.hpp"

namespace {

using namespace parity;
using namespace parallel::internals;

template <Dim context, int dropped = 0, class T = float>
using Model = models::Gpt2<models::Gpt2Sizes{.context = context,
                                             .channels = channels,
                                             .heads = 4 / tensor,
                                             .inner = inner / tensor,
                                             .vocabulary = vocabulary / tensor,
                                             .classes = 17,
                                             .layers = 2,
                                             .dropped = dropped},
                           T>;
const Given given{"gpt2", {"input/tokens"}}, trained{"gpt2", {"input/tokens", "input/targets"}};

template <Dim context>
using LogitsOf = Evaluation<Logits<Model<context>>, Tokens>;
template <Dim context>
using DroppedLogits = Training<Weighed<Logits<Model<context, 10>>>, KeepGradients, LogitsGiven, Tokens>;
template <class T, Dim context, int dropped>
using Step = Training<Model<context, dropped, T>, Watched, Tokens, Tokens>;

template <class T, int dropped>
void check_steps() {
  check_training<T, Step<T, whole, dropped>>(trained, dropped > 0 ? "/dropped" : "");
  check_training<T, Step<T, sliced, dropped>>(trained, dropped > 0 ? "/dropped" : "");
}

}  // namespace

TEST_CASE("GPT-2's logits are PyTorch's") {
  check_logits<LogitsOf<whole>>(given);
  check_logits<LogitsOf<sliced>>(given);
}
TEST_CASE("GPT-2's logits with dropout are PyTorch's") {
  check_dropped_logits<DroppedLogits<whole>>(given);
  check_dropped_logits<DroppedLogits<sliced>>(given);
}
TEST_CASE("GPT-2's loss, gradients and ten steps are PyTorch's") {
  check_steps<float, 0>();
  check_steps<double, 0>();
}
/// A kernel of an operation that is fused with no other.
template <const Operation& operation>
constexpr CpuKernels alone{&operation, [](const Call& call) {
                             Call own = call;
                             CpuDouble{}.kernel(operation, own)(own);
                           }};
TEST_CASE("fused operations give GPT-2 the bits of their parts, on a device that has them and on one that has not") {
  using Dropped = Step<float, sliced, 10>;
  static constexpr CpuKernels parts[]{alone<operation::add>, alone<operation::gelu>, alone<operation::gelu_derivative>};
  for (const Mesh& mesh : {Mesh{data = 1, tensor = 1}, Mesh{data = 2, tensor = 2}}) {
    INFO(text(mesh));
    const OwnedPlan fused = derive<Dropped>(mesh), unfused = derive(build_unfused<Dropped>(), mesh, {}, {});
    const Course expected = train<float>(*unfused, trained, [] { return CpuDouble{}; });
    for (const Course& course : {train<float>(*fused, trained, [] { return CpuDouble{}; }),
                                 train<float>(*fused, trained, [] { return CpuDouble{parts}; })}) {
      CHECK(course.losses == expected.losses);
      for (std::size_t i = 0; i < expected.first.size(); ++i) CHECK(course.first[i].data == expected.first[i].data);
    }
    CHECK(fused->events.size() < unfused->events.size());
  }
}
TEST_CASE("GPT-2's loss, gradients and ten steps with dropout are PyTorch's") {
  check_steps<float, 10>();
  check_steps<double, 10>();
}
