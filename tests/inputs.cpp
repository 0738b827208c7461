// What a program hands to a run, and asks of it: what does not fit is one sentence that names the thing, and a
// documented exit code.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include <Eigen/Core>
#include <doctest/doctest.h>

#include <parallel/device/cpu/matrix.hpp>
#include <parallel/run/text_data.hpp>

#include "models.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int rows = 4, width = 6, classes = 10, words = 8, batch = 4;
using Batch = Tensor<double, Shape<rows / data, width>>;
struct Linear {
  Parameter<double, Shape<width, width>> w{normal(0.4)};
  Parameter<double, Shape<width>> b{zeros};
  constexpr auto operator()(Distributed auto x) const { return matmul(x, w) + b; }
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square((*this)(x)-y)); }
};
using Fit = Training<Linear, AdamW, Batch, Batch>;

/// Indices of a table and targets of a cross entropy, one of them ignored.
struct Classifier {
  Parameter<double, Shape<words, classes / tensor>> table{normal(0.4)};
  constexpr auto operator()(Distributed auto word, Distributed auto target) const {
    return mean_cross_entropy<0, -1>(embedding(word, table), target);
  }
};
using Words = Tensor<int, Shape<batch / data>>;
using Classify = Training<Classifier, AdamW, Words, Words>;

/// f(executor, parameters, world) on every rank of a mesh; the exception of the first rank that throws one is thrown
/// again.
template <class Program, class F>
void on_ranks(const Mesh& mesh, F f) {
  const OwnedPlan plan = derive<Program>(mesh);
  run_threads(mesh.ranks(), [&](Threads& world) {
    Parameters parameters(plan, world.rank(), 5);
    Executor<Threads, CpuDouble> executor(plan, world, parameters);
    f(executor, parameters, world);
  });
}
/// What f() throws: its exit code and its sentence.
template <class F>
std::pair<int, std::string> said_by(F f) {
  try {
    f();
  } catch (const Failure& failure) {
    return {failure.exit_code, failure.what()};
  }
  return {0, ""};
}
using Said = std::pair<int, std::string>;

const std::vector<double> x = program::numbers<double>(rows * width, 1), y = program::numbers<double>(rows * width, 2);

}  // namespace

TEST_CASE("an input is checked where it is given") {
  on_ranks<Fit>(Mesh{data = 2}, [](auto& e, auto&, auto&) {
    const std::vector<double> part(rows / 2 * width);
    CHECK(said_by([&] { e.input(0, part); }) ==
          Said{70,
               "input 0 is f64[4/data, 6] and has 24 elements, but what was given has 12; "
               "give all of the whole tensor, of which a rank has a part"});
    CHECK(said_by([&] { e.input(1, std::span<const double>(static_cast<double*>(nullptr), 24)); }) ==
          Said{70, "input 1 is f64[4/data, 6], but was given a null pointer; give 24 elements"});
    CHECK(said_by([&] { e.input(0, std::vector<float>(24)); }) ==
          Said{70, "input 0 is f64[4/data, 6], but f32 was given; give elements of its type"});
    CHECK(said_by([&] { e.input(2, x); }) == Said{70, "there is no input 2; the program's are counted from 0 to 1"});
    CHECK(said_by([&] { e.input(-1); }).first == 70);
    e.input(0, x);
    CHECK(said_by([&] { e.run(); }) ==
          Said{70, "input 1, f64[4/data, 6], was never given; call input(1, ...) before run()"});
    e.input(1, y);
    e.run();
    CHECK(e.output_scalar(0) > 0);
  });
}
TEST_CASE("an input may be a matrix of Eigen that is row-major") {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto loss = [&](auto give) {
    double result = 0;
    on_ranks<Fit>(Mesh{data = 2}, [&](auto& e, auto&, Threads& world) {
      give(e);
      e.input(1, y);
      e.run();
      if (world.rank() == 0) result = e.output_scalar(0);
    });
    return result;
  };
  const Matrix matrix = Eigen::Map<const Matrix>(x.data(), rows, width);
  const double expected = loss([&](auto& e) { e.input(0, x); });
  CHECK(loss([&](auto& e) { e.input(0, matrix); }) == expected);
  CHECK(loss([&](auto& e) { e.input(0, Eigen::Map<const Matrix>(x.data(), rows, width)); }) == expected);
  CHECK(loss([&](auto& e) { e.input(0, std::span(x)); }) == expected);
  const Eigen::MatrixXd by_columns = matrix;
  CHECK(loss([&](auto& e) { e.input(0, by_columns); }) == expected);
  CHECK(loss([&](auto& e) { e.input(0, Eigen::Map<const Eigen::MatrixXd>(by_columns.data(), rows, width)); }) ==
        expected);
  Matrix large = Matrix::Zero(rows, 2 * width);
  large.leftCols(width) = matrix;
  CHECK(loss([&](auto& e) { e.input(0, large.leftCols(width)); }) == expected);
  on_ranks<Fit>(Mesh{data = 1}, [&](auto& e, auto&, auto&) {
    const Matrix transposed = matrix.transpose();
    CHECK(said_by([&] { e.input(0, transposed); }).second ==
          "input 0 is f64[4/data, 6], but was given a matrix of 6 rows, which are not its first dimensions; give one "
          "of its shape, or the transpose");
    CHECK(said_by([&] { e.input(0, Eigen::MatrixXd(matrix.transpose())); }).second ==
          "input 0 is f64[4/data, 6], but was given a matrix of 6 rows, which are not its first dimensions; give one "
          "of its shape, or the transpose");
    const Matrix one_row = Eigen::Map<const Matrix>(x.data(), 1, rows * width);
    e.input(0, one_row);  // one row of all is no mistake
  });
}
TEST_CASE("parameters are checked where they are set and got, and belong to a rank") {
  on_ranks<Fit>(Mesh{data = 2}, [](auto& e, Parameters& parameters, Threads& world) {
    const Plan& plan = e.plan();
    std::vector<double> w(width * width, 1), short_w(7);
    parameters.set(plan, world.rank(), "w", w);
    CHECK(said_by([&] { parameters.set(plan, world.rank(), "w", short_w); }) ==
          Said{70,
               "the parameter w is f64[6, 6] and has 36 elements, but what was given has 7; give all of the whole "
               "tensor, of which a rank has a part"});
    CHECK(said_by([&] { parameters.get(plan, world.rank(), "w", short_w); }).first == 70);
    CHECK(said_by([&] {
            parameters.get(plan, world.rank(), "w", std::span<double>(static_cast<double*>(nullptr), 36));
          }).second == "the parameter w is f64[6, 6], but was given a null pointer; give 36 elements");
    CHECK(said_by([&] { parameters.set(plan, world.rank(), "v", w); }) ==
          Said{70, "the model has no parameter v; it has w, b"});
    CHECK(said_by([&] { parameters.set(plan, world.rank(), "w", std::vector<float>(36)); }).first == 70);
    CHECK(Parameters::names(plan) == std::vector<std::string>{"w", "b"});
    const int other = 1 - world.rank();
    const Said wrong_rank{
        78, "the parameters of rank " + std::to_string(world.rank()) + " are given to rank " + std::to_string(other) +
                "; make them with the rank of the communicator, Parameters(plan, world.rank(), seed)"};
    CHECK(said_by([&] { parameters.get(plan, other, "w", w); }) == wrong_rank);
  });
  const OwnedPlan plan = derive<Fit>(Mesh{data = 2});
  const auto all_of_rank_0 = [&] {
    run_threads(2, [&](Threads& world) {
      Parameters parameters(plan, 0, 5);
      Executor<Threads, CpuDouble> executor(plan, world, parameters);
    });
  };
  CHECK(said_by(all_of_rank_0).first == 78);
}
namespace {
struct Wide {
  Parameter<double, Shape<width / data, width>> rows_of{zeros};
  Parameter<double, Shape<3, width, 4 / data>> deep{zeros};
  constexpr auto operator()(Distributed auto in) const { return mean(in) + mean(rows_of) + mean(deep); }
};
}  // namespace
TEST_CASE("a matrix is taken and filled as it lies") {
  using Columns = Eigen::MatrixXd;
  const auto number = [](auto row, auto column) { return static_cast<double>(100 * row + column); };
  const Columns given = Columns::NullaryExpr(width, width, number), deep = Columns::NullaryExpr(3 * width, 4, number);
  Columns got = Columns::Zero(width, width), got_deep = Columns::Zero(3 * width, 4);
  Columns large = Columns::Zero(2 * width, 2 * width);
  Eigen::VectorXd flat = Eigen::VectorXd::Zero(width * width), apart = Eigen::VectorXd::Zero(2 * width * width);
  on_ranks<Evaluation<Wide, Batch>>(Mesh{data = 2}, [&](auto& e, Parameters& parameters, Threads& world) {
    const Plan& plan = e.plan();
    parameters.set(plan, world.rank(), "rows_of", given);
    parameters.set(plan, world.rank(), "deep", deep);
    parameters.get(plan, world.rank(), "rows_of", got);
    parameters.get(plan, world.rank(), "deep", got_deep);
    parameters.get(plan, world.rank(), "rows_of", large.block(1, 2, width, width));
    parameters.get(plan, world.rank(), "rows_of", flat);
    parameters.get(
        plan, world.rank(), "rows_of",
        Eigen::Map<Eigen::VectorXd, 0, Eigen::InnerStride<>>(apart.data(), width * width, Eigen::InnerStride<>(2)));
    CHECK(said_by([&] { parameters.set(plan, world.rank(), "deep", Columns::Zero(4, 3 * width).eval()); }).second ==
          "the parameter deep is f64[3, 6, 4/data], but was given a matrix of 4 rows, which are not its first "
          "dimensions; give one of its shape, or the transpose");
  });
  CHECK(got == given);
  CHECK(got_deep == deep);
  CHECK(large.block(1, 2, width, width) == given);
  CHECK(std::count(large.data(), large.data() + large.size(), 0.0) == 3 * width * width + 1);
  CHECK(flat.reshaped<Eigen::RowMajor>(width, width) == given);
  CHECK(std::count(apart.data(), apart.data() + apart.size(), 0.0) == width * width + 1);
  CHECK(apart[2] == given(0, 1));
}
TEST_CASE("a rank's part is seen as a span and as a matrix") {
  on_ranks<Evaluation<Wide, Batch>>(Mesh{data = 2}, [&](auto& e, auto&, Threads& world) {
    std::vector<double> given(width * width);
    for (std::size_t i = 0; i < given.size(); ++i) given[i] = static_cast<double>(i);
    e.set("rows_of", given);
    const View part = e.member(0);
    const auto own = as_matrix<double>(part);
    CHECK(own.rows() == width / 2);
    CHECK(own.cols() == width);
    CHECK(own(1, 2) == static_cast<double>((part.offset[0] + 1) * width + 2));
    CHECK(part.span<const double>().size() == width * width / 2);
    CHECK(part.span<double>().data() == own.data());
    as_matrix<double>(part).setConstant(world.rank());
    CHECK(as_matrix<const double>(e.member(0))(2, 3) == world.rank());
    const Said early{70, "output 0 is asked for before the first step; run the program first"};
    CHECK(said_by([&] { e.output(0); }) == early);
    const auto answer = as_matrix<const double>(e(std::vector<double>(rows * width)).output(0));
    CHECK(answer.rows() == 1);
    CHECK(answer.cols() == 1);
    CHECK(said_by([&] { as_matrix<double>(e.member(1)); }) ==
          Said{70,
               "a view of 3 dimensions is taken for a matrix; take its elements by span(), or map its data by rows and "
               "columns of your own"});
    CHECK(said_by([&] { as_matrix<float>(part); }).first == 70);
    View nothing = part;
    nothing.data = nullptr;
    CHECK(as_matrix<double>(nothing).size() == 0);
    CHECK(nothing.span<double>().empty());
  });
}
TEST_CASE("outputs and members are those that there are") {
  on_ranks<Fit>(Mesh{data = 1}, [](auto& e, auto&, auto&) {
    CHECK(said_by([&] { e.output(9); }) == Said{70, "there is no output 9; the program's are counted from 0 to 1"});
    CHECK(said_by([&] { e.output(-1); }).first == 70);
    CHECK(said_by([&] { e.output_scalar(2); }).first == 70);
    CHECK(said_by([&] { e.member(99); }) == Said{70, "there is no member 99; the program's are counted from 0 to 7"});
    CHECK(said_by([&] { e.member(-1); }).first == 70);
    CHECK(e.member(7).size[0] == width);
  });
  on_ranks<Evaluation<Linear, Batch>>(Mesh{data = 1}, [](auto& e, auto&, auto&) {
    CHECK(said_by([&] { e.output_scalar(0); }).second ==
          "output 0 is f64[4/data, 6], no single number on this rank; ask for output(0)");
  });
}
TEST_CASE("an index or target that is out of its range is named with its place, on every rank alike") {
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}, Mesh{data = 2, tensor = 2}}) {
    std::vector<Said> said(static_cast<std::size_t>(mesh.ranks()));
    on_ranks<Classify>(mesh, [&](auto& e, auto&, Threads& world) {
      e.input(0, std::array{0, 7, 1, 2});
      e.input(1, std::array{9, -1, 0, 3});  // -1 is ignored
      e.run();
      CHECK(std::isfinite(e.output_scalar(0)));
      said[static_cast<std::size_t>(world.rank())] = said_by([&] { e.input(1, std::array{0, 1, 2, 10}); });
      CHECK(said_by([&] {
              e.input(1, std::array{0, -100, 2, 3});
            }).second ==
            "input 1, element 1: target -100 of 10 classes; mend the data, which counts from 0 to 9; left out is -1, "
            "<classes, -1>, not -100");
      for (const int wrong : {8, -1, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()})
        CHECK(said_by([&] {
                e.input(0, std::array{0, 1, wrong, 3});
              }) == Said{65, "input 0, element 2: index " + std::to_string(wrong) +
                                 " of a table of 8 rows; mend the data, which counts from 0 to 7"});
    });
    for (const Said& s : said)
      CHECK(s == Said{65, "input 1, element 3: target 10 of 10 classes; mend the data, which counts from 0 to 9"});
  }
}
namespace {
/// What is drawn token by token, and looks tokens up.
struct Recall {
  Parameter<double, Shape<words, classes>> table{normal(0.4)};
  constexpr auto operator()(Distributed auto word, Distributed auto position) const {
    return mean(remember<0, 2 * batch>(embedding(word, table), position));
  }
};
}  // namespace
TEST_CASE("where a program remembers, an index of -1 is said to be what is drawn behind the room") {
  on_ranks<Evaluation<Recall, Tensor<int, Shape<batch>>, Tensor<int, Shape<>>>>(Mesh{}, [](auto& e, auto&, auto&) {
    const std::string wrong =
        "input 0, element 1: index -1 of a table of 8 rows; mend the data, which counts from 0 to 7";
    CHECK(said_by([&] {
            e.input(0, std::array{0, -1, 2, 3});
          }).second ==
          wrong + "; sample draws -1 where logits are no numbers, as at a position that remember has no room for");
    CHECK(said_by([&] {
            e.input(0, std::array{0, -2, 2, 3});
          }).second == "input 0, element 1: index -2 of a table of 8 rows; mend the data, which counts from 0 to 7");
  });
}
TEST_CASE("what was written in place is looked at when the step begins") {
  on_ranks<Classify>(Mesh{data = 2}, [](auto& e, auto&, Threads& world) {
    e.input(0, std::array{0, 1, 2, 3});
    int* const targets = e.input(1).template as<int>();
    targets[0] = targets[1] = 4 + world.rank();
    e.run();
    targets[1] = 10;
    CHECK(said_by([&] { e.run(); }).second == "input 1, element " + std::to_string(2 * world.rank() + 1) +
                                                  ": target 10 of 10 classes; mend the data, which counts from 0 to 9");
  });
}

namespace {
template <class T>
struct Passes {
  Parameter<T, Shape<width>> w{normal(0.4)};
  constexpr auto operator()(Distributed auto features, Distributed auto passed) const {
    const auto losses = binary_cross_entropy(cast<T>(sum<1>(features * w)), to<Shape<batch / data>>(passed));
    return mean(cast<float>(reshape<2, 2>(losses)));
  }
};
/// The same of targets that are not all known, and of those that stand where they are used.
struct Known {
  Parameter<float, Shape<width>> w{normal(0.4)};
  constexpr auto operator()(Distributed auto features, Distributed auto passed) const {
    const auto losses = binary_cross_entropy(sum<1>(features * w), passed);
    return mean(where(passed < 0.F, constant<float, Shape<>>(0), losses)) + mean(losses * cast<float>(passed >= 0.F));
  }
};
struct Unmoved {
  Parameter<float, Shape<width>> w{normal(0.4)};
  constexpr auto operator()(Distributed auto features, Distributed auto passed) const {
    return mean(binary_cross_entropy(sum<1>(features * w), passed));
  }
};
template <class T>
using OnCpu = std::conditional_t<std::is_same_v<T, double>, CpuDouble, Cpu>;
/// On one rank and on two: what is said of targets that a loss of probabilities cannot have.
template <class T>
void check_targets(T wrong, const std::string& as) {
  using Rows = Tensor<T, Shape<batch / data, width>>;
  using Step = Evaluation<Passes<T>, Rows, Tensor<T, Shape<batch>>>;
  const T none = T(0.F), half = T(0.5F), all = T(1.F), no_number = T(std::numeric_limits<float>::quiet_NaN());
  const std::vector<T> features(batch * width, T(0.5F));
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}}) {
    const OwnedPlan plan = derive<Step>(mesh);
    run_threads(mesh.ranks(), [&](Threads& world) {
      Parameters parameters(plan, world.rank(), 5);
      Executor<Threads, OnCpu<T>> e(plan, world, parameters);
      e.input(0, features);
      e.input(1, std::array{none, half, all, T(-0.F)});
      e.run();
      CHECK(std::isfinite(e.output_scalar(0)));
      e.input(1, std::array{none, no_number, all, all});
      e.run();
      CHECK(std::isnan(e.output_scalar(0)));
      CHECK(said_by([&] {
              e.input(1, std::array{none, half, wrong, all});
            }) ==
            Said{65, "input 1, element 2: target " + as +
                         " of a binary cross entropy, which takes 0, 1 or what is between; mend the data, as (y + 1) / "
                         "2 of classes -1 and 1, or multiply the losses of targets that are not known by 0"});
      CHECK(said_by([&] {
              e.input(1, [&](std::int64_t i) { return i == 3 ? wrong : all; });
            }).second.find("input 1, element 3: target " + as + " of") == 0);
      e.input(1).template as<T>()[1] = wrong;
      CHECK(said_by([&] { e.run(); }).second.find("input 1, element 1: target " + as + " of") == 0);
    });
  }
}
}  // namespace
TEST_CASE("a target of a binary cross entropy that is no probability is named with its place") {
  check_targets<float>(-1, "-1");
  check_targets<float>(1.1F, "1.1");
  check_targets<double>(1.1, "1.1");
  check_targets<bfloat16>(bfloat16(-1.F), "-1");
  check_targets<float16>(float16(2.F), "2");
}
TEST_CASE("targets that the losses leave out, and those of other ranks, may be anything") {
  using Rows = Tensor<float, Shape<batch / data, width>>;
  using Targets = Tensor<float, Shape<batch / data>>;
  const std::vector<float> features(batch * width, 0.5F);
  const OwnedPlan known = derive<Evaluation<Known, Rows, Targets>>(Mesh{data = 2}),
                  all = derive<Evaluation<Unmoved, Rows, Targets>>(Mesh{data = 2});
  run_threads(2, [&](Threads& world) {
    const auto result = [&](const OwnedPlan& plan, const std::array<float, batch>& targets) {
      Parameters parameters(plan, world.rank(), 5);
      Executor<Threads, Cpu> e(plan, world, parameters);
      e(features, targets);
      return e.output_scalar(0);
    };
    CHECK(std::isfinite(result(known, {-1, 0, 1, -1})));
    const float other = -5;
    CHECK(std::isfinite(world.rank() == 0 ? result(all, {0, 1, other, other}) : result(all, {other, other, 0, 1})));
  });
}

namespace {
/// Words that are gathered, reshaped and turned, in micro-batches; and numbers of which a part only is looked up, or
/// something else than they are.
struct Roundabout {
  Parameter<double, Shape<words, classes>> table{normal(0.4)};
  constexpr auto operator()(Distributed auto word, Distributed auto target, Distributed auto other) const {
    const auto found = embedding(transpose(reshape<2, 2>(to<Shape<batch>>(word))), table);
    const auto shifted = embedding(other + other, table);
    const auto first = embedding(slice<0, 0, 1>(other), table);
    return mean(cross_entropy(reshape<batch, classes>(found), to<Shape<batch>>(target))) + sum(shifted) + sum(first);
  }
};
}  // namespace

namespace {
struct Picking {
  Parameter<double, Shape<batch / data, classes>> table{normal(0.4)};
  constexpr auto operator()(Distributed auto picked, Distributed auto added) const {
    const auto some = gather<1>(table, picked);
    return mean(square(scatter_add<1>(table, added, some)));
  }
};
}  // namespace
TEST_CASE("indices along a dimension are checked where they are given") {
  using Indices = Tensor<int, Shape<batch / data, 2>>;
  on_ranks<Training<Picking, Sgd, Indices, Indices>>(Mesh{data = 2}, [](auto& e, auto&, auto&) {
    CHECK(said_by([&] {
            e.input(0, std::array{0, 1, 2, 3, 4, 10, 6, 7});
          }).second.find("input 0, element 5: index 10 of a table of 10 rows") == 0);
    CHECK(said_by([&] {
            e.input(1, std::array{0, 1, 2, -1, 4, 5, 6, 7});
          }).second.find("input 1, element 3: index -1 of a table of 10 rows") == 0);
  });
}

TEST_CASE("indices are followed through moves, micro-batches and reshapes, and no further") {
  using Step = Accumulate<2, Training<Roundabout, AdamW, Words, Words, Tensor<int, Shape<2>>>>;
  on_ranks<Step>(Mesh{data = 2}, [](auto& e, auto&, auto&) {
    const std::vector<int> good{0, 1, 2, 3, 4, 5, 6, 7};
    CHECK(said_by([&] {
            e.input(0, std::array{0, 1, 2, 3, 4, 5, 8, 7});
          }).second.find("input 0, element 6: index 8 of a table of 8 rows") == 0);
    CHECK(said_by([&] {
            e.input(1, std::array{0, 1, 2, 3, 4, 10, 6, 7});
          }).second.find("input 1, element 5: target 10 of 10 classes") == 0);
    CHECK(said_by([&] {
            e.input(1, std::array{0, -100, 2, 3, 4, 5, 6, 7});
          }).second ==
          "input 1, element 1: target -100 of 10 classes; mend the data, which counts from 0 to 9, or leave "
          "it out by the loss's second number, as in mean_cross_entropy<0, -100>");
    e.input(0, good);
    e.input(1, good);
    e.input(2, std::array{0, 1000, 3, 1000});  // nobody looks up the second of two
    e.run();
    CHECK(std::isnan(e.output_scalar(0)));  // but twice 1000
    CHECK(e.skipped());
  });
}
namespace {
/// The gradient of a target that is no class is a finite number, only the loss is not. It is computed, so that nobody
/// can look at it before.
struct Late {
  Parameter<double, Shape<words, classes>> table{normal(0.4)};
  constexpr auto operator()(Distributed auto word, Distributed auto target) const {
    return mean(cross_entropy(embedding(word, table), target + target));
  }
};
}  // namespace

TEST_CASE("a step whose loss is no number changes neither state nor counters") {
  const auto run = []<class Optimizer>(Optimizer, const Mesh& mesh) {
    const OwnedPlan plan = derive<Training<Late, Optimizer, Words, Words>>(mesh);
    run_threads(mesh.ranks(), [&](Threads& world) {
      Parameters parameters(plan, world.rank(), 5);
      Trainer<Threads, CpuDouble> trainer(plan, world, parameters,
                                          typename Optimizer::Hyperparameters{.learning_rate = 0.5}, 1);
      const auto held = [&] {
        std::vector<double> all;
        for (int m = 0; m < static_cast<int>(plan->graph.members.size()); ++m) {
          const View v = trainer.executor().member(m);
          if (plan->graph.member(m).role != Role::input)
            all.insert(all.end(), v.as<double>(), v.as<double>() + v.elements());
        }
        return all;
      };
      trainer.executor().input(0, std::array{0, 1, 2, 3});
      trainer.executor().input(1, std::array{0, 1, 2, 3});
      trainer.step();
      const std::vector<double> before = held();
      trainer.executor().input(1, std::array{0, 1, 2, 5});
      const Said stopped = said_by([&] { trainer.step(); });
      CHECK(stopped.first == exit_code::failed);
      CHECK(stopped.second.find("the loss is nan in step 2, in which nothing was updated; lower the learning rate") ==
            0);
      trainer.on_no_number(NoNumber::skips);
      const StepResult skipped = trainer.step();
      CHECK(skipped.skipped);
      CHECK(std::isnan(skipped.loss));
      CHECK(std::isfinite(skipped.gradient_norm));
      CHECK(held() == before);
      trainer.executor().input(1, std::array{0, 1, 2, 3});
      CHECK_FALSE(trainer.step().skipped);
      const std::vector<double> after = held();
      // The same two steps without the two between: also the optimizer's count has not moved.
      Parameters others(plan, world.rank(), 5);
      Trainer<Threads, CpuDouble> undisturbed(plan, world, others,
                                              typename Optimizer::Hyperparameters{.learning_rate = 0.5}, 1);
      undisturbed.executor().input(0, std::array{0, 1, 2, 3});
      undisturbed.executor().input(1, std::array{0, 1, 2, 3});
      undisturbed.step();
      undisturbed.step();
      for (int m = 0, at = 0; m < static_cast<int>(plan->graph.members.size()); ++m) {
        if (plan->graph.member(m).role == Role::input) continue;
        const View v = undisturbed.executor().member(m);
        for (std::int64_t i = 0; i < v.elements(); ++i)
          CHECK(v.as<double>()[i] == after[static_cast<std::size_t>(at++)]);
      }
    });
  };
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}}) {
    run(AdamW{}, mesh);
    run(Sgd{}, mesh);
    run(Momentum{}, mesh);
  }
}
TEST_CASE("an own loop that sets a learning rate trains as PyTorch's AdamW would") {
  std::vector<double> own(width * width), trained(width * width);
  const OwnedPlan plan = derive<Fit>(Mesh{data = 1});
  run_threads(1, [&](Threads& world) {
    Parameters parameters(plan, 0, 5), others(plan, 0, 5);
    Executor<Threads, CpuDouble> executor(plan, world, parameters);
    executor.input(0, x);
    executor.input(1, y);
    executor.scalar("learning_rate", 1e-2);
    Trainer<Threads, CpuDouble> trainer(
        plan, world, others,
        {.learning_rate = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01, .clip_norm = 0},
        1);
    trainer.executor().input(0, x);
    trainer.executor().input(1, y);
    for (int step = 0; step < 5; ++step) {
      executor.run();
      trainer.executor().scalar("step", step + 1);
      trainer.step();
    }
    CHECK(executor.output_scalar(0) == trainer.executor().output_scalar(0));
    parameters.get(plan, 0, "w", own);
    others.get(plan, 0, "w", trained);
    // Going on from a count of steps that is given.
    executor.scalar("step", 1);
    trainer.executor().scalar("step", 1);
    executor.run();
    trainer.step();
    CHECK(executor.output_scalar(0) == trainer.executor().output_scalar(0));
  });
  CHECK(own == trained);
}
TEST_CASE("a number that the program does not read is refused with those that it reads") {
  on_ranks<Fit>(Mesh{data = 1}, [](auto& e, auto&, auto&) {
    CHECK(said_by([&] { e.scalar("lerning_rate", 1e-3); }) ==
          Said{70,
               "the program reads no number 'lerning_rate'; it reads clip_norm, learning_rate, beta1, beta2, epsilon, "
               "weight_decay, step"});
    CHECK(e.reads("learning_rate"));
    CHECK_FALSE(e.reads("momentum"));
  });
  on_ranks<Evaluation<Linear, Batch>>(Mesh{data = 1}, [](auto& e, auto&, auto&) {
    CHECK(said_by([&] { e.scalar("step", 1); }).second == "the program reads no number 'step'; it reads none");
  });
  const OwnedPlan plan = derive<Fit>(Mesh{data = 1});
  run_threads(1, [&](Threads& world) {
    Parameters parameters(plan, 0, 5);
    using T = Trainer<Threads, CpuDouble>;
    CHECK(said_by([&] {
            T(plan, world, parameters, Momentum::Hyperparameters{}, 1);
          }).second.find("the hyperparameters are another optimizer's than the program's, which updates by adamw; ") ==
          0);
    struct Own {
      double momentum = 0.5;
    };
    CHECK(said_by([&] {
            T(plan, world, parameters, Own{}, 1);
          }).second.find("the program reads no number 'momentum'; it reads ") == 0);
    CHECK(said_by([&] { T(plan, world, parameters, {.beta1 = -0.9}, 1); }).second ==
          "the number beta1 is -0.9; give a number from 0 on and below 1");
    T trainer(plan, world, parameters, {}, 1);
    CHECK(said_by([&] { trainer.step(-1e-3); }).second ==
          "the number learning_rate is -0.001; give a number from 0 on");
  });
}
TEST_CASE("a text has an end") {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / ("text-" + std::to_string(getpid()));
  std::ofstream(file) << std::string(100000, 'a');
  CHECK(read_file(file) == std::string(100000, 'a'));
  CHECK(read_file(file, 100000).size() == 100000);
  CHECK(said_by([&] { read_file(file, 99999); }) ==
        Said{65, file.string() + " has more than 99999 bytes; name a smaller text"});
  CHECK(said_by([] { read_file("/dev/zero"); }) == Said{66, "/dev/zero is a device; name a text file"});
  std::filesystem::remove(file);
}
TEST_CASE("what a training is made of is looked at where it is made, and a loss that is none in its first step") {
  on_ranks<Fit>(Mesh{data = 2}, [](auto& e, auto& parameters, Threads& world) {
    const Plan& plan = e.plan();
    CHECK(said_by([&] { Parameters(plan, 2, 1); }) ==
          Said{78,
               "parameters are made for rank 2, but data=2 has 2, counted from 0; give the communicator's, "
               "world.rank()"});
    CHECK(said_by([&] { Parameters(plan, -1, 1); }).first == 78);
    Trainer<Threads, CpuDouble> trainer(plan, world, parameters, {.learning_rate = 1e-2}, 1);
    CHECK(said_by([&] { trainer.executor().scalar("step", 0); }).second ==
          "the number step is 0; give a whole number from 1 on, as a training counts its steps");
    CHECK(said_by([&] { trainer.compare_replicas_every(-1); }).second ==
          "replicas are to be compared every -1 steps; give a number from 1 on, or 0 for never");
    std::vector<double> none = x;
    none[3] = std::numeric_limits<double>::quiet_NaN();
    CHECK(said_by([&] { trainer(none, y); }) ==
          Said{1,
               "the loss is nan in step 1, in which nothing was updated; look at the data and at what the parameters "
               "begin with: PARALLEL_CHECK=finite names what made it"});
  });
  on_ranks<Evaluation<Linear, Batch>>(Mesh{data = 2}, [](auto& e, auto& parameters, Threads& world) {
    CHECK(
        said_by([&] { Trainer<Threads, CpuDouble>(e.plan(), world, parameters, {.learning_rate = 1e-2}, 1); }).second ==
        "a Trainer is made of an evaluation, which updates nothing; run it by Executor<Threads, Cpu> "
        "evaluate(plan, world, parameters)");
  });
}
TEST_CASE("a text has the windows that it has") {
  const std::string text(1000, 'a');
  const auto made = [&](int context, double validation) {
    return said_by([&] { TextData(text, "text", context, validation); }).second;
  };
  CHECK(made(0, 0.1) == "an example of text has a context of 0; give one token or more");
  CHECK(made(-1, 0.1) == "an example of text has a context of -1; give one token or more");
  for (const double validation : {-1.0, 0.0, 1.0, std::numeric_limits<double>::quiet_NaN()})
    CHECK(made(8, validation).find("; give a number above 0 and below 1, as 0.1") != std::string::npos);
  const TextData whole(text, "text", 8);
  std::vector<int> tokens, targets;
  CHECK(whole.validation_windows() == 12);
  whole.validation_window(11, tokens, targets);
  CHECK(tokens.size() == 8);
  for (const int i : {-1, 12, std::numeric_limits<int>::max()})
    CHECK(said_by([&] { whole.validation_window(i, tokens, targets); }).second ==
          "window " + std::to_string(i) + " is asked for, but the validation part has 12, counted from 0");
  CHECK(said_by([&] { whole.batch(1, 1, -1, tokens, targets); }).first == 70);
}
