// The optimizer's kernels against PyTorch's formulas, written out in double.
#include <parallel/operation/remember.hpp>
#include <parallel/operation/update.hpp>

#include "device.hpp"

using namespace parallel;

TEST_CASE_TEMPLATE("the norm of gradients and its factor", T, float, double) {
  for (const Sizes& sizes : {Sizes{}, Sizes{5}, Sizes{3, 1031}}) {
    const Numbers g = normal_numbers(sizes, 1);
    double expected = 0;
    for (const double v : g.values) expected += v * v;
    check_near(Run<T>().operand(g).template result<double>({}).run(operation::square_sum), Numbers(Sizes{}, expected),
               1e-14);
  }
  Numbers large({1000}, 1e30);
  check_near(Run<T>().operand(large).template result<double>({}).run(operation::square_sum), Numbers(Sizes{}, 1e63),
             1e-6);
}
TEST_CASE("sums of squares add up; the factor clips") {
  check_near(Run<double>().scalar(2).scalar(3).result({}).run(operation::add_scalars), Numbers(Sizes{}, 5), 0);
  const auto clip = [](double total, double limit, double loss = 3) {
    Run<double> run;
    run.scalar(total).scalars({9, limit}).scalar(loss).result({}).result({}).result({}).ints({1}).run(operation::clip);
    return std::vector<double>{run.get(0).values[0], run.get(1).values[0], run.get(2).values[0]};
  };
  CHECK(clip(16, 1) == std::vector<double>{4, 1 / (4 + 1e-6), 1});
  CHECK(clip(16, 5) == std::vector<double>{4, 1, 1});
  CHECK(clip(16, 0) == std::vector<double>{4, 1, 1});
  CHECK(clip(16, -1) == std::vector<double>{4, 1, 1});
  CHECK(clip(std::numeric_limits<double>::infinity(), 1)[2] == 0);
  CHECK(clip(std::numeric_limits<double>::quiet_NaN(), 1)[2] == 0);
  CHECK(clip(16, 5, -std::numeric_limits<double>::infinity()) == std::vector<double>{4, 1, 0});
  CHECK(clip(16, 5, std::numeric_limits<double>::quiet_NaN()) == std::vector<double>{4, 1, 0});
}
TEST_CASE_TEMPLATE("a loss of any element type that is no number", T, float, double, bfloat16) {
  for (const double loss : {1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    Run<T> run;
    run.scalar(16)
        .scalars({0})
        .operand(Numbers(Sizes{}, loss))
        .template result<double>({})
        .template result<double>({})
        .template result<double>({});
    run.ints({0}).run(operation::clip);
    CHECK(run.get(2).values[0] == (loss == 1 ? 1 : 0));
  }
}
TEST_CASE_TEMPLATE("ten steps of stochastic gradient descent", T, float, double) {
  for (const bool decays : {true, false}) {
    const Sizes sizes{7, 153};
    Numbers p = normal_numbers(sizes, 1), m(sizes);
    const double rate = 0.125, momentum = 0.875, decay = 0.25, factor = 0.5;
    Run<T> run;
    run.operand(p)
        .operand(m)
        .operand(normal_numbers(sizes, 2))
        .scalar(factor)
        .scalars({decay, rate, momentum})
        .result_in_place(0)
        .result_in_place(1);
    run.ints({1, 2, 0, decays});
    for (unsigned step = 1; step <= 10; ++step) {
      const Numbers g = normal_numbers(sizes, 100 + step);
      T* data = run.call().operands[2].template as<T>();
      for (std::size_t i = 0; i < g.values.size(); ++i) data[i] = static_cast<T>(g.values[i]);
      run.run(operation::sgd);
      for (std::size_t i = 0; i < p.values.size(); ++i) {
        const double gradient = factor * g.values[i] + (decays ? decay : 0) * p.values[i];
        m.values[i] = step == 1 ? gradient : momentum * m.values[i] + gradient;
        p.values[i] -= rate * m.values[i];
      }
    }
    check_near(run.get(0), p, 2 * tolerance<T>);
    check_near(run.get(1), m, 2 * tolerance<T>);
  }
}
TEST_CASE_TEMPLATE("ten steps of AdamW", T, float, double) {
  for (const bool decays : {true, false}) {
    const Sizes sizes{7, 153};
    Numbers p = normal_numbers(sizes, 1), m(sizes), v(sizes);
    const double rate = 1e-2, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8, decay = 0.1, factor = 0.3;
    Run<T> run;
    run.operand(p)
        .operand(m)
        .operand(v)
        .operand(normal_numbers(sizes, 2))
        .scalar(factor)
        .scalars({epsilon, 1, rate, beta1, beta2, decay});
    run.result_in_place(0).result_in_place(1).result_in_place(2).ints({2, 3, 4, 0, 5, 1, decays});
    for (int step = 1; step <= 10; ++step) {
      const Numbers g = normal_numbers(sizes, static_cast<unsigned>(100 + step));
      T* data = run.call().operands[3].template as<T>();
      for (std::size_t i = 0; i < g.values.size(); ++i) data[i] = static_cast<T>(g.values[i]);
      run.call().operands[5].template as<double>()[1] = step;
      run.run(operation::adamw);
      for (std::size_t i = 0; i < p.values.size(); ++i) {
        const double gradient = factor * g.values[i];
        p.values[i] *= 1 - rate * (decays ? decay : 0);
        m.values[i] += (gradient - m.values[i]) * (1 - beta1);
        v.values[i] = v.values[i] * beta2 + (1 - beta2) * gradient * gradient;
        p.values[i] -= rate / (1 - std::pow(beta1, step)) * m.values[i] /
                       (std::sqrt(v.values[i]) / std::sqrt(1 - std::pow(beta2, step)) + epsilon);
      }
    }
    check_near(run.get(0), p, 2 * tolerance<T>);
    check_near(run.get(1), m, 2 * tolerance<T>);
    check_near(run.get(2), v, 2 * tolerance<T>);
  }
}

#if defined(PARALLEL_TEST_CUDA)
TEST_CASE_TEMPLATE("an update is left out where the scalar says so", T, float, double) {
  for (const double commits : {0.0, 1.0})
    for (const Sizes& sizes : {Sizes{33}, Sizes{4, 64}}) {
      const Numbers x = normal_numbers(sizes, 1),
                    other = defined(sizes, [&](const Sizes&i) { return std::abs(x(i)) + 1; });
      const auto changes = [&](const Operation& operation, Run<T> run) {
        CAPTURE(operation.name);
        run.scalar(commits).result_in_place(0);  // what decides comes behind the operands
        const Numbers found = run.run([&](Call& call) {
          const Kernel kernel = test_device().kernel(operation, call);
          call.commit = call.operands[call.operands.size() - 1].template as<const double>();
          kernel(call);
        });
        CHECK((found.values != x.values) == (commits != 0));
      };
      changes(operation::accumulate, std::move(Run<T>().operand(x).operand(other)));
      changes(operation::write, std::move(Run<T>().operand(x).operand(other).integers(Numbers(Sizes{}, 0)).ints({0})));
      Run<T> sgd, adamw;
      sgd.operand(x).operand(other).operand(other).scalar(1).scalars({0.1, 0.1, 0.1}).ints({0, 1, 2, 1});
      adamw.operand(x)
          .operand(other)
          .operand(other)
          .operand(other)
          .scalar(1)
          .scalars({0.1, 0.9, 0.99, 1e-8, 0.1, 1})
          .ints({0, 1, 2, 3, 4, 5, 1});
      sgd.result_in_place(0).result_in_place(1);
      adamw.result_in_place(0).result_in_place(1).result_in_place(2);
      changes(operation::sgd, std::move(sgd));
      changes(operation::adamw, std::move(adamw));
    }
}
#endif
