// What tools/plan advises: every mesh and schedule of so many ranks in the order of predicted steps, what does not fit,
// and why.
#include <limits>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include <parallel/cost/published_machines.hpp>

#include "../tools/planner/advice.hpp"
#include "pipeline_models.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using planner::Advice;
using planner::Candidate;
using planner::Question;

namespace {

using Gpt =
    Accumulate<8, Training<pipelines::Gpt<float>, AdamW, pipelines::Tokens, pipelines::Tokens, pipelines::Tokens>>;

template <Context how>
struct Around {
  Parameter<float, Shape<16, 3, 4, 4>> qkv{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const {
    const auto all = matmul(x, qkv);
    return mean(square(attention<true, how>(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all))));
  }
};
template <Context how>
using Attended = Training<Around<how>, Sgd, Tensor<float, Shape<2, 64 / sequence, 16>>>;

void ask(Advice& advice, const Graph& graph, const Question& question) {
  planner::advise(advice, graph, {&data, &tensor, &stage}, {}, question);
}

/// Nothing but products takes time, and what the link of one axis does.
Machine with_link(const char* axis, Link link) {
  Machine m;
  m.name = "made up";
  Rates r;
  r.products[static_cast<int>(DType::f32)] = 1e9;
  r.functions[static_cast<int>(DType::f32)] = 1e30;
  r.memory_bandwidth = 1e30;
  m.rates.push_back(r);
  m.links.push_back({axis, link});
  m.overlaps = true;
  return m;
}
const Candidate* find(const Advice& advice, const Mesh& mesh, std::string_view schedule = "") {
  for (const Candidate& c : advice.candidates)
    if (text(c.mesh) == text(mesh) && (schedule.empty() || (c.schedule != nullptr && c.schedule->name == schedule)))
      return &c;
  return nullptr;
}

}  // namespace

TEST_CASE("every mesh of so many ranks, once") {
  for (const int ranks : {1, 2, 7, 8, 12, 64}) {
    std::set<std::string> seen;
    for (const Mesh& mesh : planner::advising::meshes({&data, &tensor, &stage}, ranks)) {
      CHECK(mesh.ranks() == ranks);
      CHECK(seen.insert(text(mesh)).second);
      for (int i = 0; i < mesh.count; ++i) CHECK(mesh.axes[i].size > 1);
    }
    std::size_t expected = 0;
    for (int a = 1; a <= ranks; ++a)
      for (int b = 1; b <= ranks; ++b) expected += ranks % (a * b) == 0;
    CHECK(seen.size() == expected);
  }
}

TEST_CASE("all are predicted, in the order of their steps") {
  const Graph graph = build<Gpt>();
  Advice advice;
  ask(advice, graph, {8, machines::dgx_a100});
  std::set<std::string> meshes;
  double before = 0;
  for (const Candidate& c : advice.candidates) {
    const Graph scheduled = c.schedule == nullptr ? graph : with_schedule(graph, *c.schedule);
    const Prediction step = predict(scheduled, c.mesh, machines::dgx_a100);
    CHECK(c.step.seconds == step.seconds);
    CHECK(c.step.peak_memory() == step.peak_memory());
    CHECK(c.fits);
    CHECK(c.step.seconds >= before);
    CHECK((c.schedule != nullptr) == (c.mesh.extent(&stage) > 1));
    before = c.step.seconds;
    meshes.insert(text(c.mesh));
  }
  CHECK(meshes == std::set<std::string>{"stage=8", "data=2, stage=4", "data=4, stage=2", "tensor=2, stage=4",
                                        "tensor=4, stage=2", "data=2, tensor=2, stage=2", "data=4, tensor=2",
                                        "data=2, tensor=4"});
  REQUIRE(advice.impossible.size() == 2);
  CHECK(advice.impossible[0].why.starts_with("data=8 does not divide dimension 1 (4) of i32[8, 4/data, 8]"));
  CHECK(advice.impossible[1].why.starts_with(
      "tensor=8 does not divide dimension 3 (4) of f32[8/stage, 16, 3, 4/tensor, 4]"));
  // What can be interleaved is; what updates without waiting is another program.
  CHECK(find(advice, Mesh{data = 4, stage = 2}, "interleaved")->schedule->chunks > 1);
  CHECK(find(advice, Mesh{stage = 8}, "interleaved") == nullptr);
  for (const char* name : {"naive", "gpipe", "one_forward_one_backward", "zero_bubble_h1", "zero_bubble_h2"})
    CHECK(find(advice, Mesh{stage = 8}, name) != nullptr);
  for (const Schedule& s : planner::advising::schedules_for(graph)) CHECK(!s.asynchronous);
  CHECK(planner::advising::schedules_for(with_schedule(graph, schedules::pipedream)).size() == 1);
  // What is sent is the plan's.
  const Candidate* both = find(advice, Mesh{data = 4, tensor = 2});
  const OwnedPlan plan = derive(graph, Mesh{data = 4, tensor = 2}, {}, {});
  REQUIRE(both->sent.size() == 2);
  CHECK(both->sent[0] == plan->sent(data));
  CHECK(both->sent[1] == plan->sent(tensor));
}

TEST_CASE("why a mesh is where it is") {
  const Graph graph = build<Gpt>();
  Advice slow_tensor, bubbles, small;
  ask(slow_tensor, graph, {4, with_link("tensor", {1e-3, 1e9})});
  CHECK(find(slow_tensor, Mesh{tensor = 4})->why.starts_with("tensor=4: waits for all_reduce "));
  CHECK(find(slow_tensor, Mesh{data = 4})->why.starts_with("computes"));
  CHECK(find(slow_tensor, Mesh{tensor = 4}) == &slow_tensor.candidates.back());

  ask(bubbles, graph, {8, with_link("data", {})});
  CHECK(find(bubbles, Mesh{stage = 8}, "naive")->why.starts_with("stage=8 with 8 micro-batches: bubble 8"));
  const std::string gpipe = find(bubbles, Mesh{stage = 8}, "gpipe")->why;
  // less than 7 of 15: the last stage has the head besides
  CHECK(gpipe.starts_with("stage=8 with 8 micro-batches: bubble 4"));

  Question tight{4, machines::dgx_a100, 300'000};
  ask(small, graph, tight);
  bool fitted = true, any = false;
  std::int64_t memory = 0;
  for (const Candidate& c : small.candidates) {
    CHECK(c.fits == (c.step.peak_memory() <= tight.memory));
    CHECK((fitted || !c.fits));  // those that fit stand first
    if (!c.fits) {
      CHECK(c.why.starts_with("does not fit in 293 KiB: "));
      CHECK(c.step.peak_memory() >= memory);
      memory = c.step.peak_memory();
      any = true;
    }
    fitted = c.fits;
  }
  CHECK(any);
  CHECK(small.candidates[0].fits);
}

TEST_CASE("other contexts are tried, and beside them what is stored where they do not fit alone") {
  const std::map<std::string, Graph> graphs{{"context gathered", build<Attended<Context::gathered>>()},
                                            {"context ring", build<Attended<Context::ring>>()},
                                            {"context ulysses", build<Attended<Context::ulysses>>()}};
  const std::vector<const Axis*> axes{&sequence};
  for (const auto& [own, graph] : graphs) {
    const auto asked = [&](Advice& advice, const Question& question) {
      std::vector<std::string> all;
      planner::advise(advice, graph, axes, {}, question, [&](const std::string& words, auto f) {
        all.push_back(words);
        const auto at = words.find("context ");
        f(at == std::string::npos ? graph : graphs.at(words.substr(at)), axes, std::vector<GraphView>{});
      });
      std::sort(all.begin(), all.end());
      CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
      return all;
    };
    Advice ample, none;
    CHECK(asked(ample, {4, machines::dgx_a100}) == std::vector<std::string>{"context gathered", "context ring",
                                                                            "context ulysses", "gradients sequence",
                                                                            "parameters sequence", "states sequence"});
    for (const auto& [words, other] : graphs) {
      const std::string annotation = "Context::" + words.substr(words.find(' ') + 1);
      const auto found = std::find_if(ample.candidates.begin(), ample.candidates.end(),
                                      [&](const Candidate& c) { return c.with == annotation; });
      REQUIRE(found != ample.candidates.end());
      CHECK(found->step.seconds == predict(other, Mesh{sequence = 4}, machines::dgx_a100).seconds);
    }
    const std::vector<std::string> tight = asked(none, {4, machines::dgx_a100, 1});
    for (const auto& entry : graphs)
      for (const char* stored : {"", "states sequence;", "gradients sequence;", "parameters sequence;"})
        CHECK(std::count(tight.begin(), tight.end(), stored + entry.first) == 1);
  }
  CHECK(planner::context_trials(build<Gpt>()).empty());  // no axis of it splits a sequence
}

TEST_CASE("advice as text and as JSON") {
  const Graph graph = build<Gpt>();
  Advice advice;
  const Question question{8, machines::dgx_a100, 300'000};
  ask(advice, graph, question);
  const std::string table = planner::advice_text(advice, "Gpt", question);
  CHECK(table.starts_with("Gpt\n8 ranks of dgx-a100, each with 293 KiB\n\n"));
  for (const char* words : {"\n1  ", "stage=8", "why\n", "Of each mesh with stages the fastest schedule that fits",
                            "These are no meshes of the program:\n  data=8 does not divide"})
    CHECK(table.find(words) != std::string::npos);
  const planner::Json json = planner::advice_json(advice, "Gpt", question);
  CHECK(json["schema"] == 1);
  CHECK(json["memory"] == 300'000);
  REQUIRE(json["candidates"].size() == advice.candidates.size());
  for (std::size_t i = 0; i < advice.candidates.size(); ++i) {
    CHECK(json["candidates"][i]["seconds"] == advice.candidates[i].step.seconds);
    CHECK(json["candidates"][i]["why"] == advice.candidates[i].why);
    CHECK(json["candidates"][i]["fits"] == advice.candidates[i].fits);
    CHECK(json["candidates"][i]["sent"].size() == static_cast<std::size_t>(advice.candidates[i].mesh.count));
  }
  CHECK(json["impossible"].size() == 2);
}

TEST_CASE(
    "annotations are tried with every mesh, and what makes no step shorter where something does not fit without") {
  const Graph graph = build<Gpt>(), stored = build<AllStored<Gpt, Stored<data>>>();
  const std::vector<const Axis*> axes{&data, &tensor, &stage};
  // of all that is tried this stands for each that stores parameters; what computes again does not compile
  const auto ask_with = [&](Advice& advice, const Question& question, std::vector<std::string>& words) {
    planner::advise(advice, graph, axes, {}, question, [&](const std::string& tried, auto f) {
      words.push_back(tried);
      if (tried == "parameters data") f(stored, axes, std::vector<GraphView>{});
    });
  };
  Advice plain, ample, tight;
  std::vector<std::string> of_ample, of_tight;
  ask(plain, graph, {4, machines::dgx_a100});
  ask_with(ample, {4, machines::dgx_a100}, of_ample);
  CHECK(of_ample == std::vector<std::string>{"states data", "gradients data", "parameters data"});
  CHECK(ample.tried == std::vector<std::string>{"AllStored<..., Stored<data>>"});
  CHECK(ample.refused.size() == 2);
  CHECK(ample.candidates.size() == 2 * plain.candidates.size());
  CHECK(ample.impossible.size() == plain.impossible.size());
  for (const Candidate& c : ample.candidates) {
    CAPTURE(text(c.mesh));
    const Graph& own = c.with.empty() ? graph : stored;
    const Graph scheduled = c.schedule == nullptr ? own : with_schedule(own, *c.schedule);
    const Prediction step = predict(scheduled, c.mesh, machines::dgx_a100);
    CHECK(c.step.seconds == step.seconds);
    CHECK(c.step.peak_memory() == step.peak_memory());
    const Candidate* as_is = nullptr;
    for (const Candidate& other : ample.candidates)
      if (other.with.empty() && planner::alike(c, other)) as_is = &other;
    REQUIRE(as_is != nullptr);
    CHECK(c.again == c.flops() / as_is->flops() - 1);
    CHECK((as_is != &c || c.again == 0));
  }
  // Each mesh has one row, and the order is that of steps.
  const auto best = planner::best_of_each_mesh(ample);
  CHECK(best.size() == planner::best_of_each_mesh(plain).size());
  for (std::size_t i = 1; i < best.size(); ++i) CHECK(best[i - 1]->step.seconds <= best[i]->step.seconds);

  ask_with(tight, {4, machines::dgx_a100, 1}, of_tight);
  std::vector<std::string> expected, without_host;
  for (const std::string zero : {"", "states ", "gradients ", "parameters "}) {
    const std::string on_data = zero.empty() ? "" : zero + "data", before = zero.empty() ? "" : on_data + ";",
                      too = before + (zero.empty() ? "parameters " : zero) + "host";
    for (std::vector<std::string>* all : {&expected, &without_host}) {
      if (!on_data.empty()) all->push_back(on_data);
      all->push_back(before + "recompute");
      all->push_back(before + "recompute collectives");
    }
    expected.push_back(too);
    expected.push_back(too + ";recompute;keep on host");
  }
  CHECK(of_tight == expected);
  Advice of_one_memory;
  Machine one_memory = machines::dgx_a100;
  for (int i = one_memory.links.size() - 1; i >= 0; --i)
    if (one_memory.links[i].axis.view() == "host") one_memory.links.erase(i);
  std::vector<std::string> tried;
  ask_with(of_one_memory, {4, one_memory, 1}, tried);
  CHECK(tried == without_host);  // its devices are their hosts
  const std::string table = planner::advice_text(tight, "Gpt", {4, machines::dgx_a100, 1});
  const Candidate* least = planner::least_of(tight);
  REQUIRE(least != nullptr);
  for (const Candidate& c : tight.candidates) CHECK(least->step.peak_memory() <= c.step.peak_memory());
  CHECK(table.find("Nothing that was tried fits in 1 B; the least is " +
                   printing::bytes(static_cast<double>(least->step.peak_memory())) + ", " + text(least->mesh)) !=
        std::string::npos);
  CHECK(table.find("The program does not compile with Layers<n, Block, Recompute<>>.") != std::string::npos);
  const planner::Json json = planner::advice_json(ample, "Gpt", {4, machines::dgx_a100});
  CHECK(json["tried"].size() == 1);
  CHECK(json["refused"].size() == 2);
  CHECK(json["candidates"][0].contains("with"));
  CHECK(!planner::advice_json(plain, "Gpt", {4, machines::dgx_a100})["candidates"][0].contains("with"));
}

TEST_CASE("a step takes as long as is predicted, however long that is") {
  CHECK(planner::step_time(0.5) == "500 ms");
  CHECK(planner::step_time(1320.4) == "1320 s");
  CHECK(planner::step_time(1e20) == "100000000000000000000 s");  // more than whole numbers count
  CHECK(planner::step_time(std::numeric_limits<double>::max()).size() == 309 + 2);
  CHECK(planner::step_time(std::numeric_limits<double>::infinity()) == "inf s");
}
