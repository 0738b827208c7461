// Kernels that go row by row, where rows are wide or many: other ways through them than those of small tensors. Against
// their definitions.
#include <parallel/operation/cross_entropy.hpp>
#include <parallel/operation/embedding.hpp>
#include <parallel/operation/norm.hpp>
#include <parallel/operation/rotary.hpp>
#include <parallel/operation/sample.hpp>

#include "device.hpp"

using namespace parallel;
using namespace parallel::internals;

namespace {
/// What a statistic of rows of T is stored as.
template <class T>
using Precise = std::conditional_t<std::is_same_v<T, double>, double, float>;
/// Numbers as T holds them.
template <class T>
Numbers held(Numbers x) {
  for (double& v : x.values) v = number(stored<T>(v));
  return x;
}
template <class T>
Numbers some(const Sizes& sizes, unsigned seed, double deviation = 1, double mean = 0) {
  return held<T>(normal_numbers(sizes, seed, deviation, mean));
}
double sum_of(const Numbers& x) { return std::accumulate(x.values.begin(), x.values.end(), 0.0); }

#if defined(PARALLEL_TEST_CUDA)
#define STORED float, double, bfloat16, float16
#else
#define STORED float, double
#endif
}  // namespace

namespace {
constexpr double epsilon = 1e-5;

/// A norm of rows and all that is made of it, by definition; statistics as they are stored.
template <class T, bool centered>
struct Norm {
  using S = Precise<T>;
  Sizes sizes;
  std::int64_t rows = sizes[0], length = sizes[1];
  double share = 1 / static_cast<double>(length);
  Numbers x = some<T>(sizes, 1, 2, 0.7), g = some<T>(sizes, 2), gain = some<T>({length}, 3, 0.3, 1),
          shift = some<T>({length}, 4);
  Numbers mean{{rows}}, variance{{rows}}, a{{rows}}, b{{rows}}, of_gain{{length}}, of_shift{{length}};

  explicit Norm(const Sizes& of) : sizes(of) {
    if (centered) each_index(sizes, [&](const Sizes& i) { mean(row(i)) += share * x(i); });
    mean = held<S>(mean);
    each_index(sizes, [&](const Sizes& i) { variance(row(i)) += share * std::pow(x(i) - mean(row(i)), 2); });
    variance = held<S>(variance);
    each_index(sizes, [&](const Sizes& i) {
      if (centered) a(row(i)) += share * g(i) * gain({i[1]});
      b(row(i)) += share * g(i) * gain({i[1]}) * xhat(i);
      of_gain({i[1]}) += g(i) * xhat(i), of_shift({i[1]}) += g(i);
    });
    a = held<S>(a);
    b = held<S>(b);
  }
  static Sizes row(const Sizes& i) { return {i[0]}; }
  double inverse(const Sizes& i) const { return 1 / std::sqrt(variance(row(i)) + epsilon); }
  double xhat(const Sizes& i) const { return (x(i) - mean(row(i))) * inverse(i); }
  Numbers y() const {
    return defined(sizes, [&](const Sizes& i) { return xhat(i) * gain({i[1]}) + (centered ? shift({i[1]}) : 0); });
  }
  Numbers dx() const {
    return defined(
        sizes, [&](const Sizes& i) { return (g(i) * gain({i[1]}) - a(row(i)) - xhat(i) * b(row(i))) * inverse(i); });
  }
};
}  // namespace

TEST_CASE_TEMPLATE("norms of wide rows and of many", T, STORED) {
  using S = Precise<T>;
  for (const Sizes& sizes : {Sizes{3, 5000}, Sizes{2, 4099}, Sizes{9000, 24}, Sizes{700, 301}}) {
    const Norm<T, true> n(sizes);
    const auto& [own, rows, length, share, x, g, gain, shift, mean, variance, a, b, of_gain, of_shift] = n;
    check_near(Run<T>().operand(x).template result<S>({rows}).reals(share).run(operation::row_mean), mean,
               10 * tolerance<S>);
    check_near(Run<T>().operand(x).template operand<S>(mean).template result<S>({rows}).reals(share).run(
                   operation::row_variance),
               variance, 10 * tolerance<S>);
    Run<T> forward;
    forward.operand(x)
        .template operand<S>(mean)
        .template operand<S>(variance)
        .operand(gain)
        .operand(shift)
        .result(sizes)
        .reals(share, epsilon);
    check_near(forward.run(operation::normalize), n.y(), tolerance<T>);
    Run<T> products;
    products.operand(g)
        .operand(x)
        .template operand<S>(variance)
        .operand(gain)
        .template operand<S>(mean)
        .template result<S>({rows})
        .template result<S>({rows});
    check_near(products.reals(share, epsilon).run(operation::norm_products), a, 50 * tolerance<S>);
    check_near(products.get(1), b, 50 * tolerance<S>);
    Run<T> backward;
    backward.operand(g)
        .operand(x)
        .template operand<S>(variance)
        .operand(gain)
        .template operand<S>(mean)
        .template operand<S>(a)
        .template operand<S>(b);
    check_near(backward.result(sizes).reals(share, epsilon).run(operation::norm_derivative), n.dx(), tolerance<T>);
    Run<T> parameters;
    parameters.operand(g)
        .operand(x)
        .template operand<S>(variance)
        .template operand<S>(mean)
        .template result<S>({length})
        .template result<S>({length});
    check_near(parameters.reals(share, epsilon).run(operation::norm_parameter_derivative), of_gain, 10 * tolerance<S>);
    check_near(parameters.get(1), of_shift, 10 * tolerance<S>);
  }
}

namespace {
/// Whole rows in one operation forward and one backward; on the CPU with the bits of the parts.
template <class T, bool centered>
void check_norm_rows(const Sizes& sizes) {
  using S = Precise<T>;
  INFO(sizes[0], " x ", sizes[1], ", centered: ", centered);
  const Norm<T, centered> n(sizes);
  const Sizes rows{n.rows}, columns{n.length};
  Run<T> forward;
  forward.operand(n.x).operand(n.gain);
  if (centered) forward.operand(n.shift);
  forward.result(sizes).template result<S>(rows);
  if (centered) forward.template result<S>(rows);
  const Numbers y = forward.reals(n.share, epsilon).run(operation::norm_rows),
                mean = centered ? forward.get(1) : n.mean, variance = forward.get(centered ? 2 : 1);
  check_near(y, n.y(), 2 * tolerance<T>);
  check_near(mean, n.mean, 10 * tolerance<S>);
  check_near(variance, n.variance, 10 * tolerance<S>);

  const auto backward = [&](bool parameters) {
    Run<T> run;
    run.operand(n.g).operand(n.x).template operand<S>(n.variance).operand(n.gain);
    if (centered) run.template operand<S>(n.mean);
    run.result(sizes);
    if (parameters) run.result(columns);
    if (parameters && centered) run.result(columns);
    run.near(10 * tolerance<T>).reals(n.share, epsilon);
    return run;
  };
  Run<T> alone = backward(false), all = backward(true);
  const Numbers dx = all.run(operation::norm_rows_derivative), of_gain = all.get(1);
  check_near(alone.run(operation::norm_rows_derivative), n.dx(), 2 * tolerance<T>);
  check_near(dx, n.dx(), 2 * tolerance<T>);
  check_near(of_gain, n.of_gain, 10 * tolerance<T>);
  if (centered) check_near(all.get(2), n.of_shift, 10 * tolerance<T>);
#if !defined(PARALLEL_TEST_CUDA)
  const auto run = [&](const Operation& operation, const std::vector<const Numbers*>& operands,
                       const std::vector<Sizes>& results) {
    Run<T> part;
    for (const Numbers* o : operands) part.operand(*o);
    for (const Sizes& r : results) part.result(r);
    part.reals(n.share, epsilon).run(operation);
    return part;
  };
  const auto with = [&](std::vector<const Numbers*> operands, std::initializer_list<const Numbers*> more) {
    if (centered) operands.insert(operands.end(), more);
    return operands;
  };
  if (centered) check_near(run(operation::row_mean, {&n.x}, {rows}).get(0), mean, 0);
  check_near(run(operation::row_variance, with({&n.x}, {&mean}), {rows}).get(0), variance, 0);
  if (centered)
    check_near(run(operation::normalize, {&n.x, &mean, &variance, &n.gain, &n.shift}, {sizes}).get(0), y, 0);
  else
    check_near(run(operation::normalize, {&n.x, &variance, &n.gain}, {sizes}).get(0), y, 0);
  const auto products = run(operation::norm_products, with({&n.g, &n.x, &n.variance, &n.gain}, {&n.mean}),
                            std::vector<Sizes>(centered ? 2 : 1, rows));
  const Numbers a = products.get(0), b = products.get(centered ? 1 : 0);
  std::vector<const Numbers*> operands = with({&n.g, &n.x, &n.variance, &n.gain}, {&n.mean, &a});
  operands.push_back(&b);
  check_near(run(operation::norm_derivative, operands, {sizes}).get(0), dx, 0);
  const auto parameters = run(operation::norm_parameter_derivative, with({&n.g, &n.x, &n.variance}, {&n.mean}),
                              std::vector<Sizes>(centered ? 2 : 1, columns));
  check_near(parameters.get(0), of_gain, 0);
  if (centered) check_near(parameters.get(1), all.get(2), 0);
#endif
}
}  // namespace

// Rows of a warp and of a block, that fit into shared memory and do not; with sums of columns that do and do not; with
// and without a rest; one, few and many; and lengths that need just as much shared memory as a kernel has without
// asking for it.
TEST_CASE_TEMPLATE("norms of whole rows in one operation", T, STORED) {
  for (const Sizes& sizes : {Sizes{1, 37}, Sizes{17, 5}, Sizes{40, 768}, Sizes{700, 301}, Sizes{9000, 24},
                             Sizes{21, 2000}, Sizes{2, 4099}, Sizes{3, 16000}, Sizes{2, 50000}, Sizes{9, 1536},
                             Sizes{9, 3072}, Sizes{9, 4096}, Sizes{2, 6144}, Sizes{2, 12288}, Sizes{2, 24576}}) {
    check_norm_rows<T, true>(sizes);
    check_norm_rows<T, false>(sizes);
  }
}

TEST_CASE_TEMPLATE("statistics of equal rows have the same bits", T, STORED) {
  using S = Precise<T>;
  for (const std::int64_t length : {37, 64, 4099}) {
    const Numbers one = some<T>({length}, 1);
    const Numbers x = defined({16, length}, [&](const Sizes& i) { return one({i[1]}); });
    const Numbers mean = Run<T>().operand(x).result({16}).reals(1).run(operation::row_mean);
    Run<T> exponentials;
    exponentials.operand(x)
        .template result<S>({16})
        .template result<S>({16})
        .ints({length, no_target})
        .run(operation::class_exponentials);
    const Numbers largest = exponentials.get(0), sum = exponentials.get(1);
    for (std::size_t r = 1; r < 16; ++r)
      CHECK((mean.values[r] == mean.values[0] && largest.values[r] == largest.values[0] &&
             sum.values[r] == sum.values[0]));
  }
}

namespace {
/// The largest logit and the sum of exponentials relative to it, of rows whose columns are in some parts: of each part
/// and put together.
template <class T>
struct Found {
  Numbers largest, sum;
  Found(const Numbers& logits, int parts, const Ints& classes)
      : largest({logits.sizes[0]}, -std::numeric_limits<double>::infinity()), sum({logits.sizes[0]}) {
    using S = Precise<T>;
    const Sizes rows = largest.sizes;
    std::vector<Numbers> own, sums;
    for (const Box& part : split(logits.sizes, 1, parts)) {
      Run<T> run;
      own.push_back(run.operand(logits, part)
                        .template result<S>(rows)
                        .template result<S>(rows)
                        .near(10 * tolerance<S>)
                        .ints(classes)
                        .run(operation::class_exponentials));
      sums.push_back(run.get(1));
      for (std::size_t r = 0; r < sum.values.size(); ++r) {
        const double here = own.back().values[r];
        if (here > largest.values[r] || std::isnan(here)) largest.values[r] = here;
      }
    }
    if (parts == 1) sum = sums[0];  // nothing is rescaled
    for (std::size_t i = 0; i < own.size() && parts > 1; ++i) {
      const Numbers rescaled =
          Run<S>().operand(sums[i]).operand(own[i]).operand(largest).result(rows).run(operation::rescaled_exponentials);
      for (std::size_t r = 0; r < sum.values.size(); ++r) sum.values[r] += rescaled.values[r];
    }
  }
};
}  // namespace

TEST_CASE_TEMPLATE("cross entropy of a wide vocabulary in parts", T, STORED) {
  using S = Precise<T>;
  constexpr std::int64_t rows = 3, columns = 9000, count = 8989;
  const Numbers logits = some<T>({rows, columns}, 1, 3), target({rows}, {8000, 5, 8988}), g = some<S>({rows}, 2);
  Numbers largest({rows}, -1e300), sum({rows}), mean({rows});
  const auto each_class = [&](auto f) {
    each_index({rows, count}, [&](const Sizes& i) { f(Sizes{i[0]}, logits(i)); });
  };
  each_class([&](const Sizes& r, double x) {
    largest(r) = std::max(largest(r), x);
    mean(r) += x / count;
  });
  each_class([&](const Sizes& r, double x) { sum(r) += std::exp(x - largest(r)); });
  sum = held<S>(sum);
  Numbers found_mean({rows}), found_largest({rows}, -1e300), found_picked({rows});
  for (const Box& part : split(logits.sizes, 1, 2)) {
    const auto run = [&](const Operation& operation) {
      Run<T> r;
      r.operand(logits, part);
      if (&operation == &operation::pick) r.integers(target);
      return r.template result<S>({rows}).ints({count, no_target}).run(operation);
    };
    const Numbers own_mean = run(operation::class_mean), own_largest = run(operation::class_maximum),
                  own_picked = run(operation::pick);
    for (std::size_t r = 0; r < rows; ++r) {
      found_mean.values[r] += own_mean.values[r];
      found_picked.values[r] += own_picked.values[r];
      found_largest.values[r] = std::max(found_largest.values[r], own_largest.values[r]);
    }
    Run<T> backward;
    backward.operand(logits, part)
        .integers(target)
        .template operand<S>(largest)
        .template operand<S>(sum)
        .template operand<S>(g)
        .result(logits.sizes, part);
    check_near(backward.ints({count, no_target}).run(operation::cross_entropy_derivative),
               part_of(defined(logits.sizes,
                               [&](const Sizes& i) {
                                 const Sizes r{i[0]};
                                 return i[1] < count ? g(r) * (std::exp(logits(i) - largest(r)) / sum(r) -
                                                               (target(r) == static_cast<double>(i[1])))
                                                     : 0;
                               }),
                       part),
               tolerance<T>);
  }
  check_near(found_largest, largest, 0);
  check_near(found_mean, mean, 10 * tolerance<S>);
  check_near(found_picked,
             defined({rows},
                     [&](const Sizes& r) {
                       return logits({r[0], static_cast<std::int64_t>(target(r))});
                     }),
             0);
  for (const int parts : {1, 2, 3}) {
    const Found<T> found(logits, parts, {count, no_target});
    check_near(found.largest, largest, 0);
    check_near(found.sum, sum, 10 * tolerance<S>);
  }
}
// Against the definition, which looks at a row twice: whatever order the largest comes in, what is infinite or no
// number, and parts without classes, or with none above -infinity.
TEST_CASE_TEMPLATE("the largest logit and the sum of exponentials of one reading", T, STORED) {
  using S = Precise<T>;
  constexpr double infinity = std::numeric_limits<double>::infinity(), none = std::numeric_limits<double>::quiet_NaN();
  for (const std::int64_t columns : {12, 300, 9000}) {
    CAPTURE(columns);
    const std::int64_t rows = 10, count = columns / 2 + 1;  // of three or four parts the last has none
    const Numbers any = some<T>({rows, columns}, 1, 3);
    const Numbers logits = held<T>(defined({rows, columns}, [&](const Sizes& i) {
      const double place = static_cast<double>(i[1]), x = any(i);
      switch (i[0]) {
        case 1: return place / 8;   // ever larger
        case 2: return -place / 8;  // ever smaller
        case 3: return i[1] == 3 ? -infinity : x;
        case 4: return i[1] < columns / 3 ? -infinity : x;
        case 5: return -infinity;
        case 6: return i[1] == 2 ? infinity : x;
        case 7: return i[1] == count - 1 ? infinity : x;
        case 8: return i[1] == count - 2 ? none : x;
        case 9: return i[1] == count ? none : i[1] == 1 ? 1e30 : x;  // the padding's is not seen
        default: return x;
      }
    }));
    Numbers largest({rows}, -infinity), sum({rows});
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < count; ++c)
        largest({r}) = logits({r, c}) > largest({r}) || std::isnan(logits({r, c})) ? logits({r, c}) : largest({r});
      for (std::int64_t c = 0; c < count; ++c) sum({r}) += std::exp(logits({r, c}) - largest({r}));
    }
    for (const int parts : {1, 2, 3, 4}) {
      CAPTURE(parts);
      const Found<T> found(logits, parts, {count, no_target});
      for (std::int64_t r = 0; r < rows; ++r) {
        CAPTURE(r);
        const double expected = r == 5 && parts == 1 ? 0 : sum({r});  // of -infinity alone: the loss is no number
        check_near(Numbers(Sizes{}, found.sum({r})), Numbers(Sizes{}, expected), 20 * tolerance<S>);
      }
      Numbers unequal({rows});
      for (std::int64_t r = 0; r < rows; ++r)
        unequal({r}) =
            !(found.largest({r}) == largest({r}) || (std::isnan(found.largest({r})) && std::isnan(largest({r}))));
      check_near(unequal, Numbers({rows}), 0);
    }
  }
}
TEST_CASE_TEMPLATE("targets that count", T, float, double) {
  Numbers target = whole_numbers({5000}, 1, 7);
  const double others =
      static_cast<double>(std::count_if(target.values.begin(), target.values.end(), [](double t) { return t != 3; }));
  CHECK(Run<T>().integers(target).result({}).ints({3, 0}).reals(0.5).run(operation::count_targets).values[0] ==
        others / 2);
}

TEST_CASE_TEMPLATE("embeddings and their gradients, of few rows that occur often and of many", T, STORED) {
  using S = Precise<T>;
  struct Case {
    std::int64_t places, rows, columns;
  };
  for (const Case& c : {Case{300, 7, 5}, Case{5000, 3, 24}, Case{1000, 70000, 3}, Case{70, 1, 1100}, Case{1, 5, 16},
                        Case{2000, 400, 520}, Case{0, 3, 4}}) {
    CAPTURE(c.places);
    Numbers index = whole_numbers({c.places}, 1, static_cast<int>(c.rows));
    // there are no such rows
    for (std::size_t i = 0; i < index.values.size(); i += 17)
      index.values[i] = i % 2 == 0 ? -1 : static_cast<double>(c.rows);
    const Numbers table = some<T>({c.rows, c.columns}, 2), g = some<T>({c.places, c.columns}, 3);
    const auto inside = [&](double i, double begin, double size) { return i >= begin && i < begin + size; };
    for (const int n : {1, 2}) {
      if (n > c.rows) continue;
      for (const Box& part : split(table.sizes, 0, n)) {
        const auto own = [&](std::int64_t place) {
          return inside(index({place}), static_cast<double>(part.offset[0]), static_cast<double>(part.size[0]));
        };
        const auto row = [&](std::int64_t place) { return static_cast<std::int64_t>(index({place})); };
        check_near(Run<T>().integers(index).operand(table, part).result(g.sizes).run(operation::embedding),
                   defined(g.sizes,
                           [&](const Sizes& i) {
                             if (!inside(index({i[0]}), 0, static_cast<double>(c.rows)))
                               return std::numeric_limits<double>::quiet_NaN();
                             return own(i[0]) ? table({row(i[0]), i[1]}) : 0;
                           }),
                   0);
        Numbers sums(part.size);
        each_index(g.sizes, [&](const Sizes& i) {
          if (own(i[0])) sums({row(i[0]) - part.offset[0], i[1]}) += g(i);
        });
        const Numbers derivative = Run<T>()
                                       .integers(index)
                                       .operand(g)
                                       .template result<S>(table.sizes, part)
                                       .run(operation::embedding_derivative);
        check_near(derivative, sums, 20 * tolerance<S>);
        // to another sum, in its place, and no bit otherwise than by their sum
        const Numbers before = some<S>(table.sizes, 4);
        const Numbers apart = Run<S>().operand(before, part).operand(derivative).result(part.size).run(operation::add);
        check_near(Run<T>()
                       .template operand<S>(before, part)
                       .integers(index)
                       .operand(g)
                       .result_in_place(0)
                       .run(operation::accumulate_rows),
                   apart, 0);
      }
    }
  }
}

TEST_CASE_TEMPLATE("rotary embedding in parts, there and back", T, STORED) {
  for (const Sizes& sizes : {Sizes{2, 5, 3, 6}, Sizes{11, 4, 2, 32}, Sizes{1, 3, 1, 2}}) {
    const Numbers x = some<T>(sizes, 1);
    const std::int64_t half = sizes[3] / 2;
    for (const double direction : {1.0, -1.0})
      for (const int position : {0, 1000}) {
        const Numbers turned = defined(sizes, [&](Sizes i) {
          const bool high = i[3] >= half;
          const std::int64_t pair = i[3] % half;
          const double angle = static_cast<double>(position + i[1]) *
                               std::pow(100.0, -static_cast<double>(pair) / static_cast<double>(half));
          const double sine = direction * std::sin(angle) * (high ? 1 : -1), own = x(i);
          i[3] = high ? pair : pair + half;
          return own * std::cos(angle) + x(i) * sine;
        });
        for (const int dim : {0, 1, 2})
          for (const Box& part : split(sizes, dim, 2)) {
            Run<T> run;
            run.operand(x, part);
            if (position > 0) run.integers(Numbers(Sizes{}, position));
            check_near(run.result(sizes, part).reals(100, direction).run(operation::rotary), part_of(turned, part),
                       tolerance<T>);
          }
      }
  }
}

TEST_CASE_TEMPLATE("histograms of digits count, and weigh", T, STORED) {
  const Numbers logits = some<T>({3, 5000}, 1, 2), largest({3}, 9);
  operation::Drawing how(4990, 0);
  for (const bool by_mass : {false, true}) {
    how.by_mass = by_mass;
    Run<T> run;
    run.operand(logits).scalars({0.7});
    if (by_mass) run.operand(largest);
    const Numbers histogram = run.template result<double>({3, 256}).ints(how).run(operation::digit_histogram);
    const double all = by_mass
                           ? sum_of(defined({3, 4990}, [&](const Sizes& i) { return std::exp((logits(i) - 9) / 0.7); }))
                           : 3 * 4990;
    CHECK(sum_of(histogram) == doctest::Approx(all).epsilon(1e-7));
    double negative = 0;  // below 0 the first bit is 0: the lower half of the bins
    each_index({3, 128}, [&](const Sizes& i) { negative += histogram(i); });
    const double expected = sum_of(defined({3, 4990}, [&](const Sizes& i) {
      return logits(i) < 0 ? by_mass ? std::exp((logits(i) - 9) / 0.7) : 1.0 : 0.0;
    }));
    CHECK(negative == doctest::Approx(expected).epsilon(1e-6));
  }
  Run<T> cold;
  const Numbers histogram = cold.operand(logits)
                                .scalars({0})
                                .operand(logits, Box{{0, 0}, {3, 1}})
                                .template result<double>({3, 256})
                                .ints(how)
                                .run(operation::digit_histogram);
  CHECK(std::isnan(sum_of(histogram)));
}
