// Fused kernels: bit for bit what their parts give one after the other, with what is between kept and in one place.
#include <parallel/device/cpu/fused.hpp>
#include <parallel/operation/multiply.hpp>

#include "fused_calls.hpp"

using namespace parallel;
using namespace parallel::internals;

namespace {

constexpr std::int64_t depth = 400;
const Ints product_ints{1, 0, 0, 0}, drawn{1, 2, 5};
/// What stands beside the first operand of a part: a weight, a bias or a residual, run-time numbers.
template <class T>
void beside(Run<T>& run, const Operation& part, bool after_product, const Sizes& sizes) {
  if (&part == &operation::matmul) run.operand(normal_numbers({depth, sizes[1]}, 2, 0.05));
  if (&part == &operation::add || &part == &operation::multiply)
    run.operand(normal_numbers(after_product ? Sizes{sizes[1]} : sizes, 3));
  if (&part == &operation::dropout) run.scalars({0.5, 3, 4});
}
fused_calls::Part part_of_chain(const Operation* operation) {
  const bool alone = operation == &operation::gelu || operation == &operation::silu || operation == &operation::relu ||
                     operation == &operation::square;
  return {operation, 0, alone ? 0 : 1,
          operation == &operation::matmul    ? product_ints
          : operation == &operation::dropout ? drawn
                                             : Ints{}};
}
using Operations = std::vector<const Operation*>;
std::vector<fused_calls::Part> parts_of(const Operations& operations) {
  std::vector<fused_calls::Part> parts;
  for (const Operation* o : operations) parts.push_back(part_of_chain(o));
  return parts;
}

template <class T>
std::vector<Numbers> one_by_one(const Operations& parts, const Numbers& x, const Sizes& sizes) {
  std::vector<Numbers> results;
  for (const Operation* part : parts) {
    Run<T> run;
    run.operand(results.empty() ? x : results.back());
    beside(run, *part, parts[0] == &operation::matmul, sizes);
    results.push_back(run.result(sizes).ints(part_of_chain(part).ints).reals(0.3).run(*part));
  }
  return results;
}

}  // namespace

TEST_CASE_TEMPLATE("fused operations give the bits of their parts", T, float, double) {
  namespace o = operation;
  static const std::vector<Operations> chains{{&o::matmul, &o::add},
                                              {&o::add, &o::gelu},
                                              {&o::add, &o::dropout},
                                              {&o::dropout, &o::add},
                                              {&o::add, &o::dropout, &o::add},
                                              {&o::silu, &o::multiply},
                                              {&o::relu, &o::square},
                                              {&o::gelu, &o::multiply},
                                              {&o::add, &o::silu, &o::multiply, &o::add},
                                              {&o::square, &o::add, &o::square}};
  for (const Operations& parts : chains)
    for (const Sizes& sizes : {Sizes{3, 5}, Sizes{1, 1}, Sizes{17, 401}, Sizes{2100, 20}, Sizes{5, 20000}, Sizes{0, 4}})
      for (const bool kept : {false, true}) {
        INFO(parts[0]->name << " and " << parts.size() - 1 << " more of " << sizes[0] << " x " << sizes[1]);
        const bool multiplies = parts[0] == &operation::matmul;
        const Numbers x = normal_numbers(multiplies ? Sizes{sizes[0], depth} : sizes, 1);
        Run<T> run;
        run.operand(x);
        for (const Operation* part : parts) {
          beside(run, *part, multiplies, sizes);
          run.result(sizes);
        }
        for (View& result : run.call().results)
          if (!kept) result.data = run.call().results[run.call().results.size() - 1].data;
        run.reals(0.3).run([&](Call& all) {
          std::vector<Call> calls = fused_calls::chain(all, parts_of(parts));
          CHECK(fused_calls::compute(CpuDouble{}, calls) == parts.size());
        });
        const std::vector<Numbers> expected = one_by_one<T>(parts, x, sizes);
        const auto as_expected = [&] {
          for (std::size_t i = kept ? 0 : parts.size() - 1; i < parts.size(); ++i)
            CHECK(run.get(static_cast<int>(i)).values == expected[i].values);
        };
        as_expected();
        if (multiplies) continue;
        run.run([&](Call& all) {
          std::vector<Call> calls = fused_calls::chain(all, parts_of(parts));
          for (Call& call : calls) call.kernel = CpuDouble{}.kernel(*call.operation, call);
          cpu::in_pieces_along(0, calls);
        });
        as_expected();
      }
}
TEST_CASE("a bias may stand before the product") {
  const Numbers x = normal_numbers({17, depth}, 1), w = normal_numbers({depth, 24}, 2, 0.05),
                bias = normal_numbers({24}, 3);
  const auto sum = [&](int takes) {
    Run<float> run;
    run.operand(x).operand(w).operand(bias).result({17, 24}).result({17, 24});
    run.run([&](Call& all) {
      std::vector<Call> calls =
          fused_calls::chain(all, {{&operation::matmul, 0, 1, product_ints}, {&operation::add, takes, 1}});
      CHECK(fused_calls::compute(CpuDouble{}, calls) == 2);
    });
    return run.get(1).values;
  };
  CHECK(sum(1) == sum(0));
}
TEST_CASE("a fused operation on a part is a part of it, with operands that repeat") {
  const Numbers x = normal_numbers({6, 40, 500}, 1), bias = normal_numbers({6, 1, 500}, 2),
                residual = normal_numbers(x.sizes, 3);
  const auto last = [&](const Box& box) {
    Run<float> run;
    run.operand(x, box)
        .operand(bias, {{box.offset[0], 0, box.offset[2]}, {box.size[0], 1, box.size[2]}})
        .scalars({0.5, 3, 4})
        .operand(residual, box);
    run.result(x.sizes, box).result(x.sizes, box).result(x.sizes, box).reals(0.3).run([](Call& all) {
      std::vector<Call> calls =
          fused_calls::chain(all, parts_of({&operation::add, &operation::dropout, &operation::add}));
      CHECK(fused_calls::compute(CpuDouble{}, calls) == 3);
    });
    return run.get(2);
  };
  const Numbers whole = last(all_of(x.sizes));
  for (int d = 0; d < 3; ++d)
    for (const Box& part : split(x.sizes, d, 3)) CHECK(last(part).values == part_of(whole, part).values);
  const Numbers sum = defined(x.sizes, [&](const Sizes& i) {
    return static_cast<double>(static_cast<float>(x(i) + bias({i[0], 0, i[2]})));
  });
  const Numbers dropped =
      Run<float>().operand(sum).scalars({0.5, 3, 4}).result(x.sizes).ints(drawn).reals(0.3).run(operation::dropout);
  CHECK(whole.values == Run<float>().operand(dropped).operand(residual).result(x.sizes).run(operation::add).values);
}
TEST_CASE("where a program has a kernel for a part, the device has none for the fusion") {
  static constexpr CpuKernels adds[]{{&operation::add, [](const Call&) {}}},
      drops[]{{&operation::dropout, [](const Call&) {}}};
  Run<float> run;
  run.operand(Numbers({2, 3})).operand(Numbers({3, 4})).operand(Numbers({4})).result({2, 4}).result({2, 4});
  std::vector<Call> calls = fused_calls::chain(run.call(), parts_of({&operation::matmul, &operation::add}));
  CHECK(bool(CpuDouble{}.fused(calls)));
  CHECK_FALSE(bool(CpuDouble{adds}.fused(calls)));
  CHECK(bool(CpuDouble{drops}.fused(calls)));
  CHECK_FALSE(bool(CpuDouble{}.fused(std::span(calls).first(1))));
  for (Call& call : calls) {
    for (View& v : call.operands) v.dtype = DType::bf16;
    for (View& v : call.results) v.dtype = DType::bf16;
  }
  CHECK_FALSE(bool(CpuDouble{}.fused(calls)));  // each part rounds its result
  CHECK(bool(CpuDouble{}.kernel(operation::matmul, calls[0])));
}
