// Mistakes of tensor and sequence parallelism that were reported against real systems, one case each: here a mistake
// cannot be written, because a type or a mesh is refused, or it cannot be made, because no program says what it got
// wrong; then the numbers are those of one rank.
#include <doctest/doctest.h>

#include <parallel/model/gpt2.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using lockstep::Array;

namespace {

constexpr int batch = 8, context = 8, classes = 37, ignored = -1;
constexpr models::Gpt2Sizes tensor_parallel{.context = context,
                                            .channels = 16,
                                            .heads = 4 / tensor,
                                            .inner = 32 / tensor,
                                            .vocabulary = models::padded(classes, 8) / tensor,
                                            .classes = classes,
                                            .layers = 2,
                                            .dropped = 0,
                                            .ignored = ignored};
constexpr models::Gpt2Sizes with(Dim positions, int dropped = 0) {
  models::Gpt2Sizes n = tensor_parallel;
  n.context = positions;
  n.dropped = dropped;
  return n;
}
constexpr models::Gpt2Sizes sequence_parallel = with(context / tensor);

template <int examples>
using Tokens = Tensor<int, Shape<examples / data, context>>;
template <models::Gpt2Sizes n, int micro_batches = 1>
using Step = Accumulate<micro_batches, Training<models::Gpt2<n, double>, KeepGradients, Tokens<batch / micro_batches>,
                                                Tokens<batch / micro_batches>>>;

const Mesh one_rank{data = 1};
const Mesh meshes[] = {Mesh{data = 2},
                       Mesh{data = 4},
                       Mesh{tensor = 2},
                       Mesh{tensor = 4},
                       Mesh{data = 2, tensor = 2},
                       Mesh{data = 2, tensor = 4}};

/// Targets of which `none` say nothing, almost all of them in the first half of the batch: no rank has as many that
/// count as another.
std::vector<int> targets(int none) {
  std::vector<int> all = program::numbers<int>(batch * context, 2, classes);
  for (int i = 0; i < none; ++i) all[static_cast<std::size_t>(i + (i > 10 ? 7 : 0))] = ignored;
  return all;
}

struct Feed {
  int none = 0;        ///< targets that are ignored
  double padding = 0;  ///< what stands in the table's rows that are no class
  int seed = 3;
};
/// The loss, the norm of all gradients, and every gradient.
template <class Program>
std::vector<Array> trained(const Mesh& mesh, Feed feed = {}) {
  const OwnedPlan plan = derive<Program>(mesh);
  return program::outputs(plan, [&](auto& executor, under_test::Parameters& parameters) {
    program::randomize<double>(plan, executor.rank(), parameters);
    constexpr std::int64_t rows = tensor_parallel.vocabulary.size, channels = tensor_parallel.channels;
    std::vector<double> table = program::numbers<double>(rows * channels, 1);
    std::fill(table.begin() + classes * channels, table.end(), feed.padding);
    parameters.set(plan, executor.rank(), "token", table);
    executor.input(0, program::numbers<int>(batch * context, 1, classes));
    executor.input(1, targets(feed.none));
    if (executor.reads("seed")) executor.scalar("seed", feed.seed);
  });
}
/// The position of a parameter's gradient among the outputs.
template <class Program>
std::size_t gradient_of(std::string_view path) {
  const OwnedPlan plan = derive<Program>(one_rank);
  std::size_t at = 2;
  for (const Member& m : plan->graph.members) {
    if (m.role != Role::parameter) continue;
    if (plan->graph.path(m) == path) return at;
    ++at;
  }
  FAIL("there is no parameter " << path);
  return 0;
}
void check_same(const std::vector<Array>& many, const std::vector<Array>& one) {
  REQUIRE(many.size() == one.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    INFO("output " << i);
    CHECK(lockstep::difference(many[i], one[i]) < 1e-11);
  }
}
/// Every output on every mesh is one rank's.
template <class Program>
void check_all(const Feed& feed = {}) {
  const std::vector<Array> one = trained<Program>(one_rank, feed);
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    check_same(trained<Program>(mesh, feed), one);
  }
}
double sum_of_squares(const Array& a) {
  double sum = 0;
  for (const double x : a.data) sum += x * x;
  return sum;
}
template <class Program>
constexpr std::int64_t reductions(const CollectiveRow& which) {
  return plan<Program, Mesh{data = 2, tensor = 2}>.backward.calls(which);
}
}  // namespace

// A norm between products sees a slice of the sequence, so the gradients of its gain and shift are terms. Nobody has to
// remember to reduce them.
TEST_CASE("Megatron-LM #443, #474, #1446: gradients of norms under sequence parallelism are reduced") {
  using Program = Step<sequence_parallel>;
  // gain and shift: two norms in each of two layers, and the last
  constexpr std::int64_t bytes = sizeof(double) * 2 * 16 * (2 * 2 + 1);
  static_assert(reductions<Program>(all_reduce(data, tensor).of(bytes)) == 1);
  // without it they are whole on tensor
  static_assert(reductions<Step<tensor_parallel>>(all_reduce(data, tensor)) == 0);
  const std::vector<Array> one = trained<Program>(one_rank), many = trained<Program>(Mesh{tensor = 4});
  for (const char* path : {"blocks.*.norm1.gain", "blocks.*.norm1.shift", "blocks.*.norm2.gain", "blocks.*.norm2.shift",
                           "norm.gain", "norm.shift"}) {
    INFO(path);
    CHECK(sum_of_squares(one[gradient_of<Program>(path)]) > 1e-6);
    CHECK(lockstep::difference(many[gradient_of<Program>(path)], one[gradient_of<Program>(path)]) < 1e-11);
  }
  check_all<Program>();
}

// A mean divides by what is counted in the whole batch; a rank's own count is nowhere.
TEST_CASE("torchtitan #2972, DeepSpeed #966: gradients are scaled by the targets that count on all ranks together") {
  check_all<Step<tensor_parallel>>({.none = 15});
  check_all<Step<sequence_parallel>>({.none = 15});
  check_all<Step<sequence_parallel, 2>>({.none = 15});
  for (const int none : {0, 15}) {  // micro-batches, too, weigh as many targets as they have
    const std::vector<Array> at_once = trained<Step<tensor_parallel>>(one_rank, {.none = none});
    check_same(trained<Step<tensor_parallel, 2>>(Mesh{data = 2, tensor = 2}, {.none = none}), at_once);
  }
}

TEST_CASE("pytorch #162692: what does not divide is refused, with the degrees that do, and never averaged") {
  const auto refused = [](const Mesh& mesh, const std::string& ending) {
    try {
      derive<Step<sequence_parallel>>(mesh);
      FAIL("accepted: " << text(mesh));
    } catch (const MeshRefused& why) {
      CHECK(why.reason == Reason::not_divisible);
      CHECK_MESSAGE(std::string_view(why.what()).ends_with(ending), why.what());
    }
  };
  refused(Mesh{data = 3}, "of i32[8/data, 8]; valid extents of data: 1, 2, 4, 8");
  refused(Mesh{tensor = 3}, "; valid extents of tensor: 1, 2, 4");
  // the vocabulary, the perceptron and the sequence would do with eight: the heads not
  refused(Mesh{tensor = 8}, "; valid extents of tensor: 1, 2, 4");
  refused(Mesh{tensor = 5}, "; valid extents of tensor: 1, 2, 4");  // only the vocabulary would do
}

// A whole bias beside a pending sum becomes a term on one rank, zero on the others. A bias that is pending itself
// cannot be declared.
TEST_CASE("torchtitan #4332: a bias is added to a pending sum once") {
  using Pending = Tensor<float, Shape<4, 6>, On<tensor, Partial>>;
  constexpr Arguments sum_and_bias{{Pending::type, Tensor<float, Shape<6>>::type}, {Kind::activation, Kind::parameter}};
  static_assert(infer(operation::add, sum_and_bias).results[0].layout.on(&tensor) == Partial);
  // how it joins; Broadcast, its other way to be whole, is masked too
  static_assert(collective(Invariant, Partial) == Collective::mask);
  static_assert(collective(Broadcast, Partial) == Collective::mask);
  const std::vector<Array> one = trained<Step<tensor_parallel>>(one_rank);
  for (const char* path : {"blocks.*.attention.projection_bias", "blocks.*.mlp.down_bias"})
    CHECK(sum_of_squares(one[gradient_of<Step<tensor_parallel>>(path)]) > 1e-6);
  check_all<Step<tensor_parallel>>();
}

// The table is one value with two uses. Their gradients are added where they arise, and the sum is reduced.
TEST_CASE("Megatron-LM #844: gradients of tied embeddings are added first, then reduced once") {
  constexpr std::int64_t table = sizeof(double) * 40 / 2 * 16;
  static_assert(reductions<Step<tensor_parallel>>(all_reduce(data).of(table)) == 1);
  static_assert(reductions<Step<sequence_parallel, 2>>(all_reduce(data).of(table)) == 1);  // with micro-batches too
  const std::size_t token = gradient_of<Step<tensor_parallel>>("token");
  CHECK(sum_of_squares(trained<Step<tensor_parallel>>(one_rank)[token]) > 1e-6);
  check_all<Step<tensor_parallel, 2>>();
}

// Rows of the table that are no class have logits as any other, but no operation reads them: neither the loss nor what
// is drawn (sampling.cpp).
TEST_CASE("padded vocabularies: what stands in the padding changes no bit") {
  const auto check = [](auto program, const Mesh& mesh) {
    using Program = decltype(program);
    const std::vector<Array> clean = trained<Program>(mesh, {.none = 5}),
                             garbage = trained<Program>(mesh, {.none = 5, .padding = 1e4});
    for (std::size_t i = 0; i < clean.size(); ++i) {
      INFO(text(mesh) << " output " << i);
      CHECK(garbage[i].data == clean[i].data);
    }
    const Array& table = garbage[gradient_of<Program>("token")];
    for (std::size_t i = classes * 16; i < table.data.size(); ++i) CHECK(table.data[i] == 0);
  };
  check(Step<tensor_parallel>{}, one_rank);
  for (const Mesh& mesh : meshes) {
    check(Step<tensor_parallel>{}, mesh);
    check(Step<sequence_parallel>{}, mesh);
  }
}

// A square sum of what is split is a term; of what every rank has it is whole, and joins the total on one rank.
TEST_CASE("the gradient norm counts what ranks have alike once") {
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    const std::vector<Array> outputs = trained<Step<sequence_parallel>>(mesh);
    double squares = 0;
    for (std::size_t i = 2; i < outputs.size(); ++i) squares += sum_of_squares(outputs[i]);
    CHECK(outputs[1].data[0] == doctest::Approx(std::sqrt(squares)).epsilon(1e-12));
  }
}

// Masks and first values are drawn by their position in the whole tensor.
TEST_CASE("pytorch #168058: random numbers do not depend on the layout") {
  using Dropped = Step<with(context, 50)>;
  using Sliced = Step<with(context / tensor, 50)>;
  check_all<Dropped>();
  check_all<Sliced>();
  const std::vector<Array> one = trained<Dropped>(one_rank);
  check_same(trained<Sliced>(Mesh{tensor = 4}), one);
  CHECK(lockstep::difference(trained<Dropped>(one_rank, {.seed = 4})[0], one[0]) > 1e-3);  // there is dropout

  const auto begun = [](const Mesh& mesh) {
    const OwnedPlan plan = derive<Sliced>(mesh);
    std::vector<double> whole(2 * 16 * 3 * 4 * 4);
    run_threads(mesh.ranks(), [&](Threads& world) {
      const under_test::Parameters parameters(plan, world.rank(), 1);
      for (int rank = 0; rank < world.size(); ++rank) {
        world.barrier();
        if (rank == world.rank()) parameters.get(*plan, rank, "blocks.*.attention.qkv", whole);
      }
    });
    return whole;
  };
  for (const Mesh& mesh : meshes) CHECK(begun(mesh) == begun(one_rank));
}

// Whether a gradient is a term or all of it is in its type, so that nothing is multiplied or divided by the ranks of an
// axis.
TEST_CASE("Megatron-LM #1464: gradients under a split sequence are not off by its ranks") {
  using Program = Step<with(context / sequence)>;
  const std::vector<Array> one = trained<Program>(one_rank, {.none = 15});
  for (const Mesh& mesh : {Mesh{sequence = 2}, Mesh{sequence = 4}, Mesh{data = 2, sequence = 2, tensor = 2}}) {
    INFO(text(mesh));
    check_same(trained<Program>(mesh, {.none = 15}), one);
  }
  // The two ways to be whole are two types, and one never becomes the other by name: that is how a factor would come
  // in.
  constexpr Type differently = Tensor<float, Shape<4>, On<tensor, Broadcast>>::type,
                 alike = Tensor<float, Shape<4>>::type;
  static_assert(spelling::refused_move(differently, alike.layout).reason == Reason::never_invariant);
}
