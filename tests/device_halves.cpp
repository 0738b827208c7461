// Kernels on bf16 and f16 against the same on f32: they compute in float from what is stored, and round once.
#include <parallel/operation/argmax.hpp>
#include <parallel/operation/cast.hpp>
#include <parallel/operation/dropout.hpp>
#include <parallel/operation/embedding.hpp>
#include <parallel/operation/larger.hpp>
#include <parallel/operation/loss.hpp>
#include <parallel/operation/operators.hpp>
#include <parallel/operation/power.hpp>
#include <parallel/operation/reduce.hpp>
#include <parallel/operation/scale.hpp>
#include <parallel/operation/slice.hpp>
#include <parallel/operation/source.hpp>
#include <parallel/operation/top_k.hpp>
#include <parallel/operation/unary.hpp>
#include <parallel/operation/update.hpp>
#include <parallel/operation/where.hpp>

#include "device.hpp"

using namespace parallel;
using namespace parallel::internals;

namespace {
template <class T>
Numbers stored_as(Numbers x) {
  for (double& v : x.values) v = number(stored<T>(v));
  return x;
}
/// The position of a number among all of T.
template <class T>
int rank_of(double x) {
  const int bits = stored<T>(x).bits;
  return bits < 0x8000 ? bits : 0x8000 - bits;
}
/// By at most so many of the numbers that T has.
template <class T>
void check_rounded(const Numbers& found, const Numbers& wide, int apart) {
  REQUIRE(found.sizes == wide.sizes);
  int worst = 0;
  for (std::size_t i = 0; i < wide.values.size(); ++i)
    if (std::isnan(wide.values[i]))
      CHECK(std::isnan(found.values[i]));
    else
      worst = std::max(worst, std::abs(rank_of<T>(found.values[i]) - rank_of<T>(wide.values[i])));
  CHECK(worst <= apart);
}
/// Runs a call on both; `describe(run)` gives it operands and results.
template <class T, class F>
void compare(const Operation& operation, int apart, F describe) {
  CAPTURE(operation.name);
  Run<float> wide;
  Run<T> half;
  describe(wide);
  describe(half);
  check_rounded<T>(half.run(operation), wide.run(operation), apart);
}
const std::vector<Sizes> sizes_of_tests{{5, 1031}, {6, 64}, {3, 5}};
}  // namespace

TEST_CASE_TEMPLATE("functions of elements in bf16 and f16", T, bfloat16, float16) {
  for (const Sizes& sizes : sizes_of_tests) {
    const Numbers x = stored_as<T>(normal_numbers(sizes, 1, 2)), g = stored_as<T>(normal_numbers(sizes, 2)),
                  row = stored_as<T>(normal_numbers({sizes[1]}, 3, 0.3, 2)), mask = whole_numbers(sizes, 4, 2);
    for (const Operation* operation :
         {&operation::scale, &operation::square, &operation::sqrt, &operation::log, &operation::tanh, &operation::relu,
          &operation::sin, &operation::cos, &operation::abs, &operation::sign, &operation::softplus})
      compare<T>(*operation, 0, [&](auto& run) { run.operand(x).result(sizes).reals(-1.5); });
    compare<T>(operation::clamp, 0, [&](auto& run) { run.operand(x).result(sizes).reals(-1.5, 0.5); });
    compare<T>(operation::huber, 0, [&](auto& run) { run.operand(x).result(sizes).reals(0.5); });
    for (const Operation* operation :
         {&operation::add, &operation::subtract, &operation::multiply, &operation::divide, &operation::larger,
          &operation::smaller, &operation::pow, &operation::binary_cross_entropy})
      compare<T>(*operation, 0, [&](auto& run) { run.operand(x).operand(row).result(sizes); });
    for (const Operation* operation : {&operation::larger_derivative, &operation::smaller_derivative})
      compare<T>(*operation, 0, [&](auto& run) { run.operand(x).operand(row).operand(g).result(sizes); });
    const Numbers positions = whole_numbers({sizes[0], 2}, 5, 2);
    const auto near = [&](const Operation& operation, auto describe) {  // their results are no halves
      Run<float> wide;
      Run<T> half;
      describe(wide);
      describe(half);
      check_near(half.run(operation), wide.run(operation), 0);
    };
    near(operation::less, [&](auto& run) { run.operand(x).operand(row).template result<int>(sizes); });
    near(operation::argmax, [&](auto& run) { run.operand(x).template result<int>({sizes[0]}).ints({1}); });
    near(operation::first_equal,
         [&](auto& run) { run.operand(x).operand(g).template result<double>({sizes[1]}).ints({0}); });
    near(operation::top_k_positions, [&](auto& run) {
      run.operand(x).template result<int>({sizes[0], 2}).ints({1, 2});
    });
    compare<T>(operation::cumulative_sum, 0, [&](auto& run) { run.operand(x).result(sizes).ints({1, 0}); });
    compare<T>(operation::chosen, 0, [&](auto& run) {
      run.operand(x).integers(positions).result({sizes[0], 2}).ints({1});
    });
    compare<T>(operation::relu_derivative, 0, [&](auto& run) { run.operand(x).operand(g).result(sizes); });
    compare<T>(operation::accumulate, 0, [&](auto& run) { run.operand(x).operand(g).result_in_place(0); });
    Box behind = all_of(sizes);
    behind.offset[0] = 1;
    behind.size[0] = sizes[0] - 1;
    compare<T>(operation::accumulate_slice, 0, [&](auto& run) {
      run.operand(x).operand(part_of(g, behind)).result_in_place(0).ints({0, 1, sizes[0]});
    });
    const Numbers rows = whole_numbers({sizes[0]}, 6, static_cast<int>(sizes[0]));
    compare<T>(operation::accumulate_rows, 0,
               [&](auto& run) { run.operand(x).integers(rows).operand(g).result_in_place(0); });
    compare<T>(operation::where, 0, [&](auto& run) { run.integers(mask).operand(x).operand(row).result(sizes); });
    compare<T>(operation::masked, 0, [&](auto& run) { run.integers(mask).operand(x).result(sizes).ints({1}); });
    // the hardware's exponential and quotient may round to the neighbour
    for (const Operation* operation :
         {&operation::exp, &operation::sigmoid, &operation::gelu, &operation::gelu_erf, &operation::silu})
      compare<T>(*operation, 1, [&](auto& run) { run.operand(x).result(sizes); });
    for (const Operation* operation :
         {&operation::gelu_derivative, &operation::gelu_erf_derivative, &operation::silu_derivative}) {
      // from where the derivative is zero
      const Numbers apart = stored_as<T>(defined(sizes, [&](const Sizes& i) { return std::abs(x(i)); }));
      compare<T>(*operation, 1, [&](auto& run) { run.operand(apart).operand(g).result(sizes); });
    }
  }
}
TEST_CASE_TEMPLATE("casts of bf16 and f16", T, bfloat16, float16) {
  for (const Sizes& sizes : sizes_of_tests) {
    const Numbers x = normal_numbers(sizes, 1, 10), half = stored_as<T>(x);
    check_near(Run<float>().operand(x).template result<T>(sizes).run(operation::cast), half, 0);
    check_near(Run<double>().operand(x).template result<T>(sizes).run(operation::cast), half, 0);
    check_near(Run<T>().operand(half).template result<float>(sizes).run(operation::cast), half, 0);
    check_near(Run<T>().operand(half).template result<double>(sizes).run(operation::cast), half, 0);
    const Numbers whole = whole_numbers(sizes, 2, 256);
    check_near(Run<int>().operand(whole).template result<T>(sizes).run(operation::cast), whole, 0);
    check_near(Run<T>().operand(whole).template result<int>(sizes).run(operation::cast), whole, 0);
  }
}
TEST_CASE_TEMPLATE("reductions of bf16 and f16", T, bfloat16, float16) {
  const std::vector<std::pair<Sizes, Ints>> reductions{{{70, 24}, {0}},   {{70, 24}, {1}},     {{70, 24}, {}},
                                                       {{3000, 40}, {0}}, {{9, 5, 7}, {0, 2}}, {{2, 20000}, {1}}};
  for (const auto& reduction : reductions) {
    const Sizes& sizes = reduction.first;
    const Ints& gone = reduction.second;
    Sizes kept;
    for (std::size_t d = 0; d < sizes.size(); ++d)
      if (!gone.empty() && !gone.contains(static_cast<std::int64_t>(d))) kept.push_back(sizes[d]);
    const Numbers x = stored_as<T>(normal_numbers(sizes, 1, 0.5, 2)), g = stored_as<T>(normal_numbers(kept, 2));
    compare<T>(operation::sum, 1, [&](auto& run) { run.operand(x).result(kept).ints(gone).reals(0.25); });
    compare<T>(operation::local_max, 0, [&](auto& run) { run.operand(x).result(kept).ints(gone); });
    compare<T>(operation::expand, 0, [&](auto& run) { run.operand(g).result(sizes).ints(gone).reals(0.25); });
    const Numbers largest = Run<float>().operand(x).result(kept).ints(gone).run(operation::local_max);
    compare<T>(operation::count_maxima, 0, [&](auto& run) { run.operand(x).operand(largest).result(kept).ints(gone); });
    compare<T>(operation::max_derivative, 0, [&](auto& run) {
      run.operand(x).operand(largest).template operand<float>(Numbers(kept, 3)).operand(g).result(sizes).ints(gone);
    });
    check_near(Run<T>().operand(x).template result<double>({}).run(operation::square_sum),
               Run<float>().operand(x).result<double>({}).run(operation::square_sum), 1e-13);
  }
}
TEST_CASE_TEMPLATE("random numbers in bf16 and f16", T, bfloat16, float16) {
  for (const Sizes& sizes : {Sizes{4, 128}, Sizes{3, 50}})
    for (int dim = 0; dim < 2; ++dim)
      for (const Box& part : split(sizes, dim, 2)) {
        const Numbers x = stored_as<T>(normal_numbers(sizes, 1));
        compare<T>(operation::dropout, 0, [&](auto& run) {
          run.operand(x, part).scalars({3, 4}).result(sizes, part).ints({0, 1, 7}).reals(0.5);
        });
        compare<T>(operation::random, 0, [&](auto& run) {
          run.scalars({3, 4}).result(sizes, part).ints({0, 1, 7}).reals(2);
        });
      }
}
