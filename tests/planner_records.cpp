// What a run records, laid over its plan: a right run is never refused, a wrong one always. Random programs, the models
// and a pipeline run; then each record is changed in every way that a wrong run could have written it.
#include <filesystem>
#include <fstream>
#include <functional>

#include <doctest/doctest.h>

#include <parallel/model/bert.hpp>
#include <parallel/model/encoder_decoder.hpp>
#include <parallel/model/gpt2.hpp>
#include <parallel/model/llama.hpp>

#include "../tools/planner/overlay.hpp"
#include "../tools/planner/source.hpp"
#include "pipeline_training.hpp"
#include "random_fusions.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using planner::RankRecord;
using planner::Recorded;

namespace {

constexpr int steps = 2;

/// What the ranks of a run recorded, each with its plan.
struct Run {
  std::vector<OwnedPlan> plans{};
  std::vector<RankRecord> records{};
};

/// Runs `steps` steps on threads, by a trainer where the program is a training. `feed(executor, plan)` gives the
/// inputs.
template <class Feed>
Run ran(const Graph& graph, const Mesh& mesh, bool trained, Feed feed) {
  const planner::Scratch folder;
  const std::string file = (folder.path() / "record").string();
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = pipelines::plan_of(graph, mesh, world.rank());
    Recording recording(file, plan, world.rank(), steps);
    under_test::Parameters parameters(plan, world.rank(), 5);
    if (trained) {
      Trainer<Threads, under_test::Device> trainer(plan, world, parameters, {.beta2 = 0.99, .clip_norm = 1}, 3);
      trainer.executor().record(recording);
      feed(trainer.executor(), *plan);
      for (int s = 0; s < steps; ++s) trainer.step(1e-3);
    } else {
      Executor<Threads, under_test::Device> executor(plan, world, parameters);
      executor.record(recording);
      feed(executor, *plan);
      for (int s = 0; s < steps; ++s) executor.run();
    }
    recording.write();
  });
  Run run;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    run.plans.push_back(pipelines::plan_of(graph, mesh, rank));
    run.records.push_back(planner::read_record(file, rank));
  }
  return run;
}
/// Every input gets numbers: whole ones are 0 or 1, which are tokens, segments and masks alike.
const auto numbers = [](auto& executor, const Plan& plan) {
  int input = 0;
  for (const Member& m : plan.graph.members) {
    if (m.role != Role::input) continue;
    const auto stream = static_cast<std::uint64_t>(input) + 1;
    if (m.type.dtype == DType::i32)
      executor.input(input++, program::numbers<int>(m.type.layout.elements(), stream, 2));
    else if (m.type.dtype == DType::f64)
      executor.input(input++, program::numbers<double>(m.type.layout.elements(), stream));
    else
      executor.input(input++, program::numbers<float>(m.type.layout.elements(), stream));
  }
};

bool same_call(const Recorded& a, const Recorded& b) {
  return a.what == b.what && a.axes == b.axes && a.ranks == b.ranks && a.dtype == b.dtype && a.bytes == b.bytes;
}
bool same_event(const Recorded& a, const Recorded& b) {
  return a.event == b.event && a.node == b.node && same_call(a, b);
}
using Events = std::vector<Recorded>;
bool same(const Events& a, const Events& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_event); }

bool update(const Plan& plan, const Recorded& r) {
  if (r.event != "compute") return false;
  const Node& node = plan.graph.node(r.node);
  return node.operation->updates && node.phase == Phase::optimizer;
}

/// The one definition of a right run, from one that was right: every step from the first on has all events, or all but
/// the updates, where the program skips them if its gradients are no finite numbers.
class Right {
 public:
  Right(const Plan& plan, const RankRecord& record) {
    for (const Recorded& r : record.lines)
      if (r.step == record.lines.front().step) whole_.push_back(r);
    if (plan.graph.commit < 0) return;
    for (const Recorded& r : whole_) {
      if (!update(plan, r)) skipped_.push_back(r);
    }
  }
  const Events& step() const { return whole_; }
  bool is(const Events& lines) const {
    int step = 0;
    for (auto at = lines.begin(); at != lines.end();) {
      if (at->step != ++step) return false;
      const auto next = std::find_if(at, lines.end(), [&](const Recorded& r) { return r.step != at->step; });
      if (const Events one(at, next); !same(one, whole_) && (skipped_.empty() || !same(one, skipped_))) return false;
      at = next;
    }
    return true;
  }

 private:
  Events whole_{}, skipped_{};
};

struct Counts {
  int refused = 0, right = 0;
};

/// Changes one rank's record in every way and asks of each whether it is refused.
class Changing {
 public:
  Changing(const Plan& plan, const RankRecord& record, Counts& counts)
      : plan_(plan), record_(record), right_(plan, record), counts_(counts) {}

  /// Every `each`-th event is changed.
  void run(std::size_t each) {
    judge("unchanged", [](Events&) {});
    judge("without the first step", [](Events& e) { std::erase_if(e, [](const Recorded& r) { return r.step == 1; }); });
    judge("a step later", [](Events& e) {
      for (Recorded& r : e) r.step += r.step == 2 ? 1 : 0;
    });
    const std::size_t all = record_.lines.size();
    for (std::size_t i = 0; i < all; i += each) {
      judge("skipped", i, [&](Events& e) { e.erase(at(e, i)); });
      judge("twice", i, [&](Events& e) { e.insert(at(e, i), Recorded(e[i])); });
      judge("the record ends before", i, [&](Events& e) { e.resize(std::max<std::size_t>(i, 1)); });
      judge("of another node", i, [&](Events& e) { ++e[i].node; });
      judge("of another step", i, [&](Events& e) { ++e[i].step; });
      judge("another event", i, [&](Events& e) { e[i].event = e[i].event == "wait" ? "start" : "wait"; });
      judge("another operation", i,
            [&](Events& e) { e[i].what = e[i].what == "all_gather" ? "all_reduce" : "all_gather"; });
      if (i + 1 < all)
        judge("exchanged with the next", i, [&](Events& e) {
          std::swap(e[i], e[i + 1]);
          std::swap(e[i].step, e[i + 1].step);
        });
      if (record_.lines[i].event == "compute") continue;
      judge("half", i, [&](Events& e) { e[i].bytes /= 2; });
      judge("a byte longer", i, [&](Events& e) { ++e[i].bytes; });
      judge("of a maximum", i, [&](Events& e) { e[i].what += "_max"; });
      judge("on other axes", i, [&](Events& e) { e[i].axes += "+other"; });
      judge("among other ranks", i, [&](Events& e) { ++e[i].ranks; });
      judge("of another type", i, [&](Events& e) { e[i].dtype = e[i].dtype == "f32" ? "f64" : "f32"; });
      for (std::size_t j = i + 1; j < std::min(all, i + 12 * each); ++j)
        if (record_.lines[j].event == record_.lines[i].event)
          judge("calls exchanged", i, [&](Events& e) { exchange_calls(e[i], e[j]); });
    }
    skip_updates();
  }

 private:
  static Events::iterator at(Events& e, std::size_t i) { return e.begin() + static_cast<std::ptrdiff_t>(i); }
  static void exchange_calls(Recorded& a, Recorded& b) {
    std::swap(a.what, b.what);
    std::swap(a.axes, b.axes);
    std::swap(a.ranks, b.ranks);
    std::swap(a.dtype, b.dtype);
    std::swap(a.bytes, b.bytes);
  }
  /// A step without its updates, without one of them, without all but one.
  void skip_updates() {
    const auto drop = [&](const std::function<bool(int)>& dropped) {
      return [=, this](Events& e) {
        int number = 0;
        std::erase_if(
            e, [&](const Recorded& r) { return r.step == e.back().step && update(plan_, r) && dropped(number++); });
      };
    };
    judge("without updates", drop([](int) { return true; }));
    judge("without the first update", drop([](int number) { return number == 0; }));
    judge("with the first update", drop([](int number) { return number > 0; }));
  }

  void judge(const char* how, std::size_t i, const std::function<void(Events&)>& change) {
    INFO("event " << i << ", " << planner::said(record_.lines[i]));
    judge(how, change);
  }
  void judge(const char* how, const std::function<void(Events&)>& change) {
    RankRecord changed = record_;
    change(changed.lines);
    const std::string differs = planner::lay(plan_, changed).differs;
    INFO(how << ": " << differs);
    const bool right = right_.is(changed.lines);
    if (differs.empty() != right) CHECK(differs.empty() == right);
    ++(right ? counts_.right : counts_.refused);
  }

  const Plan& plan_;
  const RankRecord& record_;
  Right right_;
  Counts& counts_;
};

/// All records of a run, and each as if it were of another rank.
void check(const Run& run, std::size_t each, Counts& counts) {
  for (std::size_t rank = 0; rank < run.records.size(); ++rank) {
    INFO("rank " << rank);
    Changing(run.plans[rank], run.records[rank], counts).run(each);
    for (std::size_t other = 0; other < run.records.size(); ++other)
      CHECK(planner::lay(run.plans[rank], run.records[other]).differs.empty() ==
            same(run.records[rank].lines, run.records[other].lines));
  }
}

using Tokens = Tensor<int, Shape<4 / data, 8>>;
constexpr Dim h = 16, heads = 4 / tensor, inner = 32 / tensor, vocabulary = 32 / tensor;
template <class Model, class... Input>
using Step = Training<Model, AdamW, Input...>;

}  // namespace

TEST_CASE("records of random programs are right as they are, and wrong however they are changed") {
  Counts counts;
  for (unsigned seed = 0; seed < 30; ++seed) {
    INFO("seed " << seed);
    const Graph graph = fuse(random_fusions::Program(seed).trace.graph);
    check(ran(graph, Mesh{random_fusions::ranks = 2}, false, numbers), 3, counts);
  }
  MESSAGE(counts.right << " right records, " << counts.refused << " wrong");
  CHECK(counts.refused > 10'000);
  CHECK(counts.right > 120);
}

TEST_CASE("records of models are right as they are, and wrong however they are changed") {
  using Gpt2 = models::Gpt2<models::Gpt2Sizes{.context = 8 / tensor,
                                              .channels = h.size,
                                              .heads = heads,
                                              .inner = inner,
                                              .vocabulary = vocabulary,
                                              .classes = 30,
                                              .layers = 2}>;
  using Llama = models::Llama<models::LlamaSizes{.context = 8,
                                                 .channels = h.size,
                                                 .heads = heads,
                                                 .key_heads = 2 / tensor,
                                                 .inner = inner,
                                                 .vocabulary = vocabulary,
                                                 .layers = 2}>;
  using Bert = models::Bert<models::BertSizes{.context = 8,
                                              .channels = h.size,
                                              .heads = heads,
                                              .inner = inner,
                                              .vocabulary = vocabulary,
                                              .classes = 30,
                                              .layers = 2}>;
  using Both = models::EncoderDecoder<models::EncoderDecoderSizes{.context = 8,
                                                                  .channels = h.size,
                                                                  .heads = heads,
                                                                  .inner = inner,
                                                                  .vocabulary = vocabulary,
                                                                  .classes = 30,
                                                                  .layers = 2}>;
  Counts counts;
  const auto model = [&]<class Program>() {
    check(ran(build<Program>(), Mesh{data = 2, tensor = 2}, true, numbers), 5, counts);
  };
  model.operator()<Step<Gpt2, Tokens, Tokens>>();
  model.operator()<Step<Llama, Tokens, Tokens>>();
  model.operator()<Step<Bert, Tokens, Tokens, Tokens, Tokens>>();
  model.operator()<Step<Both, Tokens, Tokens, Tokens, Tokens>>();
  MESSAGE(counts.right << " right records, " << counts.refused << " wrong");
  CHECK(counts.refused > 10'000);
  CHECK(counts.right > 16);
}

TEST_CASE("records of a pipeline's stages are right as they are, and wrong however they are changed") {
  Counts counts;
  check(ran(build<pipelines::Train<double>>(), Mesh{stage = 2, data = 2}, true, numbers), 11, counts);
  CHECK(counts.refused > 1'000);
}

TEST_CASE("a record is empty until its run has written it") {
  const planner::Scratch folder;
  const std::string file = (folder.path() / "record").string();
  const OwnedPlan plan = derive(fuse(random_fusions::Program(0).trace.graph), Mesh{random_fusions::ranks = 2}, {}, {});
  std::ofstream(file + ".0") << "parallel record 2\n";
  std::ofstream(file + ".1") << "parallel record 2\n";
  const Recording begun(file, plan, 0);
  CHECK_THROWS_WITH_AS(planner::read_record(file, 0),
                       doctest::Contains("record.0' is empty: its run has not written it"), Failure);
  CHECK(std::filesystem::file_size(file + ".1") > 0);
}
