// The first operation whose numbers are not finite is named with its line, layer and rank, whatever made them, on every
// rank alike; and what is meant to be infinite is no alarm.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include <parallel/run/trainer.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int rows = 4, width = 6, layers = 4;
constexpr double infinity = std::numeric_limits<double>::infinity(),
                 no_number = std::numeric_limits<double>::quiet_NaN();
using X = Tensor<double, Shape<rows / data, width>>;

constexpr int line_of_log = __LINE__ + 6;
struct Block {
  Parameter<double, Shape<width, 8 / tensor>> up{normal(0.4)};
  Parameter<double, Shape<8 / tensor>> scale{ones};
  Parameter<double, Shape<8 / tensor, width>> down{normal(0.4)};
  constexpr auto operator()(Distributed auto x) const {
    const auto logarithm = log(scale);
    return x + matmul(matmul(x, up) * logarithm, down);
  }
};
constexpr int line_of_root = __LINE__ + 7;
template <Dim depth>
struct Model {
  Parameter<double, Shape<width>> gain{ones}, unused{zeros};
  Layers<depth, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return blocks(x * gain); }
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square((*this)(x)-y)) + 0.0 * sum(sqrt(gain * gain)) + 0.0 * sum(unused);
  }
};
using Fit = Training<Model<layers>, AdamW, X, X>;
using InParts = AllStored<Fit, Stored<data>>;
using Staged =
    Pipelined<schedules::one_forward_one_backward, Accumulate<2, Training<Model<layers / stage>, AdamW, X, X>>>;

constexpr int line_of_half = __LINE__ + 5;
/// A product that is too large for f16.
struct Halves {
  constexpr auto operator()(Distributed auto x) const {
    const auto half = cast<float16>(x);
    return cast<float>(half * half);
  }
};
/// Scores outside of a mask are -infinity, as attention's often are written.
struct Masked {
  constexpr auto operator()(Distributed auto x) const {
    return softmax<1>(where(x > 0, x, constant<double, Shape<>>(-infinity)));
  }
};
/// The next row of a table, which behind the last there is not.
struct Next {
  Parameter<double, Shape<4, 3>> table{ones};
  constexpr auto operator()(Distributed auto row) const { return embedding(row + 1, table); }
};
/// Whole numbers that are no indices.
struct Counted {
  constexpr auto operator()(Distributed auto count) const { return cast<float>(cast<float16>(count)); }
};
struct Summed {
  constexpr auto operator()(Distributed auto x) const { return sum(x); }
};
/// Something is computed while a sum is under way.
struct Between {
  constexpr auto operator()(Distributed auto x) const {
    const auto total = to<On<data, Invariant>>(sum(x));
    return total + max(where(x > 0, x, constant<double, Shape<>>(-infinity)));
  }
};
struct Small {
  Parameter<float, Shape<width>> w{ones};
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(cast<float>(cast<float16>(x) * cast<float16>(w))));
  }
};

/// exit code and sentence of a step
struct Said {
  int code = 0;
  std::string words{};
  bool has(const std::string& part) const { return words.find(part) != std::string::npos; }
};
template <class Program, class Set>
Said step(const Mesh& mesh, Set set, const AdamW::Hyperparameters& numbers = {}, std::vector<double> x = {},
          int batches = 1) {
  if (x.empty()) x.assign(static_cast<std::size_t>(batches * rows * width), 0.5);
  const std::vector<double> y(x.size(), 0.25);
  std::vector<Said> said(static_cast<std::size_t>(mesh.ranks()));
  check_numbers("finite");
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive<Program>(mesh, world.rank());
    under_test::Parameters parameters(plan, world.rank(), 5);
    set(parameters, plan, world.rank());
    try {
      Trainer<Threads, under_test::Device> trainer(plan, world, parameters, numbers, 1);
      for (int i = 0; i < 2; ++i) trainer(x, y);
    } catch (const PeerFailed&) {
      throw;
    } catch (const Failure& failure) {
      said[static_cast<std::size_t>(world.rank())] = {failure.exit_code, failure.what()};
    }
  });
  check_numbers("");
  for (const Said& other : said) CHECK(other.words == said[0].words);  // on every rank
  return said[0];
}
const auto unchanged = [](const auto&...) {};
/// Sets an element of a layer of a parameter, else `rest`.
auto set(std::string name, std::size_t elements, std::size_t at, double value, double rest) {
  return [=](under_test::Parameters& parameters, const Plan& plan, int rank) {
    std::vector<double> whole(elements, rest);
    whole[at] = value;
    parameters.set(plan, rank, name, whole);
  };
}
std::string line(int number) { return "finite.cpp:" + std::to_string(number); }

}  // namespace

TEST_CASE("a sound step says nothing") {
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2, tensor = 2}}) {
    CHECK(step<Fit>(mesh, unchanged).words == "");
    CHECK(step<InParts>(mesh, unchanged).words == "");
  }
}

TEST_CASE("the logarithm of a negative number in layer 2 of one rank's shard") {
  const auto negative = set("blocks.*.scale", layers * 8, 2 * 8 + 6, -1, 2);
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}}) {
    const bool split = mesh.extent(&tensor) == 2;
    for (const Said& said : {step<Fit>(mesh, negative), step<InParts>(mesh, negative)}) {
      CAPTURE(said.words);
      CHECK(said.code == exit_code::failed);
      CHECK(said.words.starts_with(
          "the first numbers that are not finite in step 1 of the training made at finite.cpp:"));
      CHECK(said.has(" were made by log at " + line(line_of_log) + " on rank " + (split ? "1" : "0") +
                     ", in layer 2, charged to blocks.2.scale: 1 NaN of " + (split ? "4" : "8") +
                     ", the first at [6] of f64[8/tensor]; operand 0, f64[8/tensor], is finite, from -1 to 2; "));
    }
  }
  const Said staged = step<Staged>(Mesh{stage = 2}, negative, {}, {}, 2);
  CAPTURE(staged.words);
  CHECK(staged.has(" by log at " + line(line_of_log) + " on rank 1, in layer 2, charged to blocks.2.scale"));
}

TEST_CASE("in the backward pass alone, in the optimizer alone") {
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}, Mesh{data = 2, tensor = 2}}) {
    const Said backward = step<Fit>(mesh, set("gain", width, 3, 0, 1));  // the root of 0 has no derivative
    CAPTURE(backward.words);
    CHECK(backward.code == exit_code::failed);
    CHECK(backward.has("in the backward pass of sqrt at " + line(line_of_root)));
    const Said optimizer = step<Fit>(mesh, unchanged, {.epsilon = 0});  // 0 / 0 where the gradient is 0
    CAPTURE(optimizer.words);
    CHECK(optimizer.has("made by adamw in the optimizer on rank 0, charged to unused: 6 NaN of 6"));
  }
}

TEST_CASE("what is handed over, or set, is named as such") {
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2, tensor = 2}}) {
    std::vector<double> x(rows * width, 0.5);
    x[3 * width + 2] = no_number;
    const Said input = step<Fit>(mesh, unchanged, {}, x);
    CHECK(input.code == exit_code::bad_data);
    CHECK(input.has("an input is not finite before step 1 of the training made at"));
    CHECK(input.has(std::string(": input.0 on rank ") + (mesh.ranks() > 1 ? "2" : "0") + " has 1 NaN of "));
    CHECK(input.has("the first at [3, 2] of f64[4/data, 6]"));
    const Said parameter = step<Fit>(mesh, set("blocks.*.scale", layers * 8, 3 * 8 + 5, infinity, 2));
    CHECK(parameter.code == exit_code::failed);
    CHECK(parameter.has("a parameter is not finite before step 1 of the training made at"));
    CHECK(parameter.has(std::string(": blocks.3.scale on rank ") + (mesh.ranks() > 1 ? "1" : "0") +
                        " has 1 infinite of "));
  }
}

template <class Program, class T>
Said evaluated(const Mesh& mesh, const std::vector<T>& x, const char* word = "finite") {
  const OwnedPlan plan = derive<Program>(mesh);
  std::vector<Said> said(static_cast<std::size_t>(mesh.ranks()));
  check_numbers(word);
  run_threads(mesh.ranks(), [&](Threads& world) {
    under_test::Parameters parameters(plan, world.rank(), 5);
    Executor<Threads, under_test::Device> executor(plan, world, parameters);
    try {
      executor(x);
    } catch (const Failure& failure) {
      said[static_cast<std::size_t>(world.rank())] = {failure.exit_code, failure.what()};
    }
  });
  check_numbers("");
  for (const Said& other : said) CHECK(other.words == said[0].words);
  return said[0];
}

TEST_CASE("an index that a program makes") {
  using Looked = Evaluation<Next, Tensor<int, Shape<4 / data>>>;
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}}) {
    const Said said = evaluated<Looked>(mesh, std::vector<int>{0, 1, 2, 3});
    CAPTURE(said.words);
    CHECK(said.has(" were made by embedding at finite.cpp:"));
    CHECK(said.has(std::string("operand 0, i32[4/data], is finite, from ") + (mesh.ranks() == 2 ? "3" : "1") +
                   " to 4; "));
    CHECK(said.has("look at the indices"));
    CHECK(evaluated<Looked>(mesh, std::vector<int>{0, 1, 2, 2}).words == "");
    const Said large =
        evaluated<Evaluation<Counted, Tensor<int, Shape<4 / data>>>>(mesh, std::vector<int>{0, 1, 2, 70000});
    CHECK(large.has(" were made by "));
    CHECK(!large.has("indices"));
  }
}

TEST_CASE("too large for f16, and for a sum over ranks") {
  using Float = Tensor<float, Shape<rows / data, width>>;
  std::vector<float> x(rows * width, 2);
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}})
    CHECK(evaluated<Evaluation<Halves, Float>>(mesh, x).words == "");
  x[3 * width + 1] = 300;
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}}) {
    const Said said = evaluated<Evaluation<Halves, Float>>(mesh, x);
    CAPTURE(said.words);
    CHECK(said.has("made by multiply at " + line(line_of_half) + " on rank " + (mesh.ranks() > 1 ? "1: " : "0: ")));
    CHECK(said.has("1 infinite of "));
    CHECK(said.has("the first at [3, 1] of f16[4/data, 6]; operand 0, f16[4/data, 6], is finite, from 2 to 300; "));
    CHECK(said.has("its operands are finite: what it computes is too large for its element type"));
  }
  std::vector<double> large(rows * width, 0);
  large[0] = large.back() = 1e308;
  large[1] = large[rows * width - 2] = 0.5e308;
  const Said sum = evaluated<Evaluation<Summed, X>>(Mesh{data = 2}, large);
  CAPTURE(sum.words);
  CHECK(sum.has("made by all_reduce over data "));
  const Said between = evaluated<Evaluation<Between, X>>(Mesh{data = 2}, large);
  CAPTURE(between.words);
  CHECK(between.has("made by all_reduce over data "));
  CHECK(between.has("operand 0, f64[] +data, is finite, from 1.5e+308 to 1.5e+308"));
}

TEST_CASE("infinities that are meant are no alarm; what is made of them may be") {
  std::vector<double> x(rows * width, 0.5);
  x[1] = -1;
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}})
    CHECK(evaluated<Evaluation<Masked, X>>(mesh, x).words == "");
  for (int i = 0; i < width; ++i) x[static_cast<std::size_t>(i)] = -1;  // a row of which nothing is left
  const Said none = evaluated<Evaluation<Masked, X>>(Mesh{data = 2}, x);
  CAPTURE(none.words);
  CHECK(none.has("made by sum_of_exponentials of softmax at "));
  CHECK(none.has("it makes them of infinities, as of a row in which a mask leaves nothing"));
  x.assign(rows * width, infinity);
  CHECK(evaluated<Evaluation<Summed, X>>(Mesh{data = 2}, x).has("an input is not finite"));
  CHECK(evaluated<Evaluation<Summed, X>>(Mesh{data = 2}, x, "nan").words == "");
  x[0] = -infinity;
  CHECK(evaluated<Evaluation<Summed, X>>(Mesh{data = 2}, x, "nan").has("made by sum"));
}

TEST_CASE("gradients that overflow while a loss finds its scale are no alarm") {
  using Scaled = LossScaled<Training<Small, Sgd, Tensor<float, Shape<rows / data, width>>>>;
  const OwnedPlan plan = derive<Scaled>(Mesh{data = 2});
  check_numbers("finite");
  run_threads(2, [&](Threads& world) {
    under_test::Parameters parameters(plan, world.rank(), 5);
    Trainer<Threads, under_test::Device> trainer(plan, world, parameters, Sgd::Hyperparameters{}, 1);
    trainer.loss_scale({.scale = 0x1p60});
    const std::vector<float> x(rows * width, 100);
    CHECK(trainer(x).skipped);
  });
  check_numbers("");
}

TEST_CASE("a scale finds itself alike, whether a step is looked into or not") {
  using Scaled = LossScaled<Training<Small, Sgd, Tensor<float, Shape<rows / data, width>>>>;
  const OwnedPlan plan = derive<Scaled>(Mesh{data = 2});
  const auto scales = [&](float value) {
    std::vector<double> all;
    run_threads(2, [&](Threads& world) {
      under_test::Parameters parameters(plan, world.rank(), 5);
      Trainer<Threads, under_test::Device> trainer(plan, world, parameters, Sgd::Hyperparameters{}, 1);
      const std::vector<float> x(rows * width, value);
      for (int i = 0; i < 6; ++i) {
        const double scale = trainer(x).loss_scale;
        if (world.rank() == 0) all.push_back(scale);
      }
      if (world.rank() == 0) all.push_back(trainer.loss_scale().scale);
    });
    return all;
  };
  const std::vector<double> falling = scales(100), steady = scales(0.5);
  CHECK(falling.front() > falling.back());
  CHECK(steady.front() == steady.back());
  check_numbers("finite");
  CHECK(scales(100) == falling);
  CHECK(scales(0.5) == steady);
  check_numbers("");
}
TEST_CASE("a word that means nothing is refused") {
  try {
    check_numbers("all");
    CHECK(false);
  } catch (const Failure& failure) {
    CHECK(failure.exit_code == exit_code::usage);
    CHECK(std::string(failure.what()) ==
          "check_numbers: 'all' is nothing that can be checked; write finite, or nan where infinities are meant, "
          "or inputs");
  }
}

TEST_CASE("inputs that ranks are given otherwise are named, with the axis on which they are to be alike") {
  const auto said = [](const char* check, auto given, int good_steps = 1) {
    check_numbers(check);
    const Mesh mesh{data = 2, tensor = 2};
    const OwnedPlan local = derive<Fit>(mesh);
    std::string words;
    try {
      run_threads(mesh.ranks(), [&](Threads& world) {
        Parameters parameters(local, world.rank(), 5);
        Trainer<Threads, CpuDouble> trainer(local, world, parameters, {.learning_rate = 1e-2}, 1);
        std::vector<double> x(rows * width), y(rows * width);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = y[i] = 0.01 * static_cast<double>(i);
        for (int step = 0; step < good_steps; ++step) trainer(x, y);
        given(x, y, mesh, world.rank());
        for (int step = good_steps; step < 4; ++step) trainer(x, y);
      });
    } catch (const Mismatch& mismatch) {
      CHECK(mismatch.exit_code == exit_code::plans_differ);
      words = mismatch.what();
    }
    check_numbers("");
    return words;
  };
  // a seed of each rank's own: rows that one tensor rank alone has
  const auto by_rank = [](auto&, auto& y, const Mesh&, int rank) { y[0] = rank; };
  const auto expected = [](int step) {
    return "before step " + std::to_string(step) +
           " ranks that take the same part of an input were given other numbers: input.1 of rank 0 and of rank 1; alike "
           "are to be input.1 on tensor; draw, or seed what draws, alike on all ranks, each of which takes its part of "
           "the whole";
  };
  for (const char* check : {"", "inputs", "finite", "nan"}) {
    CHECK(said(check, by_rank, 0) == expected(1));
    CHECK(said(check, by_rank, 1) == expected(2));
    CHECK(said(check, by_rank, 2) == expected(*check == '\0' ? 4 : 3));
    CHECK(said(check, by_rank, 4) == "");
  }
  // each has the rows that it takes, and no others: as it should be
  CHECK(said("inputs", [](auto& x, auto& y, const Mesh& mesh, int rank) {
          const bool first = mesh.coordinate(rank, &data) == 0;
          for (std::size_t i = 0; i < x.size(); ++i)
            if (first != (i < x.size() / 2)) x[i] = y[i] = 100 + rank;
        }) == "");
}
