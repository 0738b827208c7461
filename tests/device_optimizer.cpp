// The optimizers' kernels against formulas written out in double.
#include <parallel/operation/remember.hpp>
#include <parallel/operation/update.hpp>

#include "device.hpp"
#include "optimizer_steps.hpp"

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
TEST_CASE_TEMPLATE("ten steps of each optimizer", T, float, double) {
  optimizer_steps::each([]<class Optimizer>(Optimizer) {
    using Of = optimizer_steps::Of<Optimizer>;
    INFO(Of::update.name);
    typename Optimizer::Hyperparameters numbers{.learning_rate = 1e-2, .weight_decay = 0.1};
    if constexpr (requires { numbers.epsilon; }) numbers.epsilon = 1e-2;  // so large that it is seen
    for (const bool decays : {true, false}) {
      const Sizes sizes{7, 153};
      const double factor = 0.3;
      std::vector<Numbers> own{normal_numbers(sizes, 1)};  // the parameter, then its state
      for (int k = 0; k < Of::states; ++k) own.emplace_back(sizes);
      const auto scalars = [&](int step) {  // they stand the other way round, behind one that nobody reads
        std::vector<double> all = Of::scalars(numbers, step);
        all.push_back(7);
        std::reverse(all.begin(), all.end());
        return all;
      };
      Ints ints;
      for (int i = static_cast<int>(scalars(1).size()) - 1; i > 0; --i) ints.push_back(i);
      ints.push_back(decays);
      Run<T> run;
      for (const Numbers& x : own) run.operand(x);
      run.operand(Numbers(sizes)).scalar(factor).scalars(scalars(1)).ints(ints);
      for (int k = 0; k <= Of::states; ++k) run.result_in_place(k);
      for (int step = 1; step <= 10; ++step) {
        const Numbers g = normal_numbers(sizes, static_cast<unsigned>(100 + step));
        T* data = run.call().operands[Of::states + 1].template as<T>();
        for (std::size_t i = 0; i < g.values.size(); ++i) data[i] = static_cast<T>(g.values[i]);
        const std::vector<double> now = scalars(step);
        std::copy(now.begin(), now.end(), run.call().operands[Of::states + 3].template as<double>());
        run.run(Of::update);
        for (std::size_t i = 0; i < g.values.size(); ++i) {
          double element[3]{};
          for (std::size_t k = 0; k < own.size(); ++k) element[k] = own[k].values[i];
          Of::step(numbers, decays, factor * g.values[i], step, element);
          for (std::size_t k = 0; k < own.size(); ++k) own[k].values[i] = element[k];
        }
      }
      for (int k = 0; k <= Of::states; ++k) check_near(run.get(k), own[static_cast<std::size_t>(k)], 2 * tolerance<T>);
    }
  });
}
TEST_CASE("states in bf16: the same step in float, and what is kept is rounded to the nearest even") {
  optimizer_steps::each([]<class Optimizer>(Optimizer) {
    using Of = optimizer_steps::Of<Optimizer>;
    if constexpr (Of::states > 0) {
      INFO(Of::update.name);
      for (const Sizes& sizes : {Sizes{33}, Sizes{3, 5001}}) {
        const auto run = [&]<class S>(S, const std::vector<Numbers>& own) {
          Run<float> r;
          r.operand(own[0]);
          for (std::size_t k = 1; k < own.size(); ++k) r.operand<S>(own[k]);
          r.operand(normal_numbers(sizes, 7)).scalar(0.3).scalars(Of::scalars({.weight_decay = 0.1}, 3));
          Ints ints;
          for (std::size_t i = 0; i < Of::scalars({}, 1).size(); ++i) ints.push_back(static_cast<std::int64_t>(i));
          ints.push_back(1);
          r.ints(ints);
          for (int k = 0; k <= Of::states; ++k) r.result_in_place(k);
          r.call().operation = &Of::update;
          r.run(Of::update);
          std::vector<Numbers> results;
          for (int k = 0; k <= Of::states; ++k) results.push_back(r.get(k));
          return results;
        };
        std::vector<Numbers> own{normal_numbers(sizes, 1)};
        for (int k = 0; k < Of::states; ++k) {
          own.push_back(normal_numbers(sizes, static_cast<unsigned>(2 + k)));
          for (double& v : own.back().values) v = number(bfloat16(static_cast<float>(std::abs(v))));
        }
        const std::vector<Numbers> half = run(bfloat16{}, own), full = run(float{}, own);
        CHECK(half[0].values == full[0].values);
        for (std::size_t k = 1; k < own.size(); ++k) {
          std::vector<double> rounded;
          for (const double v : full[k].values) rounded.push_back(number(bfloat16(static_cast<float>(v))));
          CHECK(half[k].values == rounded);
        }
      }
    }
  });
}
TEST_CASE_TEMPLATE("Lion steps by a sign, whatever the size, and by nothing where it is 0", T, float, double) {
  const double rate = 0.125, beta1 = 0.5, beta2 = 0.75, decay = 0.25;
  const std::vector<double> mean{0, 1, -1, 0, 0, 0, 0, 4, -4}, g{0, -1, 1, 1e-30, -1e-30, 1e-40, -1e-40, -3, 3};
  const std::vector<double> sign{0, 0, 0, 1, -1, 1, -1, 1, -1};
  const Sizes sizes{static_cast<std::int64_t>(g.size())};
  for (const bool decays : {true, false}) {
    Run<T> run;
    run.operand(Numbers(sizes, 1.0)).operand(Numbers(sizes, mean)).operand(Numbers(sizes, g)).scalar(1);
    run.scalars({rate, beta1, beta2, decay}).ints({0, 1, 2, 3, decays}).result_in_place(0).result_in_place(1);
    const Numbers stepped = run.run(operation::lion);
    for (std::size_t i = 0; i < g.size(); ++i)
      CHECK(stepped.values[i] == 1 - rate * (sign[i] + (decays ? decay : 0)));  // in binary digits without rounding
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
      optimizer_steps::each([&]<class Optimizer>(Optimizer) {
        using Of = optimizer_steps::Of<Optimizer>;
        Run<T> run;
        Ints ints;
        run.operand(x);
        for (int k = 0; k <= Of::states; ++k) run.operand(other);
        run.scalar(1).scalars(Of::scalars({.weight_decay = 0.1}, 1));
        for (std::size_t i = 0; i < Of::scalars({}, 1).size(); ++i) ints.push_back(static_cast<std::int64_t>(i));
        ints.push_back(1);
        run.ints(ints);
        for (int k = 0; k <= Of::states; ++k) run.result_in_place(k);
        changes(Of::update, std::move(run));
      });
    }
}
#endif
