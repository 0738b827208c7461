// What a plan says of a pipeline: each stage counts what it sends, receives are the other end.
#include <doctest/doctest.h>

#include <parallel/question/text.hpp>

#include "pipeline_models.hpp"

using namespace parallel;
using namespace parallel::axes;

namespace {

constexpr int m = 4, message = 4 * pipelines::batch * pipelines::context * pipelines::channels;
using Step =
    Accumulate<m, Training<pipelines::Gpt<float>, AdamW, pipelines::Tokens, pipelines::Tokens, pipelines::Tokens>>;
using Chunks = Pipelined<schedules::interleaved<2>, Step>;
using Whole =
    Pipelined<schedules::gpipe,
              Training<pipelines::Gpt<float>, AdamW, pipelines::Tokens, pipelines::Tokens, pipelines::Tokens>>;
using Apart = Pipelined<schedules::zero_bubble_h2, Step>;

template <class Program, int k, int stages>
constexpr const auto& on = plan<Program, Mesh{stage = stages}.on_stage(k)>;

// Beside the edges: forward the loss from the last stage, backward the gradient of the table, which the first and the
// last stage have.
static_assert(on<Step, 0, 4>.forward.collectives(stage) == m + 1 && on<Step, 0, 4>.backward.collectives(stage) == 1);
static_assert(on<Step, 1, 4>.forward.collectives(stage) == m + 1 && on<Step, 1, 4>.backward.collectives(stage) == m);
static_assert(on<Step, 3, 4>.forward.collectives(stage) == 1 && on<Step, 3, 4>.backward.collectives(stage) == m + 1);
static_assert(on<Step, 0, 4>.forward.calls(stage) == m + 1 && on<Step, 1, 4>.forward.calls(stage) == 2 * m + 1 &&
              on<Step, 3, 4>.forward.calls(stage) == m + 1);
static_assert(on<Step, 1, 4>.forward.messages(stage) == m * message + 4 && on<Step, 3, 4>.forward.messages(stage) == 4);
static_assert(on<Step, 1, 4>.forward.elements(stage) == m * message / 4 + 1 &&
              on<Step, 3, 4>.forward.elements(stage) == 1);
static_assert(on<Step, 1, 4>.backward.sent(stage) == m * message &&
              on<Step, 3, 4>.forward.largest_message(stage) == message);
static_assert(on<Step, 3, 4>.forward.collectives(stage, Collective::receive) == 0 &&
              on<Step, 3, 4>.forward.calls(CollectiveRow(Collective::receive)) == m);
// Of two chunks every stage but the ends sends both.
static_assert(on<Chunks, 0, 2>.forward.calls(CollectiveRow(Collective::send)) == 2 * m &&
              on<Chunks, 1, 2>.forward.calls(CollectiveRow(Collective::send)) == m);
static_assert(on<Chunks, 0, 2>.forward.calls(CollectiveRow(Collective::receive)) == m &&
              on<Chunks, 1, 2>.forward.calls(CollectiveRow(Collective::receive)) == 2 * m);

}  // namespace

TEST_CASE("the head of a stage's plan") {
  CHECK(
      head_of(on<Step, 0, 4>) ==
      "stage=4: 4 ranks; stage 0 of 4 with layers 0-1, one_forward_one_backward, 4 micro-batches, at most 4 in flight");
  CHECK(
      head_of(on<Step, 3, 4>) ==
      "stage=4: 4 ranks; stage 3 of 4 with layers 6-7, one_forward_one_backward, 4 micro-batches, at most 1 in flight");
  CHECK(head_of(on<Chunks, 1, 2>) ==
        "stage=2: 2 ranks; stage 1 of 2 with layers 2-3,6-7, interleaved<2>, 4 micro-batches, at most 3 in flight");
  CHECK(
      head_of(on<Apart, 1, 2>) ==
      "stage=2: 2 ranks; stage 1 of 2 with layers 4-7, zero_bubble_h2 with weights apart, 4 micro-batches, at most 3 in flight");
  CHECK(
      head_of(on<Balanced<Step>, 2, 3>) ==
      "stage=3: 3 ranks; stage 2 of 3 with layers 6-7, one_forward_one_backward, 4 micro-batches, at most 1 in flight");
  CHECK(head_of(on<Step, 0, 1>) == "stage=1: 1 ranks");
  CHECK(head_of(on<Whole, 1, 2>) ==
        "stage=2: 2 ranks; stage 1 of 2 with layers 4-7, gpipe, 1 micro-batch, at most 1 in flight: while one stage "
        "works the others wait, but for Accumulate<m, ...>");
  CHECK(head_of(on<Whole, 0, 1>) == "stage=1: 1 ranks");
  const std::string words = text(plan<Step, Mesh{stage = 4, data = 2}.on_stage(3)>);
  for (
      const char* row :
      {"plan for stage=4, data=2: 8 ranks; stage 3 of 4 with layers 6-7, ",
       "\nforward    4      receive         stage        f32[4/data, 8, 16] At<0>@stage            1 KiB      0 B        position, ",
       "blocks.6-7.up, pipeline_models.hpp:"})
    CHECK_MESSAGE(words.find(row) != std::string::npos, row, words);
}
