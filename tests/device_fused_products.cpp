// Products and what is fused to them, on every device: near what the parts give, whether it is one kernel or several
// that compute it.
#include "fused_calls.hpp"

using namespace parallel;
using namespace parallel::internals;

using fused_calls::Part;

namespace {

/// Where the product itself is not asked for and rows are whole lines of 16 bytes.
constexpr bool has_kernel([[maybe_unused]] const std::vector<Part>& parts, [[maybe_unused]] DType dtype) {
#if defined(PARALLEL_TEST_CUDA)
  const bool gelu = parts.back().operation == &operation::gelu || parts.back().operation == &operation::gelu_derivative;
  return dtype != DType::f64 && (!gelu || is_half(dtype));
#else
  return parts.size() == 2 && parts[1].operation == &operation::add;
#endif
}
/// An epilogue rounds once where the parts round each time, and may have a faster gelu.
template <class T>
constexpr double near_parts = std::is_same_v<T, double>  ? 1e-12
                              : std::is_same_v<T, float> ? 1e-4
                                                         : 1.0 / 64;

/// `run` has the operands, `parts` what each part gives alone. Every result between is once kept, and once passed on in
/// the next one's place.
template <class T, class Make>
void compare(const std::vector<Part>& parts, Make make, const std::vector<Numbers>& expected) {
  const Sizes& sizes = expected[0].sizes;
  const auto last = expected.size() - 1;
  for (unsigned kept = 0; kept < 1u << last; ++kept) {
    INFO("matmul and " << parts[1].operation->name << " of " << sizes[0] << " x " << sizes[1] << ", kept: " << kept
                       << ", right transposed: " << parts[0].ints[2]);
    const auto keeps = [&](std::size_t i) { return (kept >> i & 1) != 0; };
    Run<T> run;
    make(run);
    for (std::size_t i = 0; i <= last; ++i) run.result(sizes);
    auto& results = run.call().results;
    for (std::size_t i = last; i-- > 0;)
      if (!keeps(i)) results[static_cast<int>(i)].data = results[static_cast<int>(i) + 1].data;
    std::vector<bool> one_kernel;
    run.near(near_parts<T>).run([&](Call& all) {
      std::vector<Call> calls = fused_calls::chain(all, parts);
      one_kernel.push_back(fused_calls::compute(test_device(), calls) == calls.size());
    });
    for (std::size_t i = 0; i <= last; ++i)
      if (i == last || keeps(i)) check_near(run.get(static_cast<int>(i)), expected[i], near_parts<T>);
    // The first run is the one with aligned addresses.
    if (!keeps(0) && sizes[0] > 0 && sizes[1] % 8 == 0) CHECK(bool(one_kernel[0]) == has_kernel(parts, dtype_of<T>));
  }
}

}  // namespace

TEST_CASE_TEMPLATE("fused products are near their parts", T, float, double OR_HALF) {
  constexpr std::int64_t depth = 400;
  for (const Sizes& sizes : {Sizes{17, 24}, Sizes{64, 200}, Sizes{3, 5}, Sizes{0, 8}})
    for (const bool right_transposed : {false, true}) {
      const Ints ints = operation::Product(1, 0, right_transposed, 0);
      const Numbers x = normal_numbers({sizes[0], depth}, 1), bias = normal_numbers({sizes[1]}, 3),
                    at = normal_numbers(sizes, 4),
                    w = normal_numbers(right_transposed ? Sizes{sizes[1], depth} : Sizes{depth, sizes[1]}, 2, 0.05);
      const auto factors = [&](Run<T>& run) -> Run<T>& { return run.operand(x).operand(w); };
      Run<T> first;
      const Numbers product = factors(first).result(sizes).ints(ints).run(operation::matmul);
      const Numbers sum = Run<T>().operand(product).operand(bias).result(sizes).run(operation::add);
      const Numbers gelu = Run<T>().operand(sum).result(sizes).run(operation::gelu);
      const Numbers slope = Run<T>().operand(at).operand(product).result(sizes).run(operation::gelu_derivative);
      const auto with_bias = [&](Run<T>& run) { factors(run).operand(bias); };
      const Part times{&operation::matmul, 0, 1, ints}, plus{&operation::add, 0, 1};
      compare<T>({times, plus}, with_bias, {product, sum});
      compare<T>({times, plus, {&operation::gelu}}, with_bias, {product, sum, gelu});
      compare<T>({times, {&operation::gelu_derivative, 1, 1}}, [&](Run<T>& run) { factors(run).operand(at); },
                 {product, slope});
    }
}
TEST_CASE_TEMPLATE("a product with the sum of a factor over what is contracted", T, float, double OR_HALF) {
  for (const std::int64_t depth : {1, 7, 400})
    for (const Sizes& sizes : {Sizes{16, 24}, Sizes{40, 200}, Sizes{3, 5}, Sizes{1, 1}})
      for (const int shared : {0, 1}) {
        const Ints ints = operation::Product(1, 1, 0, 0);
        INFO(depth << " rows to " << sizes[0] << " x " << sizes[1] << ", the sum of operand " << shared);
        const Numbers x = normal_numbers({depth, sizes[0]}, 1), w = normal_numbers({depth, sizes[1]}, 2, 0.05);
        const Numbers product = Run<T>().operand(x).operand(w).result(sizes).ints(ints).run(operation::matmul);
        const Sizes columns{sizes[static_cast<std::size_t>(shared)]};
        Run<T> run;
        run.operand(x).operand(w).result(sizes).result(columns);
        std::vector<bool> one_kernel;
        run.near(near_parts<T>).run([&](Call& all) {
          std::vector<Call> calls(2, all);
          calls[0].operation = &operation::matmul;
          calls[0].ints = ints;
          calls[0].results.count = 1;
          calls[1].operation = &operation::sum_to;
          calls[1].operands = {all.operands[shared]};
          calls[1].results = {all.results[1]};
          one_kernel.push_back(fused_calls::compute(test_device(), calls) == 2);
        });
        check_near(run.get(0), product, near_parts<T>);
        const Numbers& factor = shared == 0 ? x : w;
        check_near(run.get(1),
                   defined(columns,
                           [&](const Sizes& i) {
                             double sum = 0;
                             for (std::int64_t row = 0; row < depth; ++row)
                               sum += number(stored<T>(factor({row, i[0]})));
                             return sum;
                           }),
                   near_parts<T>);
#if defined(PARALLEL_TEST_CUDA)
        const bool lines = sizes[0] % 8 == 0 && sizes[1] % 8 == 0;  // of 16 bytes, which halves need
        CHECK(bool(one_kernel[0]) == (!std::is_same_v<T, double> && (lines || !Half<T>)));
#else
        CHECK_FALSE(bool(one_kernel[0]));
#endif
      }
}
