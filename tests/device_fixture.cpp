// Kernels against PyTorch: every operation of the fixture, forward and backward, by the nodes that it becomes.
#include <parallel/operation/attention.hpp>
#include <parallel/operation/cross_entropy.hpp>
#include <parallel/operation/embedding.hpp>
#include <parallel/operation/matmul.hpp>
#include <parallel/operation/norm.hpp>
#include <parallel/operation/where.hpp>

#include "device.hpp"
#include "fixture.hpp"

using namespace parallel;
using namespace parallel::internals;

namespace {
/// The tensors of one operation of the fixture.
struct Reference {
  std::string name;
  Numbers at(const std::string& what) const {
    const FixtureTensor& t = fixture()["operation/" + name + "/" + what];
    return {t.sizes, t.values};
  }
  Numbers input(const std::string& what) const { return at("input/" + what); }
  Numbers g() const { return at("cotangent"); }
  void check_output(const Numbers& y) const { check_near(y, at("output"), 1e-5); }
  void check_gradient(const std::string& of, const Numbers& found) const {
    check_near(found, at("gradient/" + of), 1e-5);
  }
};
constexpr double epsilon = 1e-5;
}  // namespace

TEST_CASE_TEMPLATE("layer norm and RMS norm", T, float, double) {
  for (const bool centered : {true, false}) {
    const Reference ref{centered ? "layer_norm" : "rms_norm"};
    const Numbers x = ref.input("x"), gain = ref.input("gain"), g = ref.g();
    const Sizes rows{x.sizes[0]};
    const double share = 1 / static_cast<double>(x.sizes[1]);
    const auto with = [&](Run<T> run, const std::vector<const Numbers*>& operands) {
      for (const Numbers* n : operands) run.operand(*n);
      run.reals(share, epsilon);
      return run;
    };
    const Numbers mean = centered ? with({}, {&x}).result(rows).run(operation::row_mean) : Numbers{};
    const Numbers variance = centered ? with({}, {&x, &mean}).result(rows).run(operation::row_variance)
                                      : with({}, {&x}).result(rows).run(operation::row_variance);
    const Numbers shift = centered ? ref.input("shift") : Numbers{};
    Run<T> forward = centered ? with({}, {&x, &mean, &variance, &gain, &shift}) : with({}, {&x, &variance, &gain});
    ref.check_output(forward.result(x.sizes).run(operation::normalize));
    Run<T> products = centered ? with({}, {&g, &x, &variance, &gain, &mean}) : with({}, {&g, &x, &variance, &gain});
    if (centered) products.result(rows);
    const Numbers a = products.result(rows).run(operation::norm_products), b = products.get(centered ? 1 : 0);
    Run<T> backward =
        centered ? with({}, {&g, &x, &variance, &gain, &mean, &a, &b}) : with({}, {&g, &x, &variance, &gain, &b});
    ref.check_gradient("x", backward.result(x.sizes).run(operation::norm_derivative));
    Run<T> parameters = centered ? with({}, {&g, &x, &variance, &mean}) : with({}, {&g, &x, &variance});
    if (centered) parameters.result(gain.sizes);
    ref.check_gradient("gain", parameters.result(gain.sizes).run(operation::norm_parameter_derivative));
    if (centered) ref.check_gradient("shift", parameters.get(1));
  }
}
TEST_CASE_TEMPLATE("softmax", T, float, double) {
  const Reference ref{"softmax"};
  const Numbers x = ref.input("x"), g = ref.g();
  const Sizes rows{x.sizes[0]};
  const Numbers largest = Run<T>().operand(x).result(rows).ints({1}).run(operation::local_max);
  const Numbers sum = Run<T>().operand(x).operand(largest).result(rows).ints({1}).run(operation::sum_of_exponentials);
  const Numbers y = Run<T>().operand(x).operand(largest).operand(sum).result(x.sizes).ints({1}).run(
      operation::normalized_exponential);
  ref.check_output(y);
  const Numbers inner = Run<T>().operand(y).operand(g).result(rows).ints({1}).run(operation::row_product);
  ref.check_gradient(
      "x", Run<T>().operand(y).operand(g).operand(inner).result(x.sizes).ints({1}).run(operation::softmax_derivative));
}
TEST_CASE_TEMPLATE("gelu", T, float, double) {
  for (const bool exact : {false, true}) {
    const Reference ref{exact ? "gelu_erf" : "gelu_tanh"};
    const Numbers x = ref.input("x");
    ref.check_output(Run<T>().operand(x).result(x.sizes).run(exact ? operation::gelu_erf : operation::gelu));
    ref.check_gradient("x", Run<T>().operand(x).operand(ref.g()).result(x.sizes).run(
                                exact ? operation::gelu_erf_derivative : operation::gelu_derivative));
  }
}
TEST_CASE_TEMPLATE("cross entropy", T, float, double) {
  const Reference ref{"cross_entropy"};
  const Numbers x = ref.input("logits"), target = ref.input("targets");
  const Sizes rows = target.sizes;
  const Ints classes{x.sizes.back(), no_target};
  Run<T> exponentials;
  const Numbers largest =
                    exponentials.operand(x).result(rows).result(rows).ints(classes).run(operation::class_exponentials),
                sum = exponentials.get(1);
  const Numbers picked = Run<T>().operand(x).integers(target).result(rows).ints(classes).run(operation::pick);
  ref.check_output(
      Run<T>().operand(x).integers(target).operand(largest).operand(sum).operand(picked).result(rows).ints(classes).run(
          operation::negative_log_likelihood));
  ref.check_gradient("logits", Run<T>()
                                   .operand(x)
                                   .integers(target)
                                   .operand(largest)
                                   .operand(sum)
                                   .operand(ref.g())
                                   .result(x.sizes)
                                   .ints(classes)
                                   .run(operation::cross_entropy_derivative));
}
TEST_CASE_TEMPLATE("the loss of a target that the vocabulary lacks is no number", T, float, double) {
  const Numbers x = normal_numbers({4, 3}, 1), target({4}, {2, 3, -1, 0});
  for (const Box& part : split(x.sizes, 1, 3)) {  // on every rank of a split vocabulary
    const Numbers picked =
        Run<T>().operand(x, part).integers(target).result({4}).ints({3, no_target}).run(operation::pick);
    CHECK(std::isfinite(picked.values[0]));
    CHECK(std::isnan(picked.values[1]));
    CHECK(std::isnan(picked.values[2]));
    CHECK(std::isfinite(picked.values[3]));
  }
}
TEST_CASE_TEMPLATE("attention", T, float, double) {
  for (const char* name : {"attention", "attention_grouped"}) {
    const Reference ref{name};
    const Numbers q = ref.input("q"), k = ref.input("k"), v = ref.input("v");
    const Sizes rows(q.sizes.begin(), q.sizes.end() - 1);
    const double scale = 1 / std::sqrt(static_cast<double>(q.sizes[3]));
    Run<T> forward;
    const Numbers out =
        forward.operand(q).operand(k).operand(v).result(q.sizes).result(rows).ints({1, 0, 0}).reals(scale).run(
            operation::attention);
    ref.check_output(out);
    Run<T> backward;
    backward.operand(q).operand(k).operand(v).operand(out).operand(forward.get(1)).operand(ref.g());
    ref.check_gradient("q", backward.result(q.sizes).result(k.sizes).result(v.sizes).ints({1, 0, 0}).reals(scale).run(
                                operation::attention_derivative));
    ref.check_gradient("k", backward.get(1));
    ref.check_gradient("v", backward.get(2));
  }
}
TEST_CASE_TEMPLATE("embedding", T, float, double) {
  const Reference ref{"embedding"};
  const Numbers index = ref.input("indices"), table = ref.input("table");
  ref.check_output(
      Run<T>().integers(index).operand(table).result({index.sizes[0], table.sizes[1]}).run(operation::embedding));
  ref.check_gradient(
      "table", Run<T>().integers(index).operand(ref.g()).result(table.sizes).run(operation::embedding_derivative));
}
TEST_CASE_TEMPLATE("products in batches", T, float, double) {
  const Reference ref{"batched_matmul"};
  const Numbers a = ref.input("a"), b = ref.input("b"), g = ref.g();
  ref.check_output(
      Run<T>().operand(a).operand(b).result(g.sizes).ints(operation::Product(1, 0, 0, 1)).run(operation::matmul));
  ref.check_gradient(
      "a", Run<T>().operand(g).operand(b).result(a.sizes).ints(operation::Product(1, 0, 1, 1)).run(operation::matmul));
  ref.check_gradient(
      "b", Run<T>().operand(a).operand(g).result(b.sizes).ints(operation::Product(1, 1, 0, 1)).run(operation::matmul));
}
TEST_CASE_TEMPLATE("quotients", T, float, double) {
  for (const char* name : {"divide", "divide_outer"}) {
    const Reference ref{name};
    const Numbers a = ref.input("a"), b = ref.input("b"), g = ref.g();
    const Numbers y = Run<T>().operand(a).operand(b).result(g.sizes).run(operation::divide);
    ref.check_output(y);
    const auto give = [&](const char* of, const Numbers& operand, const Numbers& value) {
      ref.check_gradient(of, Run<T>().operand(value).result(operand.sizes).run(operation::sum_to));
    };
    give("a", a, Run<T>().operand(g).operand(b).result(g.sizes).run(operation::divide));
    const Numbers inner = Run<T>().operand(g).operand(y).result(g.sizes).run(operation::multiply);
    const Numbers quotient = Run<T>().operand(inner).operand(b).result(g.sizes).run(operation::divide);
    give("b", b, Run<T>().operand(quotient).result(g.sizes).reals(-1).run(operation::scale));
  }
}
TEST_CASE_TEMPLATE("square root, choice, maximum", T, float, double) {
  const Reference root{"sqrt"}, choice{"where"}, largest{"max"};
  const Numbers x = root.input("x"), y = Run<T>().operand(x).result(x.sizes).run(operation::sqrt);
  root.check_output(y);
  const Numbers quotient = Run<T>().operand(root.g()).operand(y).result(x.sizes).run(operation::divide);
  root.check_gradient("x", Run<T>().operand(quotient).result(x.sizes).reals(0.5).run(operation::scale));

  const Numbers condition = choice.input("condition"), a = choice.input("a");
  choice.check_output(
      Run<T>().integers(condition).operand(a).operand(choice.input("b")).result(a.sizes).run(operation::where));
  choice.check_gradient(
      "a", Run<T>().integers(condition).operand(choice.g()).result(a.sizes).ints({1}).run(operation::masked));
  choice.check_gradient(
      "b", Run<T>().integers(condition).operand(choice.g()).result(a.sizes).ints({0}).run(operation::masked));

  const Numbers z = largest.input("x"),
                top = Run<T>().operand(z).result(largest.g().sizes).ints({1}).run(operation::local_max);
  largest.check_output(top);
  const Numbers count = Run<T>().operand(z).operand(top).result(top.sizes).ints({1}).run(operation::count_maxima);
  largest.check_gradient("x", Run<T>()
                                  .operand(z)
                                  .operand(top)
                                  .operand(count)
                                  .operand(largest.g())
                                  .result(z.sizes)
                                  .ints({1})
                                  .run(operation::max_derivative));
}
