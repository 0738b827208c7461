// Reductions, softmax, norms and cross entropy against their definitions, whole and in parts whose statistics are put
// together as the ranks do.
#include <parallel/operation/cross_entropy.hpp>
#include <parallel/operation/norm.hpp>

#include "device.hpp"

using namespace parallel;
using namespace parallel::internals;

static Sizes kept_of(const Sizes& sizes, const Ints& gone) {
  Sizes result;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (!gone.empty() && !gone.contains(static_cast<std::int64_t>(d))) result.push_back(sizes[d]);
  return result;
}
static Sizes kept_index(const Sizes& index, const Ints& gone) { return kept_of(index, gone); }
/// A statistic of x: combine(statistic, element) over what is reduced.
static Numbers reduced_by(const Numbers& x, const Ints& gone, double first,
                          const std::function<double(double, double)>& combine) {
  Numbers result(kept_of(x.sizes, gone), first);
  each_index(x.sizes, [&](const Sizes& i) {
    double& r = result(kept_index(i, gone));
    r = combine(r, x(i));
  });
  return result;
}
static Numbers product_of(const Numbers& x, const Numbers& y) {
  return defined(x.sizes, [&](const Sizes& i) { return x(i) * y(i); });
}

static const std::vector<std::pair<Sizes, Ints>> reductions{
    {{7}, {}},
    {{7}, {0}},
    {{3, 5, 33}, {}},
    {{3, 5, 33}, {2}},
    {{3, 5, 33}, {0}},
    {{3, 5, 33}, {1}},
    {{300, 6}, {0}},
    {{3, 5, 33}, {0, 1}},
    {{3, 5, 33}, {0, 2}},
    {{3, 5, 33}, {2, 1}},
    {{2, 3, 4, 5, 6, 7}, {1, 3, 5}},
    {{2, 3, 4, 5, 6, 7}, {0, 2, 4}},
    {{1, 1}, {0}},
    {{5, 1}, {1}},
    {{1, 5}, {1}},
    {{70, 2, 600}, {0}},
    {{}, {}},
    {{0, 4}, {0}},
    {{4, 1, 3}, {1}},
    {{3000, 24}, {0}},
    {{2, 20000}, {1}},
    {{40, 6, 33, 8}, {0, 2}},
    {{120, 4, 64}, {0, 2}},
    {{16, 1000, 4}, {}},
};

TEST_CASE_TEMPLATE("sum, expand, maximum", T, float, double) {
  for (const auto& reduction : reductions) {  // clang 14 captures no structured bindings
    const Sizes& sizes = reduction.first;
    const Ints& gone = reduction.second;
    const Numbers x = normal_numbers(sizes, 1, 1, 0.5);
    const Sizes kept = kept_of(sizes, gone);
    CAPTURE(sizes.size());
    const Numbers sum = Run<T>().operand(x).result(kept).ints(gone).reals(0.25).run(operation::sum);
    check_near(sum, reduced_by(x, gone, 0, [](double a, double b) { return a + b * 0.25; }), tolerance<T>);
    const Numbers g = normal_numbers(kept, 2);
    check_near(Run<T>().operand(g).result(sizes).ints(gone).reals(-3).run(operation::expand),
               defined(sizes, [&](const Sizes& i) { return -3 * g(kept_index(i, gone)); }), tolerance<T>);

    Numbers rounded = x;  // so that maxima occur twice
    for (double& v : rounded.values) v = std::round(2 * v);
    const Numbers largest = reduced_by(rounded, gone, -std::numeric_limits<double>::infinity(),
                                       [](double a, double b) { return std::max(a, b); });
    check_near(Run<T>().operand(rounded).result(kept).ints(gone).run(operation::local_max), largest, 0);
    Numbers count(kept);
    each_index(sizes,
               [&](const Sizes& i) { count(kept_index(i, gone)) += rounded(i) == largest(kept_index(i, gone)); });
    check_near(Run<T>().operand(rounded).operand(largest).result(kept).ints(gone).run(operation::count_maxima), count,
               0);
    check_near(Run<T>().operand(rounded).operand(largest).operand(count).operand(g).result(sizes).ints(gone).run(
                   operation::max_derivative),
               defined(sizes,
                       [&](const Sizes& i) {
                         return rounded(i) == largest(kept_index(i, gone))
                                    ? g(kept_index(i, gone)) / count(kept_index(i, gone))
                                    : 0;
                       }),
               tolerance<T>);
  }
}
TEST_CASE_TEMPLATE("sum_to is the conjugate of repetition", T, float, double) {
  const std::vector<std::pair<Sizes, Sizes>> shapes{{{4, 33}, {33}}, {{3, 5, 7}, {5, 1}}, {{3, 5, 7}, {3, 1, 7}},
                                                    {{6, 2}, {}},    {{6, 2}, {1}},       {{2, 3, 4}, {1, 3, 1}},
                                                    {{700, 9}, {9}}, {{1, 4}, {4}}};
  for (const auto& shape : shapes) {
    const Sizes &sizes = shape.first, &to = shape.second;
    const Numbers x = normal_numbers(sizes, 1);
    Numbers sum(to);
    each_index(sizes, [&](const Sizes& i) {
      Sizes own(to.size());
      for (std::size_t d = 0; d < to.size(); ++d) own[d] = to[d] == 1 ? 0 : i[d + i.size() - to.size()];
      sum(own) += x(i);
    });
    check_near(Run<T>().operand(x).result(to).run(operation::sum_to), sum, tolerance<T>);
  }
}
TEST_CASE("long sums in float lose little") {
  const Numbers x({1'000'003}, 0.1), rows({40'000, 3}, 0.1);
  const double tenth = static_cast<double>(0.1f);
  check_near(Run<float>().operand(x).result({}).reals(1).run(operation::sum), Numbers(Sizes{}, 1'000'003 * tenth),
             5e-7);
  check_near(Run<float>().operand(rows).result({3}).ints({0}).reals(1).run(operation::sum),
             Numbers({3}, 40'000 * tenth), 1e-5);
}
TEST_CASE_TEMPLATE("what is no number is the maximum", T, float, double) {
  Numbers x = normal_numbers({4, 37}, 1);
  x({2, 5}) = std::numeric_limits<double>::quiet_NaN();
  const Numbers rows = Run<T>().operand(x).result({4}).ints({1}).run(operation::local_max);
  const Numbers columns = Run<T>().operand(x).result({37}).ints({0}).run(operation::local_max);
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::isnan(rows.values[i]) == (i == 2));
  for (std::size_t i = 0; i < 37; ++i) CHECK(std::isnan(columns.values[i]) == (i == 5));
}

TEST_CASE_TEMPLATE("a sum's bits do not depend on where its terms lie in memory", T, float, double) {
  const Numbers x = normal_numbers({1, 733}, 1);
  std::vector<double> found;
  for (int begin = 0; begin < 17; ++begin) {
    Run<T> run;
    run.operand(Numbers({1, 800})).result({1}).ints({1}).reals(1);
    View& view = run.call().operands[0];
    view.size[1] = 733;
    view.data = view.as<T>() + begin;
    for (int i = 0; i < 733; ++i) view.as<T>()[i] = static_cast<T>(x.values[static_cast<std::size_t>(i)]);
    for (const Operation* operation : {&operation::sum, &operation::row_variance})
      found.push_back(run.run(*operation).values[0]);
  }
  for (std::size_t i = 2; i < found.size(); ++i) CHECK(found[i] == found[i % 2]);
}
TEST_CASE_TEMPLATE("softmax in parts", T, float, double) {
  for (const Sizes& sizes : {Sizes{6, 37}, Sizes{3, 4, 16}, Sizes{2, 5, 3, 19}, Sizes{9}, Sizes{4, 1100}})
    for (int dim = 0; dim < static_cast<int>(sizes.size()); ++dim) {
      const Ints over{dim};
      const Numbers x = normal_numbers(sizes, 1, 3), g = normal_numbers(sizes, 2);
      const Numbers largest = reduced_by(x, over, -1e300, [](double a, double b) { return std::max(a, b); });
      const Numbers e = defined(sizes, [&](const Sizes& i) { return std::exp(x(i) - largest(kept_index(i, over))); });
      const Numbers sum = reduced_by(e, over, 0, std::plus<>());
      const Numbers y = defined(sizes, [&](const Sizes& i) { return e(i) / sum(kept_index(i, over)); });
      const Numbers inner = reduced_by(product_of(y, g), over, 0, std::plus<>());
      const Numbers dx = defined(sizes, [&](const Sizes& i) { return y(i) * (g(i) - inner(kept_index(i, over))); });
      for (const int n : {1, 2, 3}) {
        Numbers found_max(largest.sizes, -1e300), found_sum(sum.sizes), found_inner(sum.sizes);
        for (const Box& part : split(sizes, dim, n)) {
          const Numbers own_max = Run<T>().operand(x, part).result(largest.sizes).ints(over).run(operation::local_max);
          const Numbers own_sum = Run<T>().operand(x, part).operand(largest).result(sum.sizes).ints(over).run(
              operation::sum_of_exponentials);
          const Numbers own_inner =
              Run<T>().operand(y, part).operand(g, part).result(sum.sizes).ints(over).run(operation::row_product);
          for (std::size_t i = 0; i < sum.values.size(); ++i) {
            found_max.values[i] = std::max(found_max.values[i], own_max.values[i]);
            found_sum.values[i] += own_sum.values[i];
            found_inner.values[i] += own_inner.values[i];
          }
          check_near(Run<T>()
                         .operand(x, part)
                         .operand(largest)
                         .operand(sum)
                         .result(sizes, part)
                         .ints(over)
                         .run(operation::normalized_exponential),
                     part_of(y, part), tolerance<T>);
          check_near(Run<T>()
                         .operand(y, part)
                         .operand(g, part)
                         .operand(inner)
                         .result(sizes, part)
                         .ints(over)
                         .run(operation::softmax_derivative),
                     part_of(dx, part), tolerance<T>);
        }
        check_near(found_max, largest, 0);
        check_near(found_sum, sum, tolerance<T>);
        check_near(found_inner, inner, tolerance<T>);
      }
    }
}

TEST_CASE_TEMPLATE("norms in parts", T, float, double) {
  const double epsilon = 1e-5;
  for (const Sizes& sizes : {Sizes{3, 8}, Sizes{2, 3, 37}, Sizes{1, 600}, Sizes{150, 5}, Sizes{12}})
    for (const bool centered : {true, false}) {
      const std::int64_t length = sizes.back(), rows = product(sizes) / length;
      const int last = static_cast<int>(sizes.size()) - 1;
      const double share = 1 / static_cast<double>(length);
      const Sizes statistic(sizes.begin(), sizes.end() - 1);
      const Numbers x = normal_numbers(sizes, 1, 2, 0.7), g = normal_numbers(sizes, 2),
                    gain = normal_numbers({length}, 3, 0.3, 1), shift = normal_numbers({length}, 4);
      const auto row_of = [&](const Sizes& i) {
        return static_cast<std::size_t>(position(statistic, Sizes(i.begin(), i.end() - 1)));
      };
      // Definitions, in double.
      Numbers mean(statistic), variance(statistic), a(statistic), b(statistic), dgain({length}), dshift({length});
      if (centered) each_index(sizes, [&](const Sizes& i) { mean.values[row_of(i)] += share * x(i); });
      each_index(sizes, [&](const Sizes& i) {
        variance.values[row_of(i)] += share * std::pow(x(i) - mean.values[row_of(i)], 2);
      });
      const auto deviation = [&](const Sizes& i) { return std::sqrt(variance.values[row_of(i)] + epsilon); };
      const auto xhat = [&](const Sizes& i) { return (x(i) - mean.values[row_of(i)]) / deviation(i); };
      each_index(sizes, [&](const Sizes& i) {
        a.values[row_of(i)] += share * g(i) * gain({i.back()});
        b.values[row_of(i)] += share * g(i) * gain({i.back()}) * xhat(i);
        dgain({i.back()}) += g(i) * xhat(i), dshift({i.back()}) += g(i);
      });
      const Numbers y = defined(
          sizes, [&](const Sizes& i) { return xhat(i) * gain({i.back()}) + (centered ? shift({i.back()}) : 0); });
      const Numbers dx = defined(sizes, [&](const Sizes& i) {
        return (g(i) * gain({i.back()}) - (centered ? a.values[row_of(i)] : 0) - xhat(i) * b.values[row_of(i)]) /
               deviation(i);
      });
      if (rows * length < 200) {  // and the definition of dx by differences
        const auto loss = [&](const Numbers& at) {
          double total = 0;
          for (std::int64_t r = 0; r < rows; ++r) {
            const auto from = at.values.begin() + r * length;
            double m = 0, v = 0;
            for (std::int64_t j = 0; j < length; ++j) m += centered ? share * from[j] : 0;
            for (std::int64_t j = 0; j < length; ++j) v += share * (from[j] - m) * (from[j] - m);
            for (std::int64_t j = 0; j < length; ++j)
              total += g.values[static_cast<std::size_t>(r * length + j)] * (from[j] - m) / std::sqrt(v + epsilon) *
                       gain({j});
          }
          return total;
        };
        Numbers differences(sizes), moved = x;
        for (std::size_t i = 0; i < x.values.size(); ++i) {
          moved.values[i] = x.values[i] + 1e-5;
          differences.values[i] = loss(moved);
          moved.values[i] = x.values[i] - 1e-5;
          differences.values[i] = (differences.values[i] - loss(moved)) / 2e-5;
          moved.values[i] = x.values[i];
        }
        check_near(dx, differences, 1e-8);
      }
      // Kernels: parts of rows, and parts of every row.
      for (const int dim : {0, last})
        for (const int n : {1, 2, 3}) {
          Numbers found_mean(statistic), found_variance(statistic), found_a(statistic), found_b(statistic),
              found_gain({length}), found_shift({length});
          for (const Box& part : split(sizes, dim, n)) {
            const Box own_rows{Sizes(part.offset.begin(), part.offset.end() - 1),
                               Sizes(part.size.begin(), part.size.end() - 1)};
            const Box columns{{part.offset.back()}, {part.size.back()}};
            const auto gather = [&](Numbers& whole, const Numbers& own, const Box& box) {
              each_index(own.sizes, [&](const Sizes& i) {
                Sizes at = i;
                for (std::size_t d = 0; d < i.size(); ++d) at[d] += box.offset[d];
                whole(at) += own(i);
              });
            };
            if (centered)
              gather(found_mean,
                     Run<T>().operand(x, part).result(statistic, own_rows).reals(share).run(operation::row_mean),
                     own_rows);
            Run<T> squares;
            squares.operand(x, part);
            if (centered) squares.operand(mean, own_rows);
            gather(found_variance, squares.result(statistic, own_rows).reals(share).run(operation::row_variance),
                   own_rows);

            Run<T> forward;
            forward.operand(x, part);
            if (centered) forward.operand(mean, own_rows);
            forward.operand(variance, own_rows).operand(gain, columns);
            if (centered) forward.operand(shift, columns);
            check_near(forward.result(sizes, part).reals(share, epsilon).run(operation::normalize), part_of(y, part),
                       tolerance<T>);

            Run<T> products;
            products.operand(g, part).operand(x, part).operand(variance, own_rows).operand(gain, columns);
            if (centered) products.operand(mean, own_rows).result(statistic, own_rows);
            const Numbers first =
                products.result(statistic, own_rows).reals(share, epsilon).run(operation::norm_products);
            if (centered) gather(found_a, first, own_rows);
            gather(found_b, products.get(centered ? 1 : 0), own_rows);

            Run<T> backward;
            backward.operand(g, part).operand(x, part).operand(variance, own_rows).operand(gain, columns);
            if (centered) backward.operand(mean, own_rows).operand(a, own_rows);
            check_near(
                backward.operand(b, own_rows).result(sizes, part).reals(share, epsilon).run(operation::norm_derivative),
                part_of(dx, part), tolerance<T>);

            Run<T> parameters;
            parameters.operand(g, part).operand(x, part).operand(variance, own_rows);
            if (centered) parameters.operand(mean, own_rows);
            parameters.result({length}, columns);
            if (centered) parameters.result({length}, columns);
            gather(found_gain, parameters.reals(share, epsilon).run(operation::norm_parameter_derivative), columns);
            if (centered) gather(found_shift, parameters.get(1), columns);
          }
          if (centered) check_near(found_mean, mean, tolerance<T>);
          check_near(found_variance, variance, tolerance<T>);
          if (centered) check_near(found_a, a, 5 * tolerance<T>);
          check_near(found_b, b, 5 * tolerance<T>);
          check_near(found_gain, dgain, tolerance<T>);
          if (centered) check_near(found_shift, dshift, tolerance<T>);
          if (dim == last && last == 0) break;
        }
    }
}

TEST_CASE_TEMPLATE("cross entropy over a vocabulary in parts", T, float, double) {
  for (const Sizes& sizes : {Sizes{5, 7}, Sizes{2, 3, 40}, Sizes{4, 1031}, Sizes{3, 1}}) {
    const Sizes rows(sizes.begin(), sizes.end() - 1);
    const int last = static_cast<int>(rows.size());
    const Numbers logits = normal_numbers(sizes, 1, 3), target = whole_numbers(rows, 2, static_cast<int>(sizes.back())),
                  g = normal_numbers(rows, 3);
    const auto row = [&](const Sizes& i) { return Sizes(i.begin(), i.end() - 1); };
    const Ints over{last}, classes{sizes.back(), no_target};
    const Numbers largest = reduced_by(logits, over, -1e300, [](double a, double b) { return std::max(a, b); });
    const Numbers sum = reduced_by(
        defined(sizes, [&](const Sizes& i) { return std::exp(logits(i) - largest(row(i))); }), over, 0, std::plus<>());
    const Numbers picked = defined(rows, [&](Sizes i) {
      const double t = target(i);
      i.push_back(static_cast<std::int64_t>(t));
      return logits(i);
    });
    const Numbers loss = defined(rows, [&](const Sizes& i) { return std::log(sum(i)) + largest(i) - picked(i); });
    check_near(Run<T>()
                   .operand(logits)
                   .integers(target)
                   .operand(largest)
                   .operand(sum)
                   .operand(picked)
                   .result(rows)
                   .ints(classes)
                   .run(operation::negative_log_likelihood),
               loss, tolerance<T>);
    for (const int n : {1, 2, 3}) {
      Numbers found(rows);
      for (const Box& part : split(sizes, last, n)) {
        const Numbers own =
            Run<T>().operand(logits, part).integers(target).result(rows).ints(classes).run(operation::pick);
        for (std::size_t i = 0; i < own.values.size(); ++i) found.values[i] += own.values[i];
        check_near(Run<T>()
                       .operand(logits, part)
                       .integers(target)
                       .operand(largest)
                       .operand(sum)
                       .operand(g)
                       .result(sizes, part)
                       .ints(classes)
                       .run(operation::cross_entropy_derivative),
                   part_of(defined(sizes,
                                   [&](const Sizes& i) {
                                     return g(row(i)) * (std::exp(logits(i) - largest(row(i))) / sum(row(i)) -
                                                         (target(row(i)) == static_cast<double>(i.back())));
                                   }),
                           part),
                   tolerance<T>);
      }
      check_near(found, picked, 0);
    }
    for (const Box& part : split(sizes, 0, 2)) {  // the batch in parts
      const Box own{Sizes(part.offset.begin(), part.offset.end() - 1), Sizes(part.size.begin(), part.size.end() - 1)};
      check_near(
          Run<T>().operand(logits, part).integers(target, own).result(rows, own).ints(classes).run(operation::pick),
          part_of(picked, own), 0);
    }
  }
}

// Against the definition: a target's probability, the rest spread over the classes, and nothing of what is padding or
// ignored.
TEST_CASE_TEMPLATE("cross entropy with padded classes, ignored targets and smoothed labels, in parts", T, float,
                   double) {
  constexpr std::int64_t rows = 6, columns = 12, count = 10, ignored = -100;
  const Ints classes{count, ignored};
  Numbers logits = normal_numbers({rows, columns}, 1, 2), target = whole_numbers({rows}, 2, count);
  target.values[1] = target.values[4] = ignored;
  for (std::int64_t r = 0; r < rows; ++r) {
    logits({r, count}) = std::numeric_limits<double>::quiet_NaN();
    logits({r, count + 1}) = 1e4;
  }
  const Numbers g = normal_numbers({rows}, 3);
  for (const double smoothing : {0.0, 0.1}) {
    Numbers loss({rows}), gradient({rows, columns});
    for (std::int64_t r = 0; r < rows; ++r) {
      if (target({r}) == ignored) continue;
      double sum = 0;
      for (std::int64_t c = 0; c < count; ++c) sum += std::exp(logits({r, c}));
      for (std::int64_t c = 0; c < count; ++c) {
        const double wanted = (c == static_cast<std::int64_t>(target({r})) ? 1 - smoothing : 0) + smoothing / count,
                     p = std::exp(logits({r, c})) / sum;
        loss({r}) -= wanted * std::log(p);
        gradient({r, c}) = g({r}) * (p - wanted);
      }
    }
    for (const int n : {1, 2, 3, 4}) {
      const auto exchanged = [&](const Operation& operation) {
        Numbers all({rows});
        for (const Box& part : split(logits.sizes, 1, n)) {
          Run<T> run;
          run.operand(logits, part);
          if (&operation == &operation::pick) run.integers(target);
          const Numbers own = run.result({rows}).ints(classes).run(operation);
          for (std::size_t i = 0; i < rows; ++i) all.values[i] += own.values[i];
        }
        return all;
      };
      Numbers largest({rows}, -1e300), sum({rows});
      std::vector<Numbers> own, sums;
      for (const Box& part : split(logits.sizes, 1, n)) {
        Run<T> run;
        own.push_back(
            run.operand(logits, part).result({rows}).result({rows}).ints(classes).run(operation::class_exponentials));
        sums.push_back(run.get(1));
        for (std::size_t i = 0; i < rows; ++i) largest.values[i] = std::max(largest.values[i], own.back().values[i]);
      }
      for (std::size_t part = 0; part < own.size(); ++part) {
        const Numbers rescaled = Run<T>()
                                     .operand(sums[part])
                                     .operand(own[part])
                                     .operand(largest)
                                     .result({rows})
                                     .run(operation::rescaled_exponentials);
        for (std::size_t i = 0; i < rows; ++i) sum.values[i] += rescaled.values[i];
      }
      const Numbers picked = exchanged(operation::pick), mean = exchanged(operation::class_mean);
      check_near(Run<T>()
                     .operand(logits)
                     .integers(target)
                     .operand(largest)
                     .operand(sum)
                     .operand(picked)
                     .operand(mean)
                     .result({rows})
                     .ints(classes)
                     .reals(smoothing)
                     .run(operation::negative_log_likelihood),
                 loss, tolerance<T>);
      for (const Box& part : split(logits.sizes, 1, n))
        check_near(Run<T>()
                       .operand(logits, part)
                       .integers(target)
                       .operand(largest)
                       .operand(sum)
                       .operand(g)
                       .result(logits.sizes, part)
                       .ints(classes)
                       .reals(smoothing)
                       .run(operation::cross_entropy_derivative),
                   part_of(gradient, part), tolerance<T>);
    }
  }
}
