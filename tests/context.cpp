// Attention over a sequence that several ranks share: loss and all gradients are those of one rank.
#include "context.hpp"

#include <map>

namespace {

using namespace context_parallel;

const Mesh meshes[] = {Mesh{sequence = 1},
                       Mesh{sequence = 2},
                       Mesh{sequence = 3},
                       Mesh{sequence = 4},
                       Mesh{data = 2, sequence = 2},
                       Mesh{sequence = 2, tensor = 2},
                       Mesh{tensor = 3, sequence = 2}};

template <Context how>
void check() {
  const std::vector<Array> one = outputs<All<Context::none, Whole>::Step>(Mesh{data = 1});
  REQUIRE(one.size() == 2 + 27 + 5);
  for (const Array& a : one) {
    double most = 0;
    for (const double x : a.data) most = std::max(most, std::abs(x));
    CHECK(most > 1e-7);
  }
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    const std::vector<Array> many = outputs<typename All<how, OnSequence>::Step>(mesh);
    REQUIRE(many.size() == one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      INFO("output " << i);
      CHECK(lockstep::difference(many[i], one[i]) < 1e-10);
    }
  }
}

/// What every rank's communicators were asked, and what the plan says.
template <class Step>
void check_record(const Mesh& mesh) {
  INFO(text(mesh));
  const OwnedPlan plan = derive<Step>(mesh);
  std::vector<int> differ(static_cast<std::size_t>(mesh.ranks()), -1);
  run_threads(mesh.ranks(), [&](Threads& world) {
    under_test::Parameters parameters(plan, world.rank(), 5);
    Executor<Threads, under_test::Device> executor(plan, world, parameters);
    std::map<std::string, std::vector<Record>> records;
    executor.each_group([&](const std::string& axes, Threads& group) { group.record(&records[axes]); });
    feed<double>(executor);
    executor.scalar("clip_norm", 0);
    executor.run();
    int& wrong = differ[static_cast<std::size_t>(world.rank())] = 0;
    for (const auto& group : records)
      wrong += group.second != program::planned(plan, [&](const std::string& asked) { return asked == group.first; });
  });
  for (const int wrong : differ) CHECK(wrong == 0);
}

/// In bf16, of one large gradient and many small ones each element of v gets the sum.
template <Context how>
struct Summed {
  constexpr auto operator()(Distributed auto q, Distributed auto k, Distributed auto v, Distributed auto weight) const {
    return sum(cast<float>(attention<false, how>(cast<bfloat16>(q), cast<bfloat16>(k), cast<bfloat16>(v))) * weight);
  }
};
template <Context how>
void check_half(int ranks) {
  constexpr int positions = 128;
  using Dims = Shape<1, positions / sequence, 1, 1>;
  using Given = Tensor<float, Dims>;
  using Step = Training<Summed<how>, KeepGradients, Given, Given, Wanted<float, Dims>, Given>;
  const std::vector<float> zero(positions), one(positions, 1.0f);
  std::vector<float> weight(positions, positions / 500.0f);
  weight[0] = positions;
  const std::vector<Array> found = program::outputs<Step>(Mesh{sequence = ranks}, [&](auto& executor) {
    executor.input(0, zero);
    executor.input(1, zero);
    executor.input(2, one);
    executor.input(3, weight);
  });
  for (const double x : found.back().data) CHECK(x == doctest::Approx(1 + 127 / 500.0).epsilon(1.0 / 256));
}

}  // namespace

TEST_CASE("in bf16 gradients that come around are added up in float") {
  for (const int ranks : {1, 2, 8, 32}) {
    INFO(ranks << " ranks");
    check_half<Context::ring>(ranks);
    check_half<Context::gathered>(ranks);
  }
}
TEST_CASE("keys and values that come around a ring") { check<Context::ring>(); }
TEST_CASE("keys and values that are gathered") { check<Context::gathered>(); }
TEST_CASE("queries, keys and values that are brought to the heads") { check<Context::ulysses>(); }

TEST_CASE("what communicators are asked is the plan") {
  for (const Mesh& mesh : {Mesh{sequence = 3}, Mesh{data = 2, sequence = 4}}) {
    check_record<All<Context::ring, OnSequence>::Step>(mesh);
    check_record<All<Context::ulysses, OnSequence>::Step>(mesh);
  }
}
