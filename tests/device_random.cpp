// Random kernels: known answers of the generator, the same numbers in every layout, other numbers for every step, call,
// layer and micro-batch.
#include <parallel/device/stream.hpp>
#include <parallel/operation/dropout.hpp>
#include <parallel/operation/source.hpp>

#include "device.hpp"

using namespace parallel;
using namespace parallel::internals;
using Words = std::array<std::uint32_t, 4>;

// The published answers of Philox4x32-10 (Random123, kat_vectors).
static_assert(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

static const Ints positions{1, 2, 5};  // of seed and step among the scalars, and the number of the operation
static std::vector<double> scalars_of(double seed, double step) { return {0.5, seed, step}; }

template <class T>
static Numbers dropped(const Numbers& x, const Box& part, double probability, double seed = 3, double step = 4,
                       std::int64_t layer = 0, std::int64_t micro_batch = 0) {
  return Run<T>()
      .operand(x, part)
      .scalars(scalars_of(seed, step))
      .result(x.sizes, part)
      .ints(positions)
      .reals(probability)
      .within(layer, micro_batch)
      .run(operation::dropout);
}
template <class T>
static Numbers drawn(const Sizes& sizes, const Box& part, double deviation, double seed = 3, double step = 4) {
  return Run<T>()
      .scalars(scalars_of(seed, step))
      .result(sizes, part)
      .ints(positions)
      .reals(deviation)
      .run(operation::random);
}

TEST_CASE_TEMPLATE("dropout follows its definition in every layout", T, float, double) {
  for (const Sizes& sizes :
       {Sizes{6, 70}, Sizes{5, 6, 7}, Sizes{130}, Sizes{}, Sizes{3, 4}, Sizes{4, 128}, Sizes{2, 6, 64}}) {
    const Numbers x = normal_numbers(sizes, 1);
    const double probability = 0.3;
    const double scalars[]{0.5, 3, 4};
    const RandomStream stream = RandomStream::of(positions, scalars, 0, 0);
    const Numbers y = defined(sizes, [&](const Sizes& i) {
      return stream.word(static_cast<std::uint64_t>(position(sizes, i))) < dropped_below(probability)
                 ? 0
                 : x(i) / (1 - probability);
    });
    check_near(dropped<T>(x, all_of(sizes), probability), y, tolerance<T>);
    for (int d = 0; d < static_cast<int>(sizes.size()); ++d)
      for (const int n : {2, 3, static_cast<int>(sizes[static_cast<std::size_t>(d)])})
        for (const Box& part : split(sizes, d, n))
          check_near(dropped<T>(x, part, probability), part_of(y, part), tolerance<T>);
  }
}
TEST_CASE("dropout drops the share that it is asked for, and others for every seed, step, layer, micro-batch") {
  const Numbers x({100, 1000}, 1);
  const Box all = all_of(x.sizes);
  const auto dropped_of = [](const Numbers& y) {
    return static_cast<double>(std::count(y.values.begin(), y.values.end(), 0.0)) /
           static_cast<double>(y.values.size());
  };
  CHECK(dropped_of(dropped<float>(x, all, 0)) == 0);
  CHECK(dropped_of(dropped<float>(x, all, 1)) == 1);
  const Numbers first = dropped<float>(x, all, 0.1);
  CHECK(std::abs(dropped_of(first) - 0.1) < 0.003);
  CHECK(dropped<float>(x, all, 0.1).values == first.values);
  for (const Numbers& other :
       {dropped<float>(x, all, 0.1, 4), dropped<float>(x, all, 0.1, 3, 5), dropped<float>(x, all, 0.1, 3, 4, 1),
        dropped<float>(x, all, 0.1, 3, 4, 0, 1), dropped<float>(x, all, 0.1, 3 + 4294967296.0)}) {
    double both = 0;
    for (std::size_t i = 0; i < x.values.size(); ++i) both += first.values[i] == 0 && other.values[i] == 0;
    CHECK(std::abs(both / static_cast<double>(x.values.size()) - 0.01) < 0.001);  // as independent ones
  }
}
TEST_CASE_TEMPLATE("normal numbers: the same in every layout, with the moments of a normal distribution", T, float,
                   double) {
  const Sizes sizes{100, 1000};
  const Numbers z = drawn<T>(sizes, all_of(sizes), 2);
  double moments[5]{};
  for (const double v : z.values)
    for (int k = 1; k <= 4; ++k) moments[k] += std::pow(v / 2, k) / static_cast<double>(z.values.size());
  CHECK(std::abs(moments[1]) < 0.01);
  CHECK(std::abs(moments[2] - 1) < 0.02);
  CHECK(std::abs(moments[3]) < 0.04);
  CHECK(std::abs(moments[4] - 3) < 0.1);
  double neighbours = 0, pairs = 0;
  for (std::size_t i = 0; i + 16 < z.values.size(); ++i) {
    neighbours += z.values[i] * z.values[i + 1];
    pairs += z.values[i] * z.values[i + 16];
  }
  CHECK(std::abs(neighbours / 4e5) < 0.02);
  CHECK(std::abs(pairs / 4e5) < 0.02);
  for (int d = 0; d < 2; ++d)
    for (const Box& part : split(sizes, d, 3)) check_near(drawn<T>(sizes, part, 2), part_of(z, part), 0);
  const Sizes whole_blocks{16, 256};
  for (int d = 0; d < 2; ++d)
    for (const int n : {1, 2, 3})
      for (const Box& part : split(whole_blocks, d, n))
        check_near(drawn<T>(whole_blocks, part, 2), part_of(drawn<T>(whole_blocks, all_of(whole_blocks), 2), part), 0);
  check_near(drawn<T>(sizes, all_of(sizes), 2), drawn<double>(sizes, all_of(sizes), 2), 1e-5);
  CHECK(drawn<T>(sizes, all_of(sizes), 2, 3, 5).values != z.values);
}
