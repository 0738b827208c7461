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
TEST_CASE("the factor takes out the scale of the gradients, and so does the norm") {
  const auto clip = [](double total, double limit) {
    Run<double> run;
    run.scalar(total).scalars({64, 9, limit}).scalar(3).result({}).result({}).result({}).ints({2, 0});
    run.run(operation::clip);
    return std::vector<double>{run.get(0).values[0], run.get(1).values[0], run.get(2).values[0]};
  };
  CHECK(clip(16. * 64 * 64, 1) == std::vector<double>{4, 1 / (4 + 1e-6) / 64, 1});
  CHECK(clip(16. * 64 * 64, 5) == std::vector<double>{4, 1. / 64, 1});
  CHECK(clip(16. * 64 * 64, 0) == std::vector<double>{4, 1. / 64, 1});
  CHECK(clip(std::numeric_limits<double>::infinity(), 1)[2] == 0);
}
TEST_CASE_TEMPLATE("numbers times one of the run, and divided by it", T, float, double OR_HALF) {
  const Sizes sizes{3, 37};
  const Numbers x = whole_numbers(sizes, 1, 128);
  for (const bool divides : {false, true})
    check_near(Run<T>().operand(x).scalars({3, 16}).result(sizes).ints({1, divides ? 1 : 0}).run(operation::scaled),
               defined(sizes, [&](const Sizes& i) { return divides ? x(i) / 16 : x(i) * 16; }), 0);
}
TEST_CASE_TEMPLATE("a loss of any element type that is no number", T, float, double, bfloat16, float16) {
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
TEST_CASE_TEMPLATE("an update takes gradients of halves as the same of float", G, bfloat16, float16) {
  const Sizes sizes{7, 152};
  Numbers g = normal_numbers(sizes, 2);
  for (double& x : g.values) x = number(stored<G>(x));
  optimizer_steps::each([&]<class Optimizer>(Optimizer) {
    using Of = optimizer_steps::Of<Optimizer>;
    INFO(Of::update.name);
    const auto updated = [&]<class T>(T) {
      Run<float> run;
      for (int k = 0; k <= Of::states; ++k) run.operand(normal_numbers(sizes, 3, 0.1, 0.5));
      const std::vector<double> scalars = Of::scalars({}, 4);
      run.template operand<T>(g).scalar(0.3).scalars(scalars);
      Ints ints;
      for (int i = 0; i < static_cast<int>(scalars.size()); ++i) ints.push_back(i);
      ints.push_back(1);
      run.ints(ints);
      for (int k = 0; k <= Of::states; ++k) run.result_in_place(k);
      return run.run(Of::update);
    };
    check_near(updated(G{}), updated(float{}), 0);
  });
}
TEST_CASE("sums take terms of other types, and round once") {
  const Sizes sizes{5, 24};
  const auto check = [&]<class Sum, class Term>(Sum, Term) {
    Numbers sum = normal_numbers(sizes, 1), term = normal_numbers(sizes, 2);
    for (double& x : sum.values) x = number(stored<Sum>(x));
    for (double& x : term.values) x = number(stored<Term>(x));
    const Numbers wanted = defined(sizes, [&](const Sizes& i) {
      return number(stored<Sum>(static_cast<double>(static_cast<float>(sum(i)) + static_cast<float>(term(i)))));
    });
    Run<Sum> run;
    run.operand(sum).template operand<Term>(term).result_in_place(0);
    check_near(run.run(operation::accumulate), wanted, 0);
  };
  const auto each_term = [&](auto sum) {
    check(sum, float{});
    check(sum, bfloat16{});
    check(sum, float16{});
  };
  each_term(float{});
  each_term(bfloat16{});
  each_term(float16{});
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
TEST_CASE_TEMPLATE("the average of a parameter: its first value is the parameter's, and how much each weighs", T, float,
                   double) {
  for (const Sizes& sizes : {Sizes{33}, Sizes{3, 5001}})
    for (const auto& [decay, from, step, corrected, weight] : {std::array{0.75, 1.0, 1.0, 0.0, 1.0},
                                                               {0.75, 1.0, 2.0, 0.0, 0.25},
                                                               {0.75, 1.0, 9.0, 0.0, 0.25},
                                                               {0.75, 5.0, 4.0, 0.0, 1.0},
                                                               {0.75, 5.0, 5.0, 1.0, 1.0},
                                                               {0.75, 5.0, 6.0, 0.0, 0.25},
                                                               {0.5, 1.0, 2.0, 1.0, 0.5 / 0.75},
                                                               {0.5, 3.0, 5.0, 1.0, 0.5 / 0.875},
                                                               {1.0, 1.0, 4.0, 1.0, 0.25},
                                                               {1.0, 3.0, 4.0, 1.0, 0.5}}) {
      const Numbers average = normal_numbers(sizes, 1), parameter = normal_numbers(sizes, 2);
      Run<T> run;
      run.operand(average).operand(parameter).scalars({decay, from, step});
      run.ints({0, 1, 2, 1, static_cast<std::int64_t>(corrected)}).result_in_place(0);
      const Numbers found = run.run(operation::average);
      std::vector<double> expected;
      for (std::size_t i = 0; i < average.values.size(); ++i)
        expected.push_back((1 - weight) * average.values[i] + weight * parameter.values[i]);
      check_near(found, Numbers(sizes, expected), tolerance<T>);
    }
}
TEST_CASE_TEMPLATE("what is handed down: in the first step, or in all but that", T, float, double) {
  for (const Sizes& sizes : {Sizes{33}, Sizes{3, 5001}})
    for (const double step : {1.0, 2.0, 7.0})
      for (const bool in_first : {true, false}) {
        const Numbers version = normal_numbers(sizes, 1), other = normal_numbers(sizes, 2);
        Run<T> run;
        run.operand(version).operand(other).scalars({0.5, step}).ints({1, 1, in_first}).result_in_place(0);
        const Numbers found = run.run(operation::handed_down), &expected = (step == 1) == in_first ? other : version;
        for (std::size_t i = 0; i < found.values.size(); ++i)
          CHECK(found.values[i] == static_cast<double>(static_cast<T>(expected.values[i])));
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
