// What is watched of a step is what the whole tensors hold, on every mesh, and changes no bit of it.
#include <numeric>

#include <doctest/doctest.h>

#include <parallel/run/trainer.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int rows = 8, width = 6, layers = 4;
using X = Tensor<double, Shape<rows / data, width>>;

constexpr int line_of_gelu = __LINE__ + 5;
struct Block {
  Parameter<double, Shape<width, 8 / tensor>> up{normal(0.4)};
  Parameter<double, Shape<8 / tensor, width>> down{normal(0.4)};
  constexpr auto operator()(Distributed auto x) const {
    const auto hidden = gelu(matmul(x, up));
    return x + matmul(hidden, down);
  }
};
template <Dim depth>
struct Model {
  Parameter<double, Shape<width>> gain{ones};
  Layers<depth, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return blocks(x * gain); }
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(blocks(x * gain) - y)); }
};
using Plain = Training<Model<layers>, AdamW, X, X>;
using Gradients = Training<Model<layers>, KeepGradients, X, X>;
using InParts = AllStored<Plain, Stored<data>>;
using AtServer = AllStored<Plain, Stored<data, At<0>>>;
using Several = Accumulate<2, Plain>;
template <const Schedule& schedule>
using Staged = Pipelined<schedule, Accumulate<2, Training<Model<layers / stage>, AdamW, X, X>>>;
using Test = Evaluation<Model<layers>, X>;

std::vector<double> counted(int n, double by) {
  std::vector<double> all(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) all[static_cast<std::size_t>(i)] = std::sin(by * (i + 1));
  return all;
}

const std::vector<std::string> names_of_tensors{"gain",          "gain.mean",         "gain.variance",
                                                "blocks.*.up",   "blocks.*.up.mean",  "blocks.*.up.variance",
                                                "blocks.2.up",   "blocks.2.up.mean",  "blocks.2.up.variance",
                                                "blocks.2.down", "blocks.*.down.mean"};
std::string every_tensor() {
  std::string all;
  for (const std::string& name : names_of_tensors) all += (all.empty() ? "" : ",") + name;
  return all;
}

/// What is computed as one.
struct Fused {
  Parameter<double, Shape<width, 8>> w{normal(0.4)};
  Parameter<double, Shape<8>> b{normal(0.4)};
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w) + b); }
};

struct Seen {
  std::vector<WatchedTensor> lines;
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> tensors;
  std::map<std::string, std::vector<std::vector<double>>> behind;  // tensor, by step
};
template <class Program, class Optimizer = AdamW>
Seen train(const Mesh& mesh, const std::string& names, int steps = 2, int batches = 1) {
  Seen seen;
  watch(names, [&](const WatchedTensor& line) { seen.lines.push_back(line); });
  const std::vector<double> x = counted(batches * rows * width, 0.7), y = counted(batches * rows * width, 0.3);
  std::vector<std::map<std::string, std::vector<double>>> all(static_cast<std::size_t>(steps));
  std::mutex mutex;
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive<Program>(mesh, world.rank());
    under_test::Parameters parameters(plan, world.rank(), 5);
    Trainer<Threads, under_test::Device> step(plan, world, parameters, typename Optimizer::Hyperparameters{}, 1);
    for (int i = 0; i < steps; ++i) {
      const double loss = step(x, y).loss;
      const std::lock_guard lock(mutex);
      if (world.rank() == 0) seen.losses.push_back(loss);
      for (const NamedTensor& t : step.executor().tensors()) {
        auto& whole = all[static_cast<std::size_t>(i)][t.name];
        whole.resize(static_cast<std::size_t>(t.type.layout.elements()));
        step.executor().get(t.name, whole);
      }
    }
  });
  watch("");
  for (auto& of : all)
    for (auto& [name, whole] : of) seen.behind[name].push_back(whole);
  return seen;
}

/// By the definitions, from all elements.
void check_statistics(const Statistics& is, const std::vector<double>& whole) {
  const auto n = static_cast<double>(whole.size());
  const double mean = std::accumulate(whole.begin(), whole.end(), 0.0) / n;
  double squares = 0;
  for (const double x : whole) squares += (x - mean) * (x - mean);
  REQUIRE(is.elements() == static_cast<std::int64_t>(whole.size()));
  CHECK(is.not_finite() == 0);
  CHECK(is.mean == doctest::Approx(mean).epsilon(1e-12));
  CHECK(is.deviation() == doctest::Approx(std::sqrt(squares / n)).epsilon(1e-12));
  CHECK(is.least == *std::min_element(whole.begin(), whole.end()));
  CHECK(is.most == *std::max_element(whole.begin(), whole.end()));
}
/// The same lines, but for how sums were rounded.
void same(const std::vector<WatchedTensor>& is, const std::vector<WatchedTensor>& was) {
  REQUIRE(is.size() == was.size());
  const auto near = [](double x) { return doctest::Approx(x).epsilon(1e-9); };
  for (std::size_t i = 0; i < is.size(); ++i) {
    CAPTURE(text(is[i]));
    CHECK(is[i].name == was[i].name);
    CHECK(is[i].step == was[i].step);
    CHECK(is[i].layer == was[i].layer);
    const Statistics &a = is[i].statistics, &b = was[i].statistics;
    CHECK(a.elements() == b.elements());
    CHECK(a.mean == near(b.mean));
    CHECK(a.deviation() == near(b.deviation()));
    CHECK(a.least == near(b.least));
    CHECK(a.most == near(b.most));
  }
}

}  // namespace

TEST_CASE("statistics of parameters and state are those of the whole tensor, layer by layer") {
  const auto hold = [](const Seen& seen, const Mesh& mesh) {
    CAPTURE(text(mesh));
    CHECK(seen.lines.size() == 2 * names_of_tensors.size());
    for (const WatchedTensor& line : seen.lines) {
      CAPTURE(text(line));
      std::string path = line.name;
      std::size_t layer = layers;
      if (path.starts_with("blocks.2.")) {
        path.replace(7, 1, "*");
        layer = 2;
      }
      std::vector<double> whole = seen.behind.at(path)[static_cast<std::size_t>(line.step - 1)];
      const std::size_t one = whole.size() / layers;
      if (layer < layers) {
        const auto at = [&](std::size_t l) { return whole.begin() + static_cast<std::ptrdiff_t>(l * one); };
        whole = std::vector<double>(at(layer), at(layer + 1));
      }
      check_statistics(line.statistics, whole);
    }
  };
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}}) {
    hold(train<Plain>(mesh, every_tensor()), mesh);
    hold(train<InParts>(mesh, every_tensor()), mesh);
  }
  for (const Mesh& mesh : {Mesh{stage = 2}, Mesh{stage = 2, data = 2}})
    hold(train<Staged<schedules::one_forward_one_backward>>(mesh, every_tensor(), 2, 2), mesh);
  hold(train<Staged<schedules::interleaved<2>>>(Mesh{stage = 2}, every_tensor(), 2, 2), Mesh{stage = 2});
}

TEST_CASE("gradients are those that KeepGradients keeps, also where an optimizer takes a shard") {
  const std::string names = "blocks.1.up.gradient, blocks.*.down.gradient, gain.gradient";
  const Seen kept = train<Gradients, KeepGradients>(Mesh{data = 1}, names, 1);
  REQUIRE(kept.lines.size() == 3);
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}, Mesh{data = 2, tensor = 2}}) {
    same(train<Plain>(mesh, names, 1).lines, kept.lines);
    same(train<InParts>(mesh, names, 1).lines, kept.lines);
    same(train<Gradients, KeepGradients>(mesh, names, 1).lines, kept.lines);
  }
  const Seen several = train<Several>(Mesh{data = 1}, names, 1, 2);
  same(train<Several>(Mesh{data = 2, tensor = 2}, names, 1, 2).lines, several.lines);
  same(train<Staged<schedules::gpipe>>(Mesh{stage = 2}, names, 1, 2).lines, several.lines);
}

TEST_CASE("a line's results, an operation's, inputs and outputs are the same on every mesh, in every layer") {
  const std::string names =
      "watching.cpp:" + std::to_string(line_of_gelu) + ", add, input.0, input.1, loss, gradient_norm";
  const Seen one = train<Plain>(Mesh{data = 1}, names, 2);
  REQUIRE(one.lines.size() == 2 * (2 * layers + layers + 4));
  CHECK(one.lines[1].layer == 1);
  CHECK(text(one.lines[1])
            .starts_with("step 1: watching.cpp:" + std::to_string(line_of_gelu) +
                         " matmul in layer 1 f64[8/data, 8/tensor]: mean "));
  for (const Mesh& mesh : {Mesh{data = 2}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}}) {
    same(train<Plain>(mesh, names, 2).lines, one.lines);
    same(train<InParts>(mesh, names, 2).lines, one.lines);
  }
  const std::string of_line = "watching.cpp:" + std::to_string(line_of_gelu);
  const Seen several = train<Several>(Mesh{data = 1}, of_line, 1, 2);
  REQUIRE(several.lines.size() == 2 * layers);
  CHECK(several.lines[0].statistics.elements() == 2 * rows * 8);  // both micro-batches
  same(train<Staged<schedules::one_forward_one_backward>>(Mesh{stage = 2}, of_line, 1, 2).lines, several.lines);
}

TEST_CASE("a rank's shard, each rank's, some elements") {
  const Mesh mesh{data = 2, tensor = 2};
  const Seen seen =
      train<Plain>(mesh, "blocks.2.up@all, blocks.2.up@3, blocks.2.up[4,6], blocks.2.up[5], gain@1[2]", 1);
  REQUIRE(seen.lines.size() == 8);
  const std::vector<double>& up = seen.behind.at("blocks.*.up")[0];
  for (std::size_t rank = 0; rank < 5; ++rank) {
    const WatchedTensor& line = seen.lines[rank];
    const int whose = rank == 4 ? 3 : static_cast<int>(rank);
    CHECK(line.rank == whose);
    std::vector<double> part;
    for (int i = 0; i < width; ++i)
      for (int j = 0; j < 4; ++j) part.push_back(up[static_cast<std::size_t>((2 * width + i) * 8 + whose % 2 * 4 + j)]);
    check_statistics(line.statistics, part);
  }
  REQUIRE(seen.lines[5].elements.size() == 1);
  CHECK(seen.lines[5].elements[0].value == up[(2 * width + 4) * 8 + 6]);
  REQUIRE(seen.lines[6].elements.size() == 8);
  for (std::size_t j = 0; j < 8; ++j) CHECK(seen.lines[6].elements[j].value == up[(2 * width + 5) * 8 + j]);
  CHECK(seen.lines[7].rank == 1);
  REQUIRE(seen.lines[7].elements.size() == 1);
  CHECK(seen.lines[7].elements[0].value == seen.behind.at("gain")[0][2]);
}

TEST_CASE("sums that ranks hold terms of are shown rank by rank") {
  const Seen seen = train<Plain>(Mesh{tensor = 2}, "matmul", 1);
  REQUIRE(seen.lines.size() == layers + 2 * layers);
  CHECK(seen.lines[0].rank == -1);
  CHECK(seen.lines[layers].rank == 0);
  CHECK(seen.lines[layers].type == "f64[8/data, 6] +tensor");
}

TEST_CASE("what is watched, or checked, has the bits that it has without") {
  const std::string names = every_tensor() + ", watching.cpp:" + std::to_string(line_of_gelu) +
                            ", add, multiply, blocks.*.up.gradient, gain.gradient";
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2, tensor = 2}}) {
    const auto bits = [&]<class Program>(std::type_identity<Program>) {
      const Seen without = train<Program>(mesh, ""), with = train<Program>(mesh, names);
      check_numbers("finite");
      const Seen checked = train<Program>(mesh, "");
      check_numbers("");
      CHECK(without.lines.empty());
      CHECK(with.losses == without.losses);
      CHECK(with.behind == without.behind);
      CHECK(checked.losses == without.losses);
      CHECK(checked.behind == without.behind);
    };
    bits(std::type_identity<Plain>{});
    bits(std::type_identity<InParts>{});
  }
}

TEST_CASE("what is watched within a fusion is computed one by one, with the same bits") {
  const OwnedPlan plan = derive<Evaluation<Fused, X>>(Mesh{data = 1});
  const auto fused = [](const Event& e) { return e.nodes > 1; };
  REQUIRE(std::any_of(plan->events.begin(), plan->events.end(), fused));
  const std::vector<double> x = counted(rows * width, 0.7);
  std::vector<WatchedTensor> lines;
  std::vector<std::vector<double>> results;
  for (const char* names : {"", "matmul, add, gelu"}) {
    watch(names, [&](const WatchedTensor& line) { lines.push_back(line); });
    run_threads(1, [&](Threads& world) {
      under_test::Parameters parameters(plan, 0, 5);
      Executor<Threads, under_test::Device> executor(plan, world, parameters);
      executor(x);
      std::vector<std::byte> room;
      const auto numbers = executor.on_host(executor.output(0), room).template span<const double>();
      results.emplace_back(numbers.begin(), numbers.end());
    });
  }
  watch("");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].statistics.least < lines[2].statistics.least);  // a product has another range than its gelu
  CHECK(lines[0].statistics.mean != lines[1].statistics.mean);
  if (!under_test::Device::asynchronous) CHECK(results[0] == results[1]);  // a GPU keeps more of what it fuses
}

TEST_CASE("an evaluation shows its results; what it does not change its training shows") {
  const OwnedPlan training = derive<Plain>(Mesh{data = 2}), testing = derive<Test, Plain>(Mesh{data = 2});
  std::vector<WatchedTensor> lines;
  watch("gain, gelu, result, gain.gradient", [&](const WatchedTensor& line) { lines.push_back(line); });
  const std::vector<double> x = counted(rows * width, 0.7);
  run_threads(2, [&](Threads& world) {
    under_test::Parameters parameters(training, world.rank(), 5);
    Executor<Threads, under_test::Device> test(testing, world, parameters);
    test(x);
  });
  watch("");
  REQUIRE(lines.size() == layers + 1);
  CHECK(lines[0].layer == 0);
  CHECK(lines.back().name == "result");
}

TEST_CASE("a name that is not there is one sentence with the nearest") {
  const auto said = [](const std::string& names) {
    try {
      train<Plain>(Mesh{data = 2}, names, 1);
    } catch (const Failure& failure) {
      watch("");
      CHECK(failure.exit_code == exit_code::usage);
      const std::string words = failure.what();
      return words.substr(0, words.find(" that the training made at")) +
             (words.find("; the nearest") == std::string::npos ? "" : words.substr(words.find("; the nearest")));
    }
    return std::string("nothing");
  };
  CHECK(said("blocks.2.upp") ==
        "watch: blocks.2.upp is nothing; the nearest names are blocks.*.up, blocks.*.down, blocks.*.up.mean");
  CHECK(said("up").starts_with("watch: up is nothing; the nearest names are blocks.*.up, "));
  CHECK(said("gian.gradient") ==
        "watch: gian.gradient is nothing; the nearest names are gain.gradient, gain.mean, gain.variance");
  CHECK(said("watching.cpp:9999")
            .starts_with("watch: watching.cpp:9999 is nothing; the nearest names are watching.cpp:"));
  CHECK(said("blocks.7.up") == "watch: blocks.7.up has no such layer: blocks.*.up has 4, counted from 0");
  CHECK(said("gain@2") == "watch: gain@2 names rank 2, but there are 2, counted from 0");
  CHECK(said("gain@") == "watch: gain@ names no rank behind @; write a rank's number, or @all for each");
  CHECK(
      said("blocks.2.up[6]") ==
      "watch: blocks.2.up[6] lies outside of f64[4, 6, 8/tensor], of which it is one layer; count the indices of its dimensions from 0");
  CHECK(said("gain[-1]") == "watch: gain[-1] names no element; write its index, for example blocks.2.mlp.up[3,5]");
  CHECK(said("gain[1") == "watch: gain[1 has no ] at its end; write for example blocks.2.mlp.up[3,5]");
  CHECK(said("gain,,loss") == "watch: 'gain,,loss' has an empty name; put one comma between two names");
  const auto nowhere = [] { return train<AtServer>(Mesh{data = 2}, "gain@1", 1); };
  CHECK_THROWS_WITH(nowhere(),
                    "watch: gain@1 names rank 1, which has nothing of f64[6] At<0>@data; name a rank that has, or "
                    "write gain@all for each that has");
  watch("");
  CHECK(train<AtServer>(Mesh{data = 2}, "gain@0", 1).lines.size() == 1);
  looked_for() = LookedFor{"gain@2"};  // as the variable has it
  const OwnedPlan plan = derive<Plain>(Mesh{data = 1});
  run_threads(1, [&](Threads& world) {
    under_test::Parameters parameters(plan, 0, 5);
    CHECK_THROWS_WITH((Executor<Threads, under_test::Device>(plan, world, parameters)),
                      "PARALLEL_WATCH: gain@2 names rank 2, but there are 1, counted from 0");
  });
  watch("");
}
