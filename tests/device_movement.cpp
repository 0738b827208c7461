// Kernels that move elements: transposes, slices, concatenation, parts of one tensor into each other, look-up in
// tables, coordinates.
#include <algorithm>

#include <parallel/operation/embedding.hpp>
#include <parallel/operation/gather.hpp>
#include <parallel/operation/remember.hpp>
#include <parallel/operation/reshape.hpp>
#include <parallel/operation/source.hpp>
#include <parallel/operation/transpose.hpp>

#include "device.hpp"

using namespace parallel;
using namespace parallel::internals;

TEST_CASE_TEMPLATE("transposes", T, float, double, int OR_HALF) {
  for (const Sizes& sizes : {Sizes{5, 7}, Sizes{3, 4, 5}, Sizes{2, 3, 4, 5}, Sizes{1, 6, 1}, Sizes{4, 1, 3, 1},
                             Sizes{33, 50}, Sizes{2, 1, 2, 3, 2}, Sizes{3}, Sizes{2, 3, 2, 2, 3, 2}, Sizes{3, 0, 2},
                             Sizes{3, 70, 130}, Sizes{2, 16, 3, 32}}) {
    const Numbers x = whole_numbers(sizes, 1, 250);
    std::vector<int> order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    do {
      Ints ints;
      Sizes out;
      for (const int d : order) {
        ints.push_back(d);
        out.push_back(sizes[static_cast<std::size_t>(d)]);
      }
      check_near(Run<T>().operand(x).result(out).ints(ints).run(operation::transpose),
                 defined(out,
                         [&](const Sizes& i) {
                           Sizes from(i.size());
                           for (std::size_t d = 0; d < i.size(); ++d) from[static_cast<std::size_t>(order[d])] = i[d];
                           return x(from);
                         }),
                 0);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}
TEST_CASE_TEMPLATE("slices, and their conjugate: padding", T, float, double, int OR_HALF) {
  for (const Sizes& sizes : {Sizes{7}, Sizes{4, 6}, Sizes{3, 4, 5}, Sizes{2, 3, 1, 4}, Sizes{3, 4, 16}})
    for (std::size_t d = 0; d < sizes.size(); ++d)
      for (std::int64_t begin = 0; begin < sizes[d]; ++begin)
        for (std::int64_t end = begin + 1; end <= sizes[d]; ++end) {
          Box box = all_of(sizes);
          box.offset[d] = begin;
          box.size[d] = end - begin;
          const Numbers x = whole_numbers(sizes, 1, 250), part = part_of(x, box);
          const Ints ints{static_cast<std::int64_t>(d), begin, end};
          check_near(Run<T>().operand(x).result(box.size).ints(ints).run(operation::slice), part, 0);
          if constexpr (!std::is_same_v<T, int>) {
            const Numbers padded =
                defined(sizes, [&](const Sizes& i) { return i[d] >= begin && i[d] < end ? x(i) : 0; });
            check_near(Run<T>().operand(part).result(sizes).ints(ints).run(operation::pad), padded, 0);
            const Numbers sum = whole_numbers(sizes, 2, 6);
            check_near(
                Run<T>().operand(sum).operand(part).result_in_place(0).ints(ints).run(operation::accumulate_slice),
                defined(sizes, [&](const Sizes& i) { return sum(i) + padded(i); }), 0);
          }
        }
}
TEST_CASE_TEMPLATE("concatenation undoes slices; copies", T, float, double, int OR_HALF) {
  for (const Sizes& sizes : {Sizes{7}, Sizes{4, 6}, Sizes{5, 4, 5}, Sizes{3, 5, 3, 4}, Sizes{6, 4, 48}})
    for (int d = 0; d < static_cast<int>(sizes.size()); ++d)
      for (const int n : {1, 2, 3}) {
        const Numbers x = whole_numbers(sizes, 1, 250);
        Run<T> run;
        for (const Box& box : split(sizes, d, n)) run.operand(part_of(x, box));
        check_near(run.result(sizes).ints({d}).run(operation::concatenate), x, 0);
      }
  const Numbers x = whole_numbers({4, 6}, 1, 250);
  check_near(Run<T>().operand(x).result({4, 6}).run(operation::copy), x, 0);
  check_near(Run<T>().operand(x).result({3, 8}).ints({3, 8}).run(operation::reshape), Numbers({3, 8}, x.values), 0);
  check_near(Run<T>().operand(x).result_in_place(0).run(operation::reshape), x, 0);
}
TEST_CASE_TEMPLATE("tensors one behind the other", T, float, double OR_HALF) {
  for (const std::vector<std::int64_t>& lengths :
       {std::vector<std::int64_t>{7}, {3, 0, 5}, {4096, 16, 5000, 8}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}) {
    Run<T> run;
    std::vector<double> all;
    for (const std::int64_t n : lengths) {
      const Numbers x = whole_numbers({n}, static_cast<unsigned>(n), 250);
      run.operand(x);
      all.insert(all.end(), x.values.begin(), x.values.end());
    }
    const Sizes sizes{static_cast<std::int64_t>(all.size())};
    check_near(run.result(sizes).run(operation::bucket), Numbers(sizes, all), 0);
  }
}
TEST_CASE_TEMPLATE("what is written at a position, as far as there is room", T, float, double OR_HALF) {
  const Sizes sizes{2, 5, 8}, own{2, 3, 8};
  const Numbers memory = whole_numbers(sizes, 1, 250), x = whole_numbers(own, 2, 250);
  for (const std::int64_t position : {-4, -1, 0, 1, 2, 3, 4, 5, 9})
    check_near(Run<T>()
                   .operand(memory)
                   .operand(x)
                   .integers(Numbers(Sizes{}, static_cast<double>(position)))
                   .result_in_place(0)
                   .ints({1})
                   .run(operation::write),
               defined(sizes,
                       [&](const Sizes& i) {
                         const std::int64_t at = i[1] - position;
                         return at >= 0 && at < own[1] ? x({i[0], at, i[2]}) : memory(i);
                       }),
               0);
}
TEST_CASE("what two parts of a tensor have in common") {
  const Sizes sizes{6, 5, 4};
  const Numbers whole = normal_numbers(sizes, 1);
  const std::vector<Box> boxes{all_of(sizes),          {{0, 0, 0}, {3, 5, 4}}, {{3, 0, 0}, {3, 5, 4}},
                               {{0, 2, 0}, {6, 2, 4}}, {{0, 0, 3}, {6, 5, 1}}, {{0, 0, 1}, {6, 5, 2}},
                               {{2, 1, 1}, {3, 3, 2}}, {{2, 2, 2}, {0, 3, 2}}};
  for (const Box& from : boxes)
    for (const Box& to : boxes) {
      Run<float> run;
      run.operand(whole, from).result(sizes, to);
      check_near(run.run([](Call& call) { TestDevice::copy_overlap(call); }),
                 defined(to.size,
                         [&](const Sizes& i) {
                           Sizes at = i;
                           for (std::size_t d = 0; d < i.size(); ++d) {
                             at[d] += to.offset[d];
                             if (at[d] < from.offset[d] || at[d] >= from.offset[d] + from.size[d]) return 0.0;
                           }
                           return whole(at);
                         }),
                 0);
    }
  Run<double> run;
  run.operand(whole).result(sizes);
  check_near(run.run([](Call& call) { TestDevice::copy(call); }), whole, 0);
  check_near(run.run([](Call& call) { TestDevice::zero(call); }), Numbers(sizes), 0);
}
TEST_CASE_TEMPLATE("slices brought together and back", T, float, double, bfloat16, float16) {
  constexpr int size = sizeof(T);
  for (const std::int64_t outer : {1, 3, 10})
    for (const std::int64_t n : {1, 2, 5})
      for (const std::int64_t inner : {1, 2, 7, 16}) {
        const Numbers x = whole_numbers({outer, n, inner}, 1, 256);
        const Numbers packed = defined({n, outer, inner}, [&](const Sizes& i) { return x({i[1], i[0], i[2]}); });
        check_near(Run<T>().operand(x).result(packed.sizes).run([&](Call& c) {
          test_device().pack(c.operands[0].data, c.results[0].data, outer, n, inner, size);
        }),
                   packed, 0);
        check_near(Run<T>().operand(packed).result(x.sizes).run([&](Call& c) {
          test_device().unpack(c.operands[0].data, c.results[0].data, outer, n, inner, size);
        }),
                   x, 0);
      }
}
TEST_CASE_TEMPLATE("elements picked along a dimension, of whole tensors and of parts, and added up there", T, float,
                   double OR_HALF) {
  for (const Sizes& sizes : {Sizes{7}, Sizes{6, 5}, Sizes{5, 7, 3}, Sizes{3, 8, 64}, Sizes{2, 1, 4}, Sizes{3, 4, 0}})
    for (std::size_t d = 0; d < sizes.size(); ++d)
      for (const std::int64_t many : {1, 4, 11}) {
        Sizes picked = sizes;
        picked[d] = many;
        const Numbers x = whole_numbers(sizes, 1, 8), g = whole_numbers(picked, 2, 4);
        Numbers index = whole_numbers(picked, 3, static_cast<int>(sizes[d]) + 2);  // some lie outside
        for (double& i : index.values) --i;
        const auto at = [&](Sizes i) {
          i[d] = static_cast<std::int64_t>(index(i));
          return i;
        };
        const auto inside = [&](const Sizes& i) { return index(i) >= 0 && index(i) < static_cast<double>(sizes[d]); };
        const Ints along{static_cast<std::int64_t>(d)}, backward{static_cast<std::int64_t>(d), 1};
        const Ints back{static_cast<std::int64_t>(d), sizes[d]};
        for (const Box& part : split(sizes, static_cast<int>(d), 2)) {
          const auto held = [&](const Sizes& i) {
            const double behind = index(i) - static_cast<double>(part.offset[d]);
            return behind >= 0 && behind < static_cast<double>(part.size[d]);
          };
          check_near(Run<T>().integers(index).operand(x, part).result(picked).ints(along).run(operation::gather),
                     defined(picked,
                             [&](const Sizes& i) {
                               return held(i) ? x(at(i)) : inside(i) ? 0.0 : std::numeric_limits<double>::quiet_NaN();
                             }),
                     0);
          check_near(Run<T>().integers(index).operand(x, part).result(picked).ints(backward).run(operation::gather),
                     defined(picked, [&](const Sizes& i) { return held(i) ? x(at(i)) : 0.0; }), 0);
          Numbers sum(sizes);
          each_index(picked, [&](const Sizes& i) {
            if (held(i)) sum(at(i)) += g(i);
          });
          check_near(Run<T>().integers(index).operand(g).result(sizes, part).ints(back).run(operation::scattered),
                     part_of(sum, part), 0);
        }
      }
}
TEST_CASE_TEMPLATE("tables in parts: rows and columns", T, float, double) {
  const Sizes table_sizes{11, 6};
  const Numbers table = normal_numbers(table_sizes, 1);
  for (const Sizes& index_sizes : {Sizes{9}, Sizes{2, 5}, Sizes{}}) {
    Numbers index = whole_numbers(index_sizes, 2, 11);
    if (index.values.size() > 3) {
      index.values[2] = index.values[0];
      index.values[3] = -1;
    }  // twice, and outside
    Sizes out = index_sizes;
    out.push_back(6);
    const Numbers g = normal_numbers(out, 3);
    const auto row = [&](const Sizes& i) { return static_cast<std::int64_t>(index(Sizes(i.begin(), i.end() - 1))); };
    const Numbers looked_up = defined(out, [&](const Sizes& i) {
      return row(i) < 0 ? std::nan("") : table({row(i), i.back()});
    });
    Numbers gradient(table_sizes);
    each_index(out, [&](const Sizes& i) {
      if (row(i) >= 0) gradient({row(i), i.back()}) += g(i);
    });
    for (const int n : {1, 2, 4}) {
      Numbers sum(out);
      for (const Box& rows : split(table_sizes, 0, n)) {
        const Numbers own = Run<T>().integers(index).operand(table, rows).result(out).run(operation::embedding);
        for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += own.values[i];
        check_near(Run<T>().integers(index).operand(g).result(table_sizes, rows).run(operation::embedding_derivative),
                   part_of(gradient, rows), tolerance<T>);
      }
      check_near(sum, looked_up, 0);
      for (const Box& columns : split(table_sizes, 1, n)) {
        Box part = all_of(out);
        part.offset.back() = columns.offset[1];
        part.size.back() = columns.size[1];
        check_near(Run<T>().integers(index).operand(table, columns).result(out, part).run(operation::embedding),
                   part_of(looked_up, part), 0);
        check_near(
            Run<T>().integers(index).operand(g, part).result(table_sizes, columns).run(operation::embedding_derivative),
            part_of(gradient, columns), tolerance<T>);
      }
    }
  }
}
TEST_CASE_TEMPLATE("constants and coordinates of parts", T, float, double, int OR_HALF) {
  const Sizes sizes{4, 7, 3};
  check_near(Run<T>().result(sizes).reals(-2).run(operation::constant), Numbers(sizes, -2), 0);
  for (int dim = 0; dim < 3; ++dim)
    for (int along = 0; along < 3; ++along)
      for (const Box& part : split(sizes, along, 2))
        check_near(
            Run<T>().result(sizes, part).ints({dim}).run(operation::iota),
            part_of(
                defined(sizes, [&](const Sizes& i) { return static_cast<double>(i[static_cast<std::size_t>(dim)]); }),
                part),
            0);
}
