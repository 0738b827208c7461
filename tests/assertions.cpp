// What can be asserted of a plan, on the perceptron and the GPT of the run-time tests; and that what does not hold is
// found where it is. tests/assertions has the programs whose assertions fail.
#include <doctest/doctest.h>

#include "models.hpp"

namespace asserted {
using namespace models;

using Batch = Tensor<float, Shape<8 / data, 8>>;
constexpr auto& mlp = plan<Training<Regression<float, 8, 8>, AdamW, Batch, Batch>, Mesh{data = 2, tensor = 2}>;

// Figures, each told with what it was compared to.
static_assert(equals<mlp.forward.collectives(tensor), 2>);  // g of both perceptrons
// f of the second; nobody wants the gradient of x
static_assert(equals<mlp.backward.collectives(tensor), 1>);
static_assert(equals<mlp.backward.collectives(all_reduce(data)), 8>);  // a gradient for each parameter
static_assert(equals<mlp.backward.calls(all_reduce(data)), 7>);        // of the whole biases in one call
static_assert(equals<mlp.backward.collectives(all_gather()), 0>);
static_assert(equals<mlp.backward.elements(data), 2 * (8 * 8 + 8 + 8 * 8 + 8)>);
static_assert(equals<mlp.backward.messages(data), 4 * mlp.backward.elements(data)>);
static_assert(equals<mlp.largest_message(), 256>);
static_assert(equals<mlp.largest_message(tensor), 128>);
static_assert(equals<mlp.largest_message(all_to_all(tensor)), 0>);
static_assert(at_most<mlp.sent(data), 2_KiB>);
static_assert(at_most<mlp.peak_memory(), 1_MiB>);
static_assert(mlp.sent(data) <= 2_KiB && mlp.peak_memory() <= 1_GiB);
static_assert(at_least<mlp.calls(), 12>);
static_assert(equals<mlp.calls(), 12>);
static_assert(equals<mlp.memory.of(Use::optimizer_state), 2 * mlp.memory.of(Use::parameters)>);  // AdamW's two moments
// an all-reduce needs none
static_assert(equals<mlp.memory.of(Use::buffers), 0>);

// Kinds and axes. A finding is a condition, too.
static_assert(proven<mlp.uses_only(all_reduce(tensor), all_reduce(data))>);
static_assert(proven<mlp.never(all_gather(), reduce_scatter(), all_to_all())>);
static_assert(!mlp.never(tensor));
static_assert(proven<mlp.backward.never(all_reduce(tensor).of(1_KiB))>);
static_assert(!mlp.backward.uses_only(data));

// The whole plan, as somebody wrote it.
constexpr WrittenPlan written{
    .forward = {all_reduce(tensor).of(128), all_reduce(tensor).of(128), all_reduce(data).of(4)},
    .backward = {all_reduce(data), all_reduce(tensor).of(128), all_reduce(data), all_reduce(data), all_reduce(data),
                 all_reduce(data).of(2 * 8 * 4), all_reduce(data), all_reduce(data)},
    .optimizer = {all_reduce(tensor).of(8)}};
static_assert(proven<mlp.is(written)>);
static_assert(proven<mlp.forward.is(all_reduce(tensor), all_reduce(tensor), all_reduce(data))>);

// What contradicts, and where.
static_assert(mlp.never(sequence).of == Finding::Of::foreign && !mlp.never(sequence));
constexpr Finding used = mlp.never(all_reduce(tensor));
static_assert(used.of == Finding::Of::never && used.phase == Phase::forward && used.found.calls == 1 &&
              used.found.bytes == 128);
static_assert(used.member == "first.down_bias" && used.line > 0);
constexpr Finding another = mlp.uses_only(all_reduce(tensor));
static_assert(another.of == Finding::Of::uses_only && another.found.axes == AxisList{&data} &&
              another.member == "second.down_bias");
constexpr Finding order = mlp.forward.is(all_reduce(tensor), all_reduce(data), all_reduce(tensor));
static_assert(order.of == Finding::Of::is && order.row == 2 && order.expected.axes == AxisList{&data} &&
              order.found.axes == AxisList{&tensor});
constexpr Finding kind = mlp.forward.is(all_reduce(tensor), reduce_scatter(tensor), all_reduce(data));
static_assert(kind.row == 2 && kind.expected.collective == Collective::reduce_scatter &&
              kind.found.collective == Collective::all_reduce);
constexpr Finding bytes = mlp.forward.is(all_reduce(tensor), all_reduce(tensor).of(127), all_reduce(data));
static_assert(bytes.row == 2 && bytes.expected.bytes == 127 && bytes.found.bytes == 128);
constexpr Finding times = mlp.forward.is(2 * all_reduce(tensor), all_reduce(data));
static_assert(times.row == 1 && times.expected.calls == 2 && times.found.calls == 1);
constexpr Finding missing = mlp.optimizer.is();
static_assert(missing.row == 1 && missing.expected.calls == 0 && missing.found.bytes == 8);
constexpr Finding absent = mlp.optimizer.is(all_reduce(tensor), all_reduce(data));
static_assert(absent.row == 2 && absent.phase == Phase::optimizer && absent.expected.calls == 1 &&
              absent.found.calls == 0);
constexpr Finding first = mlp.is({});
static_assert(first.phase == Phase::forward && first.row == 1);
static_assert(mlp.is({.forward = written.forward, .optimizer = written.optimizer}).phase == Phase::backward);

// Three axes, layers in a loop, and calls on two axes at once.
constexpr models::Sizes four = multiples_of(4);
using Tokens = Gpt<float, four>::Tokens;
constexpr auto& deep =
    plan<Training<Gpt<float, four>, AdamW, Tokens, Tokens>, Mesh{data = 2, tensor = 2, sequence = 2}>;
// the embedding
static_assert(
    proven<deep.forward.is(
        all_reduce(tensor), 2 * all_gather(sequence), 2 * all_gather(sequence),  // keys and values of two layers
        2 * all_reduce(tensor), 2 * all_reduce(tensor),              // attention and perceptron of two layers
        all_reduce(tensor), all_reduce(tensor), all_reduce(tensor),  // the vocabulary's cross entropy
        all_reduce(sequence, data))>);                               // the loss, axes in any order
// two calls, one in each layer
static_assert(!deep.forward.is(all_reduce(tensor), all_gather(sequence), all_gather(sequence)));
// the loss is on both
static_assert(proven<deep.forward.uses_only(all_reduce(tensor), all_reduce(data), sequence)>);
static_assert(!deep.forward.uses_only(all_reduce(tensor), all_reduce(data), all_gather(sequence)));
static_assert(proven<deep.never(all_gather(tensor), reduce_scatter(tensor), all_gather(data), reduce_scatter(data),
                                all_to_all())>);
static_assert(proven<deep.forward.never(reduce_scatter())> &&
              proven<deep.optimizer.uses_only(all_reduce(tensor).of(8))>);
static_assert(equals<deep.forward.collectives(all_reduce(data, sequence)), 1>);
static_assert(equals<deep.backward.sent(all_gather(sequence)), 64>);

// A ring of three ranks sends parts of bytes: no limit is kept or broken by rounding.
using Thirds = Tensor<double, Shape<3 / data, 3>>;
constexpr auto& thirds = plan<Evaluation<Regression<double, 3, 3>, Thirds, Thirds>, Mesh{data = 3, tensor = 1}>;
static_assert(equals<thirds.sent(data), 2 * 8 * 2 / 3.0>);  // the loss
static_assert(at_most<thirds.sent(data), 10.7> && at_least<thirds.sent(data), 10.6> && at_least<thirds.sent(data), 10>);
static_assert(assertion::Figure(7.9999999999) == assertion::Figure(8) &&
              assertion::Figure(8.0000000001) == assertion::Figure(8));
static_assert(assertion::Figure(7.999) < assertion::Figure(8) && assertion::Figure(8.001) > assertion::Figure(8));
static_assert(assertion::Figure(2 * (2 / 3.0) * 3e12) == assertion::Figure(4'000'000'000'000));

static_assert(5_KiB == 5 * 1024 && 5_MiB == 1024 * 5_KiB && 1_GiB == 1024 * 1_MiB);
}  // namespace asserted

TEST_CASE("a plan of start-up answers as the compiler's") {
  using namespace asserted;
  const OwnedPlan derived = derive<Training<Regression<float, 8, 8>, AdamW, Batch, Batch>>(Mesh{data = 2, tensor = 2});
  CHECK(derived->is(written));
  CHECK(derived->uses_only(all_reduce(tensor), all_reduce(data)));
  CHECK_FALSE(derived->never(all_reduce(tensor)));
  // nothing on tensor
  CHECK_FALSE(derive<Training<Regression<float, 8, 8>, AdamW, Batch, Batch>>(Mesh{data = 2, tensor = 1})->is(written));
}
