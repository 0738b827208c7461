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
  REQUIRE(one.size() == 2 + 21 + 5);
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
    Parameters parameters(plan, world.rank(), 5);
    Executor<Threads, CpuDouble> executor(plan, world, parameters);
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

}  // namespace

TEST_CASE("keys and values that come around a ring") { check<Context::ring>(); }
TEST_CASE("keys and values that are gathered") { check<Context::gathered>(); }
TEST_CASE("queries, keys and values that are brought to the heads") { check<Context::ulysses>(); }

TEST_CASE("what communicators are asked is the plan") {
  for (const Mesh& mesh : {Mesh{sequence = 3}, Mesh{data = 2, sequence = 4}}) {
    check_record<All<Context::ring, OnSequence>::Step>(mesh);
    check_record<All<Context::ulysses, OnSequence>::Step>(mesh);
  }
}
